"""What windows compute, for every aggregate and every type, against plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from reference.compare import assert_same_rows, same
from reference.engine import rows_of
from reference.grouping import KINDS, Aggregates, aggregated, build, cogrouped
from reference.options import run_one, run_options
from reference.strategies import LONG
from reference.types import I64_MAX, I64_MIN, Value
from reference.windowing import Windows, arrive

EXAMPLES = settings().max_examples
NAN, INF = float("nan"), float("inf")
U64_MAX = 2**64 - 1
TEXTS: list[Any] = ["", "a", "é", "z", LONG, LONG + "!", "\x00"]
BYTES: list[Any] = [b"", b"\x00", b"\xff", b"thirteen bytes", b"thirteen bytes!"]
FLOATS: list[Any] = [0.0, -0.0, 1.5, -2.25, 1e6, 0.5]
WHOLE: list[Any] = [0, 1, 2, -1, 100, -100]

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [0, 1, -1, 127, -128]),
    "int16": (pa.int16(), [0, 1, -1, 2**15 - 1, -(2**15)]),
    "int32": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31)]),
    "int64": (pa.int64(), [0, 1, -1, 2**53, -(2**53) - 1]),
    "uint8": (pa.uint8(), [0, 1, 255]),
    "uint16": (pa.uint16(), [0, 1, 2**16 - 1]),
    "uint32": (pa.uint32(), [0, 1, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 1, 2**58]),
    "float32": (pa.float32(), FLOATS),
    "float64": (pa.float64(), [*FLOATS, 0.1, 1e-9]),
    "bool": (pa.bool_(), [True, False]),
    "decimal": (pa.decimal128(12, 2), [Decimal(n).scaleb(-2) for n in (0, 1, -1, 250, -99, 10**9)]),
    "string": (pa.string(), TEXTS),
    "large_string": (pa.large_string(), TEXTS),
    "string_view": (pa.string_view(), TEXTS),
    "binary": (pa.binary(), BYTES),
    "large_binary": (pa.large_binary(), BYTES),
    "binary_view": (pa.binary_view(), BYTES),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "timestamp": (pa.timestamp("us"), [*WHOLE, I64_MAX, I64_MIN]),
    "timestamp of a zone": (pa.timestamp("ns", "UTC"), WHOLE),
    "date32": (pa.date32(), WHOLE),
    "date64": (pa.date64(), [0, 86_400_000, -86_400_000]),
    "time32": (pa.time32("ms"), [0, 1, 86_399_999]),
    "time64": (pa.time64("ns"), [0, 1, 86_399_999_999_999]),
    "duration": (pa.duration("ms"), WHOLE),
}
NUMBERS = [name for name in TYPES if name.startswith(("int", "uint", "float", "decimal"))]
ANY = ("count", "count_distinct", "first", "last", "min", "max")
SUPPORTED = {
    name: (
        *ANY,
        *(("sum", "mean", "var", "std") if name in NUMBERS else ("sum",) if name == "duration" else ()),
    )
    for name in TYPES
}
WINDOWS = [Windows("tumbling", 10), Windows("sliding", 10, 4), Windows("session", 3)]


def table(kind: pa.DataType, times: Sequence[int], values: Sequence[Any]) -> pa.Table:
    return pa.table({"t": pa.array(times, pa.int64()), "x": pa.array(values, kind)})


def over(kind: pa.DataType, windows: Windows, aggregates: Aggregates, delay: int = 10**6) -> ps.Stream:
    """All aggregates of the column `x`, over windows that are never late."""
    stream = ps.stream(pa.schema([("t", pa.int64()), ("x", kind)]), time="t", delay=delay)
    return stream.window(windows.build()).agg(**build(aggregates))


def compare(name: str, windows: Windows, cells: Sequence[tuple[int, Any]], **options: Any) -> None:
    kind = TYPES[name][0]
    aggregates: Aggregates = {agg: (agg, "x") for agg in SUPPORTED[name]}
    data = table(kind, [time for time, _ in cells], [value for _, value in cells])
    given_rows = [{"t": time, "x": value} for time, value in cells]
    expected, _ = aggregated(windows, arrive(given_rows, "t", 10**6), (), aggregates)
    result = run_one(over(kind, windows, aggregates), data.to_batches(max_chunksize=7), **options)
    assert_same_rows(expected, rows_of(result), ["window_start", "window_end"])


@pytest.mark.parametrize("name", TYPES)
def test_every_aggregate_of_every_type(name: str) -> None:
    pool = [*TYPES[name][1], None]

    @settings(max_examples=max(5, EXAMPLES // 15))
    @given(
        # Few different times, so that several rows are the first and the last.
        st.lists(
            st.tuples(st.sampled_from([-6, 1, 2, 8, 20]), st.sampled_from(pool)), min_size=5, max_size=30
        ),
        st.sampled_from(WINDOWS),
        run_options(),
    )
    def law(cells: list[tuple[int, Any]], windows: Windows, options: dict[str, Any]) -> None:
        compare(name, windows, cells, **options)

    law()


@pytest.mark.parametrize("name", TYPES)
def test_the_type_of_every_aggregate(name: str) -> None:
    kind = TYPES[name][0]
    # How text is stored is not what it is: a dictionary gives out its values.
    own = {pa.string() if pa.types.is_dictionary(kind) else kind, kind}
    query = over(kind, WINDOWS[0], {agg: (agg, "x") for agg in SUPPORTED[name]})
    types = {field.name: field.type for field in pa.schema(query.schema)}
    assert types["count"] == types["count_distinct"] == pa.int64()
    assert all(types[agg] in own for agg in ("first", "last", "min", "max"))
    if name in NUMBERS:
        assert types["mean"] == types["var"] == types["std"] == pa.float64()
        sums = {
            "int": pa.int64(),
            "uint": pa.uint64(),
            "float": pa.float64(),
            "decimal": pa.decimal128(38, 2),
        }
        assert types["sum"] == sums[name.rstrip("0123456789")]


@pytest.mark.parametrize("name", TYPES)
def test_aggregates_that_make_no_sense(name: str) -> None:
    stream = ps.stream(pa.schema([("t", pa.int64()), ("x", TYPES[name][0])]), time="t")
    for kind in set(KINDS) - set(SUPPORTED[name]):
        with pytest.raises(ps.TypeMismatchError):
            stream.window(ps.tumbling(10)).agg(x=KINDS[kind][0]("x"))


@pytest.mark.parametrize("windows", WINDOWS, ids=lambda windows: windows.kind)
@pytest.mark.parametrize(
    "cells", [[(1, None)], [(1, None), (2, None)], [(1, 5)], [(1, 5), (2, None)]], ids=repr
)
def test_nothing_but_nulls_and_one_value(windows: Windows, cells: list[tuple[int, Any]]) -> None:
    for name in TYPES:
        chosen = [(time, None if value is None else TYPES[name][1][0]) for time, value in cells]
        compare(name, windows, chosen)


@settings(max_examples=max(10, EXAMPLES // 6))
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from([*FLOATS, NAN, INF, -INF, None])),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(WINDOWS),
)
def test_floats_that_are_no_numbers(cells: list[tuple[int, Any]], windows: Windows) -> None:
    compare("float64", windows, cells)
    compare("float32", windows, cells)


# One by one.


def one(
    windows: Windows, kind: pa.DataType, cells: Sequence[tuple[int, Any]], **aggregates: ps.Aggregate
) -> Any:
    """The only window of these rows."""
    stream = ps.stream(pa.schema([("t", pa.int64()), ("x", kind)]), time="t", delay=100)
    query = stream.window(windows.build()).agg(**aggregates)
    rows = rows_of(run_one(query, table(kind, [time for time, _ in cells], [value for _, value in cells])))
    assert len(rows) == 1
    return {name: rows[0][name] for name in aggregates}


def test_first_and_last_go_by_time_and_then_by_value() -> None:
    cells = [(5, "m"), (3, "z"), (8, "b"), (3, "c"), (8, "y"), (1, None), (9, None), (4, "a")]
    ends = {"first": ps.first("x"), "last": ps.last("x")}
    for order in (cells, cells[::-1], sorted(cells, key=repr)):
        assert one(Windows("tumbling", 10), pa.string(), order, **ends) == {"first": "c", "last": "y"}


def test_the_same_value_is_counted_once_however_it_is_written() -> None:
    cells = [(n, value) for n, value in enumerate([0.0, -0.0, NAN, -NAN, math.nan, 1.0, None])]
    assert one(Windows("tumbling", 10), pa.float64(), cells, n=ps.count_distinct("x")) == {"n": 3}


def test_many_different_values() -> None:
    cells = [(n % 10, f"value number {n % 777}") for n in range(3_000)]
    assert one(Windows("tumbling", 10), pa.string(), cells, n=ps.count_distinct("x")) == {"n": 777}


def test_expressions_are_aggregated_too() -> None:
    chosen = {
        "n": ps.count_distinct(ps.col("x") % 3),
        "last": ps.last(ps.col("x") * 10),
        "v": ps.var(ps.col("x") * 2),
    }
    found = one(Windows("tumbling", 10), pa.int64(), [(1, 4), (2, 7), (3, 9)], **chosen)
    assert (found["n"], found["last"]) == (2, 90)
    assert found["v"] == pytest.approx(4 * 19 / 3)


@pytest.mark.parametrize("windows", WINDOWS, ids=lambda windows: windows.kind)
def test_the_variance_of_values_far_from_zero(windows: Windows) -> None:
    """Squares that are summed up and taken apart again would have lost all digits."""
    start = 1 if windows.kind != "sliding" else 8
    times = [start, start + 1, start + 1, start]
    cells = [(time, 1e9 + value) for time, value in zip(times, (4.0, 7.0, 13.0, 16.0), strict=True)]
    stream = ps.stream({"t": "int64", "x": "float64"}, time="t", delay=100)
    query = stream.window(windows.build()).agg(var=ps.var("x"), std=ps.std("x"), n=ps.count())
    rows = rows_of(run_one(query, table(pa.float64(), times, [value for _, value in cells])))
    whole = [row for row in rows if row["n"] == 4]
    assert whole
    for row in whole:
        assert row["var"] == pytest.approx(30, rel=1e-6)
        assert row["std"] == pytest.approx(30**0.5, rel=1e-6)


def test_the_variance_across_the_panes_of_a_sliding_window() -> None:
    times, values = list(range(40)), [1e8 + (n * 7 % 11) for n in range(40)]
    stream = ps.stream({"t": "int64", "x": "float64"}, time="t")
    query = stream.window(ps.sliding(20, 3)).agg(var=ps.var("x"))
    rows = rows_of(run_one(query, table(pa.float64(), times, values)))
    assert len(rows) > 10
    for row in rows:
        low = int(str(row["window_start"]))
        held = [value - 1e8 for time, value in zip(times, values, strict=True) if low <= time < low + 20]
        middle = sum(held) / len(held)
        expected = sum((value - middle) ** 2 for value in held) / (len(held) - 1) if len(held) > 1 else None
        assert row["var"] == (None if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-6))


# Totals that do not fit.

LARGEST = Decimal(10**38 - 1)
OVERFLOWS = {
    "int64": (pa.int64(), I64_MAX, 1),
    "int64, below": (pa.int64(), I64_MIN, -1),
    "uint64": (pa.uint64(), U64_MAX, 1),
    "duration": (pa.duration("s"), I64_MAX, 1),
    "decimal": (pa.decimal128(38, 0), LARGEST, Decimal(1)),
}


@pytest.mark.parametrize("windows", WINDOWS, ids=lambda windows: windows.kind)
@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_total_that_does_not_fit(name: str, windows: Windows) -> None:
    kind, large, small = OVERFLOWS[name]
    query = over(kind, windows, {"total": ("sum", "x")})
    # In different panes of a sliding window, and in two sessions that a third row makes one.
    for times in ([1, 1], [8, 9], [9, 8]):
        with pytest.raises(ps.ComputeError):
            run_one(query, table(kind, times, [large, small]))
    with pytest.raises(ps.ComputeError):
        run_one(query, table(kind, [1, 5, 3], [large, small, None]))
    apart = run_one(query, table(kind, [1, 35], [large, small]))
    assert {row["total"] for row in rows_of(apart)} == {large, small}


@pytest.mark.parametrize("windows", WINDOWS, ids=lambda windows: windows.kind)
@pytest.mark.parametrize("order", [[0, 1, 2], [0, 2, 1], [1, 2, 0]], ids=repr)
def test_a_total_that_fits_in_the_end(windows: Windows, order: list[int]) -> None:
    """What does not fit is the total, not a sum on the way to it: the order of rows does not matter."""
    cells = [(9, I64_MAX), (9, 1), (9, -1)]
    query = over(pa.int64(), windows, {"total": ("sum", "x")})
    data = table(pa.int64(), [9] * 3, [cells[n][1] for n in order])
    assert {row["total"] for row in rows_of(run_one(query, data))} == {I64_MAX}


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_narrow_numbers_have_wide_totals(name: str) -> None:
    kind, pool = TYPES[name]
    found = one(Windows("tumbling", 10), kind, [(1, max(pool))] * 1000, total=ps.sum("x"), mean=ps.mean("x"))
    assert found == {"total": 1000 * max(pool), "mean": float(max(pool))}


def test_large_whole_numbers_have_a_mean() -> None:
    cells = [(1, I64_MAX), (2, I64_MAX), (3, I64_MAX)]
    assert one(Windows("tumbling", 10), pa.int64(), cells, mean=ps.mean("x")) == {"mean": float(I64_MAX)}


# Names.


def test_the_names_of_aggregates() -> None:
    every = [make("x") for make, _ in KINDS.values()]
    assert {made.name for made in every} == {f"x_{kind}" for kind in KINDS}
    stream = ps.stream({"t": "int64", "x": "int64"}, time="t")
    names = stream.window(ps.tumbling(10)).agg(*every).schema.names
    assert names == ["window_start", "window_end", *(f"x_{kind}" for kind in KINDS)]


def test_a_key_without_aggregates_gives_each_key_once() -> None:
    query = ps.stream({"t": "int64", "x": "int64"}, time="t").window(ps.tumbling(10), by="x").agg()
    rows = rows_of(run_one(query, table(pa.int64(), [1, 2, 3, 11], [7, 7, None, 7])))
    assert sorted((row["window_start"], row["x"] is None) for row in rows) == [
        (0, False),
        (0, True),
        (10, False),
    ]
    with pytest.raises(ps.PlanError):
        ps.stream({"t": "int64"}, time="t").window(ps.tumbling(10)).agg()


# Of two streams.


@settings(max_examples=max(10, EXAMPLES // 6))
@given(
    st.lists(st.tuples(st.integers(0, 25), st.sampled_from([*FLOATS, None])), max_size=15),
    st.lists(st.tuples(st.integers(0, 25), st.sampled_from([*TEXTS, None])), max_size=15),
    st.sampled_from(WINDOWS),
    run_options(),
)
def test_every_aggregate_of_two_streams(
    left: list[tuple[int, Any]], right: list[tuple[int, Any]], windows: Windows, options: dict[str, Any]
) -> None:
    numbers: Aggregates = {f"l_{kind}": (kind, "x") for kind in KINDS}
    texts: Aggregates = {"rows": ("count", None), **{f"r_{kind}": (kind, "x") for kind in ANY}}
    floats = ps.stream({"t": "int64", "x": "float64"}, time="t", delay=100, name="floats")
    strings = ps.stream({"t": "int64", "x": "string"}, time="t", delay=100, name="strings")
    query = floats.cogroup(strings, window=windows.build()).agg(left=build(numbers), right=build(texts))
    sides = [arrive([{"t": time, "x": value} for time, value in side], "t", 100) for side in (left, right)]
    expected, _ = cogrouped(windows, (sides[0], sides[1]), ((), ()), (numbers, texts))
    data = {
        "floats": table(pa.float64(), [time for time, _ in left], [value for _, value in left]),
        "strings": table(pa.string(), [time for time, _ in right], [value for _, value in right]),
    }
    assert_same_rows(expected, rows_of(run_one(query, data, **options)), ["window_start", "window_end"])


def test_the_reference_tells_values_apart() -> None:
    """The comparison that all of these rest on."""
    close: list[tuple[Value, Value]] = [(1, 2), (1, None), (1.0, 1.5), (NAN, 1.0), ("a", "b"), (True, 1)]
    assert not any(same(left, right) for left, right in close)
