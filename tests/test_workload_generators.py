"""The generators of all workloads, as Python calls them; what is in the rows is tested beside their code."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import _penstock
from penstock.workloads import cm, ipq, lrb, me, nexmark, nyt, sg, ysb
from penstock.workloads.generated import Generated

ROWS = 2_000
STREAMS: tuple[Literal["person", "auction", "bid"], ...] = ("person", "auction", "bid")


class Table(NamedTuple):
    workload: str
    table: str
    generate: Callable[..., Generated]
    schema: Callable[[], _penstock.Schema]
    # A value for each option that changes some row, and is not refused.
    unusual: dict[str, Any]
    given: tuple[str, ...] = ()

    @property
    def usual(self) -> dict[str, Any]:
        """What keeps tests short."""
        return {"minutes": 15} if self.workload == "lrb" else {}

    def make(self, rows: int | None, **options: Any) -> Generated:
        return self.generate(*self.given, rows, **(self.usual | options))


DISORDER = {"rate": 1_000, "out_of_order_ms": 50, "late_every": 10}
TIMES = DISORDER | {"step_every_s": 1}
YSB = TIMES | {"zipf": 1.0, "view_share": 0.9, "switch_every_s": 1}
LRB = {
    "expressways": 2,
    "minutes": 17,
    "cars_per_second": 30,
    "report_every": 20,
    "accident_every": 60,
    "queries_every": 10,
    "out_of_order_s": 2,
    "late_every": 10,
}
NEXMARK = TIMES | {
    "first_event_time_ms": -1_000,
    "hot_auction_ratio": 1,
    "hot_seller_ratio": 1,
    "hot_bidder_ratio": 1,
    "active_people": 3,
    "auctions_in_flight": 3,
    "id_lead": 10,
    "person_bytes": 300,
    "auction_bytes": 300,
    "bid_bytes": 300,
}
IPQ = DISORDER | {
    "rate": 2_000,
    "source": 1,
    "sources": 2,
    "variable": True,
    "skew": 10,
    "keys": 10,
    "zipf": 1.0,
}

TABLES = [
    Table("ysb", "events", ysb.generate, ysb.schema, YSB),
    Table(
        "ysb-strings",
        "events",
        lambda rows, **options: ysb.generate(rows, strings=True, **options),
        lambda: ysb.schema(strings=True),
        YSB,
    ),
    Table("lrb", "reports", lrb.generate, lrb.schema, LRB),
    Table("nyt", "trips", nyt.generate, nyt.schema, TIMES | {"vts_share": 0.9, "hot_share": 0.5}),
    Table("nexmark", "person", nexmark.generate, lambda: nexmark.schema("person"), NEXMARK, ("person",)),
    Table("nexmark", "auction", nexmark.generate, lambda: nexmark.schema("auction"), NEXMARK, ("auction",)),
    Table("nexmark", "bid", nexmark.generate, lambda: nexmark.schema("bid"), NEXMARK, ("bid",)),
    Table("cm", "events", cm.generate, cm.schema, TIMES | {"jobs": 3, "zipf": 0.0, "fail_share": 0.5}),
    Table("sg", "readings", sg.generate, sg.schema, TIMES | {"houses": 3, "zipf": 1.0}),
    Table("me", "readings", me.generate, me.schema, TIMES),
    Table("ipq", "revenue", ipq.generate, lambda: ipq.schema("revenue"), IPQ, ("revenue",)),
    Table("ipq", "logs", ipq.generate, lambda: ipq.schema("logs"), IPQ, ("logs",)),
]

# Options of NEXMark that a table has nothing to do with.
PEOPLE = {"hot_seller_ratio", "hot_bidder_ratio", "active_people", "auctions_in_flight", "id_lead"}
WITHOUT_EFFECT = {
    "person": {*PEOPLE, "hot_auction_ratio", "auction_bytes", "bid_bytes"},
    "auction": {"hot_auction_ratio", "hot_bidder_ratio", "person_bytes", "bid_bytes"},
    "bid": {"hot_seller_ratio", "person_bytes", "auction_bytes"},
}

# What an option needs beside it to have an effect on so few rows.
BESIDE: dict[str, dict[str, Any]] = {
    "skew": {"sources": 2},
    "source": {"sources": 2},
    "sources": {"skew": 10},
    "step_every_s": {"rate": 500},
    "switch_every_s": {"rate": 500},
}

of_each = pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.workload}-{table.table}")


def read(generated: Generated) -> pa.Table:
    return pa.table(generated).combine_chunks()


def workload(name: str, table: str, **options: Any) -> _penstock.BatchStream:
    return _penstock.workload(name, table, rows=10, seed=7, start=0, batch_rows=10, options=options)


@of_each
def test_rows_do_not_depend_on_how_they_are_cut(table: Table) -> None:
    disorder = {name: table.unusual[name] for name in table.unusual if name.startswith(("out_of", "late"))}
    whole = read(table.make(ROWS, **disorder))
    assert len(whole) == ROWS

    @settings(max_examples=10)
    @given(st.integers(0, ROWS), st.integers(0, ROWS), st.integers(7, 2 * ROWS))
    def check(start: int, end: int, batch_rows: int) -> None:
        rows = max(end - start, 0)
        part = table.make(rows, start=start, batch_rows=batch_rows, **disorder)
        assert read(part).equals(whole.slice(start, rows))
        assert [len(batch) for batch in pa.table(part).to_batches()] == [
            min(batch_rows, rows - first) for first in range(0, rows, batch_rows)
        ]

    check()


@of_each
def test_seeds_differ(table: Table) -> None:
    seven, eight = (read(table.make(ROWS, seed=seed)) for seed in (7, 8))
    assert not seven.equals(eight)
    assert read(table.make(ROWS)).equals(seven)


@of_each
def test_columns_are_those_of_the_module(table: Table) -> None:
    made, declared = table.make(10).schema, table.schema()
    assert made == _penstock.workload_schema(table.workload, table.table)
    assert (made.names, made.types) == (declared.names, declared.types)
    # Queries take published data too, in which values may be missing; generated data has them all.
    assert not any(made.nullable)
    assert read(table.make(10)).schema == pa.schema(made)


@of_each
def test_defaults_are_those_of_the_generator(table: Table) -> None:
    others = {"table", "rows", "seed", "start", "batch_rows", "strings"}
    generate = ysb.generate if table.workload == "ysb-strings" else table.generate
    declared = {name: parameter.default for name, parameter in inspect.signature(generate).parameters.items()}
    options = {name: value for name, value in declared.items() if name not in others}
    assert options == _penstock.workload_options(table.workload, table.table)
    assert (declared["seed"], declared["start"], declared["batch_rows"]) == (7, 0, 65536)


@of_each
def test_every_option_arrives(table: Table) -> None:
    assert set(table.unusual) == set(_penstock.workload_options(table.workload, table.table))
    rows = None if table.workload == "lrb" else ROWS
    for option, value in table.unusual.items():
        beside = BESIDE.get(option, {})
        usual, unusual = (read(table.make(rows, **beside, **more)) for more in ({}, {option: value}))
        has_effect = option not in WITHOUT_EFFECT.get(table.table, set())
        assert usual.equals(unusual) != has_effect, option


@of_each
def test_wrong_options_are_refused(table: Table) -> None:
    name, options = table.workload, _penstock.workload_options(table.workload, table.table)
    with pytest.raises(ValueError, match='did you mean "late_every"') as unknown:
        workload(name, table.table, late_evry=1)
    assert all(f'"{option}"' in str(unknown.value) for option in options)
    for option, value in options.items():
        with pytest.raises(TypeError, match=f"^{option} must be .*, not str: many$"):
            table.make(10, **{option: "many"})
        with pytest.raises(TypeError, match=f"^{option} must be .*, not NoneType: None$"):
            table.make(10, **{option: None})
        if isinstance(value, bool):
            with pytest.raises(TypeError, match=f"^{option} must be True or False, not int: 1"):
                table.make(10, **{option: 1})
            continue
        with pytest.raises(TypeError, match=f"^{option} must be a.* number, not bool: True"):
            table.make(10, **{option: True})
        if isinstance(value, float):
            for number in (-1, float("nan"), float("inf"), 10**400):
                with pytest.raises(ValueError, match=f"^{option} must be a"):
                    table.make(10, **{option: number})
            continue
        with pytest.raises(TypeError, match=f"^{option} must be a whole number, not float: 1.5"):
            table.make(10, **{option: 1.5})
        least = -(2**63) if option == "first_event_time_ms" else 0
        for number in (least - 1, 2**64):
            with pytest.raises(ValueError, match=f"^{option} must be between {least} and .*, got {number}$"):
                table.make(10, **{option: number})


@of_each
@pytest.mark.parametrize("argument", ["rows", "seed", "start", "batch_rows"])
def test_wrong_arguments_are_refused(table: Table, argument: str) -> None:
    def make(value: Any) -> Generated:
        arguments: dict[str, Any] = {"rows": 10, argument: value}
        return table.make(**arguments)

    with pytest.raises(ValueError, match=f"^{argument} must be between 0 and .*, got -1$"):
        make(-1)
    with pytest.raises(ValueError, match=f"^{argument} must be between 0 and .*, got {2**64}$"):
        make(2**64)
    with pytest.raises(TypeError, match=f"^{argument} must be a whole number, not str: x$"):
        make("x")


def test_a_batch_of_text_has_fewer_rows_than_one_of_numbers() -> None:
    most = 2**24
    assert len(pa.table(ysb.generate(10, batch_rows=most))) == 10
    with pytest.raises(ValueError, match=f"batch_rows must be between 1 and {most}, got {most + 1}"):
        ysb.generate(10, batch_rows=most + 1)
    # A column of strings numbers its bytes with 31 bits.
    with pytest.raises(ValueError, match=f"batch_rows must be between 1 and [0-9]{{1,6}}, got {most}"):
        nexmark.generate("auction", 10, auction_bytes=16_384, batch_rows=most)


def test_names_are_checked() -> None:
    with pytest.raises(ValueError, match='"ysb-strings".*, not "nexmrk"; did you mean "nexmark"') as unknown:
        workload("nexmrk", "bid")
    assert all(f'"{table.workload}"' in str(unknown.value) for table in TABLES)
    with pytest.raises(
        ValueError, match='a table of nexmark is "person", "auction" or "bid", not "bids"; did'
    ):
        workload("nexmark", "bids")
    with pytest.raises(ValueError, match='a table of ysb is "events", not "bid"$'):
        _penstock.workload_schema("ysb", "bid")
    names: dict[Any, Any] = {3: 4}
    with pytest.raises(TypeError, match="options have names, and 3 is none"):
        _penstock.workload_rows("ysb", "events", 7, names)
    with pytest.raises(ValueError, match="source must be between 0 and 7, got 8"):
        ipq.generate("logs", 10, source=8)


@of_each
def test_a_recipe_is_small_and_goes_anywhere(table: Table) -> None:
    made = table.make(ROWS, seed=3, start=5, late_every=table.unusual["late_every"])
    pickled = pickle.dumps(made)
    assert len(pickled) < 1_000
    again = pickle.loads(pickled)
    assert repr(again) == repr(made)
    assert read(again).equals(read(made))
    assert read(made).equals(read(made))


def test_a_recipe_reads_like_a_call() -> None:
    assert repr(ysb.generate(1000)) == "ysb.events(rows=1000, seed=7)"
    assert repr(ysb.generate(10, strings=True, batch_rows=5)) == "ysb-strings.events(rows=10, seed=7)"
    assert (
        repr(nexmark.generate("bid", 10, start=4, rate=5)) == "nexmark.bid(rows=10, seed=7, start=4, rate=5)"
    )
    assert repr(lrb.generate(minutes=3)) == "lrb.reports(rows=None, seed=7, minutes=3)"
    assert repr(ysb.campaigns(3)) == "ysb_campaigns(seed=3, strings=False)"


def test_traffic_has_an_end() -> None:
    whole = read(lrb.generate(minutes=5))
    rows = _penstock.workload_rows("lrb", "reports", 7, {"minutes": 5})
    assert len(whole) == rows
    assert read(lrb.generate(minutes=5, start=100)).equals(whole.slice(100))
    assert len(read(lrb.generate(minutes=5, start=len(whole)))) == 0
    with pytest.raises(ValueError, match=f"there is no row {rows}: the data set has {rows} rows"):
        lrb.generate(len(whole), start=1, minutes=5)
    for table in TABLES:
        if table.workload != "lrb":
            assert _penstock.workload_rows(table.workload, table.table, 7, {}) is None
            with pytest.raises(ValueError, match="has no end: rows says how many"):
                table.make(None)


def test_events_of_three_streams_are_numbered_together() -> None:
    for events in (*range(120), 1_000, 1_003, 10**12):
        assert sum(nexmark.rows_of(name, events) for name in STREAMS) == events
    for name, turns in zip(STREAMS, ({0}, {1, 2, 3}, set(range(4, 50))), strict=True):
        for events in range(200):
            expected = sum(event % 50 in turns for event in range(events))
            assert nexmark.rows_of(name, events) == expected
    # At one event per second, times say which events rows are.
    seconds: list[int] = []
    for name in STREAMS:
        rows = read(nexmark.generate(name, nexmark.rows_of(name, 1_003), rate=1))
        seconds += (time // 1_000 for time in rows["date_time"].cast("int64").to_pylist())
    assert sorted(seconds) == list(range(1_003))
    wrong: Any = "bids"
    with pytest.raises(ValueError, match="person, auction, bid, not 'bids'"):
        nexmark.rows_of(wrong, 10)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        nexmark.rows_of("bid", -1)


def test_text_stands_for_numbers() -> None:
    options: dict[str, Any] = {"rate": 100, "out_of_order_ms": 50, "zipf": 1.0}
    numbers, text = (
        ysb.query(campaigns=ysb.campaigns(3, strings), strings=strings)
        .run(ysb.generate(5_000, seed=3, strings=strings, **options))
        .to_pylist()
        for strings in (False, True)
    )
    ads = [pa.table(ysb.campaigns(3, strings)).to_pydict()["campaign_id"] for strings in (False, True)]
    words = dict(zip(*ads, strict=True))
    assert len(words) == len(set(words.values())) == 100

    def as_rows(result: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in result)

    assert as_rows([row | {"campaign_id": words[row["campaign_id"]]} for row in numbers]) == as_rows(text)
    assert all(len(word) == 36 for word in words.values())


QUERIES: dict[str, Callable[[], ps.Stream]] = {
    "q0": nexmark.q0,
    "q1": nexmark.q1,
    "q2": nexmark.q2,
    "q3": nexmark.q3,
    "q5": nexmark.q5,
    "q7": nexmark.q7,
    "q8": nexmark.q8,
    "q11": nexmark.q11,
}


@pytest.mark.parametrize("query", QUERIES)
def test_nexmark_queries_have_results(query: str) -> None:
    tables = ("auction", "person") if query in ("q3", "q8") else ("bid",)
    rows: dict[str, Generated] = {
        name: nexmark.generate(name, nexmark.rows_of(name, 10_000), rate=500)
        for name in STREAMS
        if name in tables
    }
    result = QUERIES[query]().run(rows)
    assert len(result) > 0
    assert result.rows_late == 0
    assert result.rows_in == sum(nexmark.rows_of(name, 10_000) for name in STREAMS if name in tables)


@pytest.mark.parametrize("strings", [False, True])
def test_ysb_has_results(strings: bool) -> None:
    rows = ysb.generate(ROWS, strings=strings, rate=100)
    result = ysb.query(strings=strings).run(rows)
    assert sum(row["views"] for row in result.to_pylist()) == pytest.approx(ROWS / 3, rel=0.1)


def test_nyt_has_results() -> None:
    result = nyt.query().run(nyt.generate(ROWS, rate=500)).to_pylist()
    assert len({row["window_end"] for row in result}) == 2
    assert sum(row["trips"] for row in result) > ROWS / 4


def test_lrb_finds_accidents_and_tolls() -> None:
    reports = lrb.generate(minutes=25)
    assert len(lrb.accidents().run(reports)) > 0
    result = lrb.query().run(reports).to_pylist()
    assert len(result) > 100
    assert any(row["accident"] for row in result)
