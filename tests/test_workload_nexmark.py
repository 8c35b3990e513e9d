"""The NEXMark queries, against SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pyarrow as pa
import pytest

import penstock as ps
from penstock.workloads import nexmark
from reference import nexmark as reference
from reference.compare import as_bag
from reference.engine import rows_of
from reference.options import run_one
from reference.sizes import SMALLER
from reference.types import Value

EVENTS = 200_000 // SMALLER
NAMES: tuple[Literal["person", "auction", "bid"], ...] = ("person", "auction", "bid")
QUERIES: Mapping[str, Callable[[], ps.Stream]] = {
    "q0": nexmark.q0,
    "q1": nexmark.q1,
    "q2": nexmark.q2,
    "q3": nexmark.q3,
    "q5": nexmark.q5,
    "q7": nexmark.q7,
    "q8": nexmark.q8,
    "q11": nexmark.q11,
}
READS: dict[str, tuple[str, ...]] = dict.fromkeys(QUERIES, ("bid",)) | {
    "q3": ("auction", "person"),
    "q8": ("auction", "person"),
}
WINDOWED = ("q3", "q5", "q7", "q8", "q11")


def check(query: str, tables: dict[str, pa.Table], batch_rows: int | None = None, **options: Any) -> None:
    data = {name: tables[name].to_batches(batch_rows) for name in READS[query]}
    result = run_one(QUERIES[query](), data, **options)
    expected, actual = reference.answer(query, tables), rows_of(result)
    assert result.rows_late == 0
    assert list(actual[0]) == list(expected[0])
    wanted, found = as_bag(expected), as_bag(actual)
    assert found == wanted, f"missing {list(wanted - found)[:5]}, unexpected {list(found - wanted)[:5]}"


def per_window(rows: list[dict[str, Value]]) -> Counter[Value]:
    return Counter(row["window_end"] for row in rows)


def test_the_generator_is_of_the_declared_columns() -> None:
    tables = reference.events(1000, seed=1)
    for name in NAMES:
        assert tables[name].schema == pa.schema(nexmark.schema(name))
    assert [len(tables[name]) for name in NAMES] == [20, 60, 920]


def test_the_generator_makes_what_the_queries_must_tell_apart() -> None:
    tables = reference.events(50_000, seed=1, hot=False)
    for query in ("q5", "q7"):
        ties = per_window(reference.answer(query, tables))
        assert min(ties.values()) == 1 or query == "q7"
        assert max(ties.values()) > 1, f"nothing ties in {query}"
    assert len(reference.answer("q8", tables)) > 20
    assert len(reference.answer("q3", reference.events(50_000, seed=1))) > 20
    visits = Counter(row["bidder"] for row in reference.answer("q11", tables))
    assert max(visits.values()) > 1


@pytest.mark.parametrize("query", QUERIES)
def test_same_as_sql(query: str) -> None:
    check(query, reference.events(EVENTS, seed=2))


@pytest.mark.parametrize("query", WINDOWED)
def test_same_as_sql_where_nothing_is_hot(query: str) -> None:
    check(query, reference.events(EVENTS, seed=6, hot=False))


@pytest.mark.slow
@pytest.mark.skipif(SMALLER > 1, reason="once is enough")
@pytest.mark.parametrize("query", WINDOWED)
def test_same_as_sql_over_a_million_events(query: str) -> None:
    check(query, reference.events(1_000_000, seed=3, per_second=2_000))


@pytest.mark.parametrize("chain", ["auto", "off"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batch_rows", [1, 613, 10_000])
def test_neither_batches_nor_workers_nor_chains_matter(batch_rows: int, workers: int, chain: str) -> None:
    tables = reference.events(2_500, seed=4, per_second=25)
    for query in QUERIES:
        check(query, tables, batch_rows, workers=workers, chain=chain)


def bids(*rows: tuple[int, int, int, int]) -> pa.Table:
    """Bids of a time, auction, bidder and price."""
    made: list[dict[str, Any]] = []
    for time, auction, bidder, price in rows:
        one: dict[str, Any] = dict.fromkeys(nexmark.schema("bid").names)
        made.append(one | {"date_time": time, "auction": auction, "bidder": bidder, "price": price})
    return pa.Table.from_pylist(made, schema=pa.schema(nexmark.schema("bid")))


def found(query: ps.Stream, data: pa.Table, *names: str) -> list[tuple[Value, ...]]:
    """Some columns of the result, in order."""
    rows = rows_of(run_one(query, {"bid": data}))
    return sorted(tuple(row[name] for name in names) for row in rows)


def test_hot_items_that_tie() -> None:
    data = bids((1000, 7, 1, 1), (1500, 8, 1, 1), (9000, 8, 1, 1), (9500, 7, 2, 1), (9600, 9, 1, 1))
    rows = found(nexmark.q5(), data, "window_start", "auction", "num")
    assert [row for row in rows if row[0] == 0] == [(0, 7, 2), (0, 8, 2)]
    assert [row for row in rows if row[0] == 2000] == [(2000, 7, 1), (2000, 8, 1), (2000, 9, 1)]
    assert min(row[0] for row in rows) == -8000  # type: ignore[type-var]


def test_a_highest_bid_on_a_boundary_belongs_to_one_window() -> None:
    data = bids((9999, 1, 1, 5), (10_000, 2, 1, 9), (10_001, 3, 1, 9), (19_999, 4, 1, 8), (20_000, 5, 1, 1))
    rows = found(nexmark.q7(), data, "window_start", "auction", "price")
    assert rows == [(0, 1, 5), (10_000, 2, 9), (10_000, 3, 9), (20_000, 5, 1)]


def test_a_pause_of_ten_seconds_ends_a_session() -> None:
    data = bids((0, 1, 1, 1), (9_999, 1, 1, 1), (19_999, 1, 1, 1), (25_000, 1, 2, 1))
    rows = found(nexmark.q11(), data, "bidder", "window_start", "window_end", "bid_count")
    assert rows == [(1, 0, 19_999, 2), (1, 19_999, 29_999, 1), (2, 25_000, 35_000, 1)]


def test_longer_windows_suggest_more_items() -> None:
    tables = reference.events(20_000, seed=5)
    data = {name: tables[name] for name in ("auction", "person")}
    short, long = (len(nexmark.q3(window).run(data)) for window in ("10s", "1h"))
    assert 0 < short < long


def test_prices_are_converted_exactly() -> None:
    result = nexmark.q1().run({"bid": bids((0, 1, 1, 1001))})
    assert str(result.to_pylist()[0]["price"]) == "908.908"
