"""Pipelines are values: immutable, comparable, printable, the same after a trip through JSON or pickle."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from reference import engine, strategies
from reference.compare import as_bag
from reference.plans import Plan, Row

SCHEMA = {"t": "timestamp[ms]", "k": "string", "x": "int64", "f": "float64", "keep": "bool"}
ADS = pa.table({"k": ["a", "b"], "group": pa.array([1, None], pa.int32())})


def base() -> ps.Stream:
    return ps.stream(SCHEMA, time="t", delay="2s")


def full() -> ps.Stream:
    """One of everything."""
    return (
        base()
        .filter(ps.col("keep") & (ps.col("x") > 0))
        .with_columns(y=ps.col("x") * 2)
        .lookup(ADS, on="k", how="left")
        .select("t", "group", "y", z=ps.col("f") / 2)
        .window(ps.tumbling("10s"), by="group")
        .agg(ps.count(), total=ps.sum("y"), most=ps.max("z"))
        .filter(ps.col("count") > 1)
    )


CHANGES: dict[str, Callable[[ps.Stream], ps.Stream]] = {
    "filter": lambda s: s.filter(ps.col("keep")),
    "another filter": lambda s: s.filter(~ps.col("keep")),
    "select": lambda s: s.select("t", "x"),
    "select in another order": lambda s: s.select("x", "t"),
    "with columns": lambda s: s.with_columns(y=ps.col("x") + 1),
    "with another name": lambda s: s.with_columns(z=ps.col("x") + 1),
    "with another literal": lambda s: s.with_columns(y=ps.col("x") + 2),
    "with a float literal": lambda s: s.with_columns(y=ps.col("x") + 1.0),
    "inner lookup": lambda s: s.lookup(ADS, on="k"),
    "left lookup": lambda s: s.lookup(ADS, on="k", how="left"),
    "lookup in another table": lambda s: s.lookup(ADS.slice(1), on="k"),
    "window": lambda s: s.window(ps.tumbling("1s")).agg(ps.count()),
    "window of another size": lambda s: s.window(ps.tumbling("2s")).agg(ps.count()),
    "window by key": lambda s: s.window(ps.tumbling("1s"), by="k").agg(ps.count()),
    "window with another aggregate": lambda s: s.window(ps.tumbling("1s")).agg(count=ps.sum("x")),
}


def test_equal_pipelines_are_equal() -> None:
    assert full() == full()
    assert hash(full()) == hash(full())
    assert len({full(), full(), base()}) == 2
    for change in CHANGES.values():
        assert change(base()) == change(base())
        assert hash(change(base())) == hash(change(base()))


def test_different_pipelines_differ() -> None:
    plans = [base(), *(change(base()) for change in CHANGES.values())]
    plans += [
        ps.stream(SCHEMA, time="t"),
        ps.stream(SCHEMA),
        ps.stream({**SCHEMA, "x": "int32"}, time="t", delay="2s"),
    ]
    for i, left in enumerate(plans):
        for j, right in enumerate(plans):
            assert (left == right) is (i == j), (i, j)
            assert (left != right) is (i != j), (i, j)


def test_equal_delays_are_equal_however_they_are_written() -> None:
    assert (
        base()
        == ps.stream(SCHEMA, time="t", delay=timedelta(seconds=2))
        == ps.stream(SCHEMA, time="t", delay="2000ms")
    )


def test_a_pipeline_equals_nothing_else() -> None:
    for other in (None, 1, "stream", base().schema, base().to_json()):
        assert (base() == other) is False


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_leaves_the_original_alone(change: str) -> None:
    stream = base()
    before = (stream.to_json(), stream.explain(), stream.schema, hash(stream))
    changed = CHANGES[change](stream)
    assert changed is not stream
    assert changed != stream
    assert (stream.to_json(), stream.explain(), stream.schema, hash(stream)) == before
    assert stream == base()


def test_attributes_cannot_be_set() -> None:
    for thing in (base(), base().schema, ps.col("x"), ps.count(), ps.tumbling("1s")):
        for name in ("time", "schema", "anything"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(thing, name, None)


@pytest.mark.parametrize("make", [full, base, *(lambda change=c: change(base()) for c in CHANGES.values())])
def test_json_and_pickle_keep_everything(make: Callable[[], ps.Stream]) -> None:
    stream = make()
    json.loads(stream.to_json())
    for again in (
        ps.Stream.from_json(stream.to_json()),
        pickle.loads(pickle.dumps(stream)),
        copy.copy(stream),
        copy.deepcopy(stream),
    ):
        assert isinstance(again, ps.Stream)
        assert again == stream
        assert hash(again) == hash(stream)
        assert (again.to_json(), again.explain()) == (stream.to_json(), stream.explain())
        assert (again.schema, again.time) == (stream.schema, stream.time)


@given(strategies.window_cases())
def test_any_plan_survives_json(case: tuple[Plan, list[Row]]) -> None:
    plan, rows = case
    stream = engine.build(plan)
    again = ps.Stream.from_json(stream.to_json())
    assert again == stream
    assert hash(again) == hash(stream)
    data = engine.table_of(plan.source.columns, rows)
    first, second = engine.run_quietly(stream, data), engine.run_quietly(again, data)
    assert as_bag(engine.rows_of(first)) == as_bag(engine.rows_of(second))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LITERALS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    TEXT,
    st.binary(max_size=20),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=5),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=-7)))),
    st.dates(),
    st.timedeltas(min_value=timedelta(days=-(10**6)), max_value=timedelta(days=10**6)),
)


@given(LITERALS, TEXT.filter(bool))
def test_any_literal_and_any_name_survive_json(value: object, name: str) -> None:
    literal = ps.lit(value)
    stream = ps.stream({name: "int64"}).filter(literal.is_null() | (ps.col(name) > 0))
    again = ps.Stream.from_json(stream.to_json())
    assert again == stream
    assert again.explain() == stream.explain()
    assert again.schema.names == [name]


ODD_LITERALS = [
    math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.1, 2**63, 2**64 - 1, -(2**63), 2**53 + 1, "",
    '"\\\n\x00\u2028',
    "\U0001f600", b"", bytes(range(256)), Decimal("-0.10"), Decimal("12345678901234567890.123456789"),
    datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 1, 1, tzinfo=UTC), date(1900, 2, 28),
    timedelta(microseconds=-1), True, None,
]  # fmt: skip


@pytest.mark.parametrize("value", ODD_LITERALS, ids=repr)
def test_odd_literals_survive_json(value: object) -> None:
    stream = ps.stream({"x": "int64"}).filter(ps.lit(value).is_not_null())
    again = ps.Stream.from_json(stream.to_json())
    assert again == stream
    kept = len(again.run(pa.table({"x": [1]})))
    assert kept == (0 if value is None else 1)


def test_a_lookup_table_travels_with_the_plan() -> None:
    table = pa.table(
        {
            "k": ["a", "b", "é"],
            "i": pa.array([1, None, -(2**63)], pa.int64()),
            "f": [math.nan, -0.0, None],
            "d": pa.array([Decimal("1.5"), None, Decimal("-2.5")], pa.decimal128(5, 1)),
            "w": pa.array([0, None, -1], pa.timestamp("us", "UTC")),
            "y": pa.array([b"\x00", None, b"\xff"]),
            "v": pa.array(["short", None, "longer than twelve bytes"], pa.string_view()),
            "c": pa.array(["p", None, "p"]).dictionary_encode(),
        }
    )
    stream = ps.stream({"k": "string"}).lookup(table, on="k", how="left")
    again = ps.Stream.from_json(stream.to_json())
    data = pa.table({"k": ["é", "a", "b", "missing"]})
    assert again == stream
    assert as_bag(engine.rows_of(again.run(data))) == as_bag(engine.rows_of(stream.run(data)))


def test_json_is_the_same_every_time() -> None:
    assert full().to_json() == full().to_json()


def test_a_plan_knows_its_columns_and_its_time() -> None:
    stream = base()
    assert stream.time == "t"
    assert stream.schema.names == list(SCHEMA)
    assert stream.schema.types == list(SCHEMA.values())
    assert len(stream.schema) == 5
    assert stream.filter(ps.col("keep")).time == "t"
    assert stream.select("x").time is None
    assert full().time == "window_end"
    assert ps.stream(SCHEMA).time is None


def test_repr_is_the_explanation() -> None:
    assert repr(full()) == full().explain()


def test_the_explanation_names_what_happens() -> None:
    text = full().explain()
    for word in ("keep", "group", "10s", "count", "total", "most", "left", "t", "2s"):
        assert word in text, word


EXPLAINED: dict[str, Callable[[], ps.Stream]] = {
    "explain_full": full,
    "explain_source": lambda: ps.stream({"a": "int64"}),
    "explain_expressions": lambda: base().select(
        "t",
        a=(ps.col("x") + 1) * 2 - ps.col("x") // 3 % 5,
        b=~(ps.col("keep") | (ps.col("f") >= 0.5)) ^ (ps.col("k") == "view"),
        c=-ps.col("f") / 2,
        d=ps.col("k").is_null() & ps.col("x").is_not_null(),
    ),
    "explain_literals": lambda: ps.stream({"x": "int64"}).filter(
        *(ps.lit(value).is_not_null() for value in (None, True, 1, 0.5, "it's", b"\x00", Decimal("1.50"))),
        ps.lit(datetime(2024, 5, 1, 12, tzinfo=UTC)).is_not_null(),
        ps.lit(date(2024, 5, 1)).is_not_null(),
        ps.lit(timedelta(milliseconds=1500)).is_not_null(),
    ),
    "explain_integer_time": lambda: ps.stream({"t": "int64", "k": "int32"}, time="t", delay=5)
    .lookup(pa.table({"k": pa.array([1], pa.int32()), "name": ["one"]}), on="k")
    .window(ps.tumbling(10), by=["k", "name"])
    .agg(ps.count("name"), ps.mean("k")),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPLAINED)
def test_explanations_are_as_written_down(name: str, snapshot: Callable[[str, str], None]) -> None:
    snapshot(name, EXPLAINED[name]().explain())
