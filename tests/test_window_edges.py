"""The edges of windows, each with the answer written out by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

import penstock as ps
from reference import plans
from reference.engine import assert_nothing_lost, rows_of, run_quietly
from reference.types import I64_MAX, I64_MIN, INT64, Value

Windows = dict[tuple[int, int], int]


@dataclass(frozen=True)
class Edge:
    """Times in arrival order, and the rows per window that must come out."""

    name: str
    times: list[int]
    windows: Windows
    late: int = 0
    size: int = 10
    delay: int = 0


EDGES = [
    Edge("no row", [], {}),
    Edge("one row", [5], {(0, 10): 1}),
    Edge("a row at the start belongs to the window", [0], {(0, 10): 1}),
    Edge("the last unit belongs to the window", [9], {(0, 10): 1}),
    Edge("a row at the end belongs to the next window", [10], {(10, 20): 1}),
    Edge("the row that closes a window is not counted in it", [1, 2, 10], {(0, 10): 2, (10, 20): 1}),
    Edge("minus one is in the window before zero", [-1], {(-10, 0): 1}),
    Edge("minus ten starts a window", [-10], {(-10, 0): 1}),
    Edge("minus eleven ends one", [-11], {(-20, -10): 1}),
    Edge("negative times in order", [-15, -5, 5], {(-20, -10): 1, (-10, 0): 1, (0, 10): 1}),
    Edge("windows are aligned to the epoch, not to the first row", [7, 12], {(0, 10): 1, (10, 20): 1}),
    Edge("out of order within the window is not late", [9, 3, 0, 8], {(0, 10): 4}),
    Edge("late by one unit", [10, 9], {(10, 20): 1}, late=1),
    Edge("before the end nothing is late", [9, 0], {(0, 10): 2}),
    Edge("on the watermark is not late", [10, 10], {(10, 20): 2}),
    Edge("below the watermark in an open window is not late", [19, 11], {(10, 20): 2}),
    Edge("late below zero", [0, -1], {(0, 10): 1}, late=1),
    Edge("the first row is never late", [-1000], {(-1000, -990): 1}),
    Edge("each late row counts", [100, 1, 2, 3, 101], {(100, 110): 2}, late=3),
    Edge("a late row does not move the watermark back", [100, 1, 95], {(100, 110): 1}, late=2),
    Edge("duplicates all count", [4, 4, 4], {(0, 10): 3}),
    Edge("the delay holds the window open", [12, 9], {(0, 10): 1, (10, 20): 1}, delay=3),
    Edge("up to its last unit", [12, 0, 12, 1], {(0, 10): 2, (10, 20): 2}, delay=3),
    Edge("and not one longer", [13, 9], {(10, 20): 1}, late=1, delay=3),
    Edge("a delay of one", [10, 9, 11, 9], {(0, 10): 1, (10, 20): 2}, late=1, delay=1),
    Edge("a delay of exactly a window", [20, 10, 9], {(20, 30): 1, (10, 20): 1}, late=1, delay=10),
    Edge("a gap of many windows", [0, 10**15, 10**15 + 1], {(0, 10): 1, (10**15, 10**15 + 10): 2}),
    Edge("several windows open at once", [0, 25, 13, 5], {(0, 10): 2, (20, 30): 1, (10, 20): 1}, delay=100),
    Edge("end of input closes all", [3, 13, 23], {(0, 10): 1, (10, 20): 1, (20, 30): 1}, delay=10**6),
    Edge("windows of one unit", [0, 1, 1, -1, 2], {(0, 1): 1, (1, 2): 2, (2, 3): 1}, late=1, size=1),
    Edge("the greatest time", [I64_MAX], {(I64_MAX - 7, I64_MAX): 1}),
    Edge("the least time", [I64_MIN], {(I64_MIN, I64_MIN + 8): 1}),
    Edge("least to greatest", [I64_MIN, I64_MAX], {(I64_MIN, I64_MIN + 8): 1, (I64_MAX - 7, I64_MAX): 1}),
    Edge("greatest to least", [I64_MAX, I64_MIN], {(I64_MAX - 7, I64_MAX): 1}, late=1),
    Edge("twice the greatest", [I64_MAX, I64_MAX], {(I64_MAX - 7, I64_MAX): 2}),
    Edge("the watermark stops at the least time", [I64_MIN, I64_MIN], {(I64_MIN, I64_MIN + 8): 2}, delay=5),
    Edge(
        "a delay as long as time itself",
        [I64_MAX, -1, I64_MIN, 0],
        {(I64_MAX - 7, I64_MAX): 1, (0, 10): 1},
        late=2,
        delay=I64_MAX,
    ),
    Edge("a window as long as time itself", [0, I64_MAX - 1, I64_MAX, -1, I64_MIN],
         {(0, I64_MAX): 2, (I64_MAX, I64_MAX): 1}, late=2, size=I64_MAX),
    Edge("half the time behind zero", [I64_MIN, -I64_MAX, -1, 0],
         {(I64_MIN, -I64_MAX): 1, (-I64_MAX, 0): 2, (0, I64_MAX): 1}, size=I64_MAX),
]  # fmt: skip


def counts(result: ps.Result) -> dict[tuple[Value, Value], Value]:
    """Rows per window."""
    rows = rows_of(result)
    found = {(row["window_start"], row["window_end"]): row["n"] for row in rows}
    assert len(found) == len(rows), "a window came out twice"
    return found


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
@pytest.mark.parametrize("one_by_one", [False, True], ids=["one batch", "a batch per row"])
def test_edge(edge: Edge, one_by_one: bool) -> None:
    stream = ps.stream({"t": "int64"}, time="t", delay=edge.delay)
    query = stream.window(ps.tumbling(edge.size)).agg(n=ps.count())
    table = pa.table({"t": pa.array(edge.times, pa.int64())})
    result = run_quietly(query, table.to_batches(max_chunksize=1) if one_by_one else table)
    assert counts(result) == edge.windows
    assert result.rows_late == edge.late
    assert_nothing_lost(result)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
def test_the_reference_agrees_with_the_hand(edge: Edge) -> None:
    window = plans.Window(edge.size, (), (plans.Agg("n", "count"),))
    plan = plans.Plan(plans.Source((("t", INT64),), "t", edge.delay), (window,))
    outcome = plans.run(plan, [{"t": time} for time in edge.times])
    found = {(row["window_start"], row["window_end"]): row["n"] for row in outcome.rows}
    assert (found, outcome.rows_late) == (edge.windows, edge.late)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_behave_as_integers(unit: str) -> None:
    stream = ps.stream({"t": f"timestamp[{unit}]"}, time="t", delay=f"3{unit}")
    query = stream.window(ps.tumbling(f"10{unit}")).agg(n=ps.count())
    for edge in (edge for edge in EDGES if edge.delay == 3 and edge.size == 10):
        table = pa.table({"t": pa.array(edge.times, pa.timestamp(unit))})
        result = run_quietly(query, table)
        assert counts(result) == edge.windows, edge.name
        assert result.rows_late == edge.late, edge.name
        assert result.to_arrow().schema.field("window_start").type == pa.timestamp(unit)
        assert result.to_arrow().schema.field("window_end").type == pa.timestamp(unit)


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_narrow_integers_have_wide_windows(kind: str) -> None:
    """Window bounds of integer times are int64, so the last window's end need not fit the column."""
    arrow = getattr(pa, kind)()
    top = 2 ** (arrow.bit_width - (0 if kind.startswith("u") else 1)) - 1
    query = ps.stream({"t": kind}, time="t").window(ps.tumbling(10)).agg(n=ps.count())
    result = run_quietly(query, pa.table({"t": pa.array([0, top], arrow)}))
    start = top - top % 10
    assert counts(result) == {(0, 10): 1, (start, start + 10): 1}
    assert result.to_arrow().schema.field("window_end").type == pa.int64()


def test_dates_are_clamped_to_their_range() -> None:
    low, high = -(2**31), 2**31 - 1
    query = ps.stream({"t": "date32"}, time="t").window(ps.tumbling("7d")).agg(n=ps.count())
    times = pa.array([low, 0, high], pa.int32()).cast(pa.date32())
    result = run_quietly(query, pa.table({"t": times}))
    first, last = low // 7 * 7 + 7, high // 7 * 7
    assert counts(result) == {(low, first): 1, (0, 7): 1, (last, high): 1}
    assert result.to_arrow().schema.field("window_start").type == pa.date32()


def test_a_zone_changes_neither_windows_nor_type() -> None:
    kind = pa.timestamp("ms", "America/New_York")
    query = ps.stream(pa.schema([("t", kind)]), time="t").window(ps.tumbling("1h")).agg(n=ps.count())
    result = query.run(pa.table({"t": pa.array([-1, 0, 3_600_000], kind)}))
    assert counts(result) == {(-3_600_000, 0): 1, (0, 3_600_000): 1, (3_600_000, 7_200_000): 1}
    assert result.to_arrow().schema.field("window_start").type == kind


def test_filtered_rows_still_advance_the_watermark() -> None:
    stream = ps.stream({"t": "int64", "keep": "bool"}, time="t")
    query = stream.filter(ps.col("keep")).window(ps.tumbling(10)).agg(n=ps.count())
    table = pa.table({"t": [5, 25, 7, 26], "keep": [True, False, True, True]})
    result = run_quietly(query, table)
    assert counts(result) == {(0, 10): 1, (20, 30): 1}
    assert (result.rows_filtered, result.rows_late) == (1, 1)
    assert_nothing_lost(result)


def test_rows_without_a_match_still_advance_the_watermark() -> None:
    stream = ps.stream({"t": "int64", "k": "int64"}, time="t")
    query = (
        stream.lookup(pa.table({"k": [1], "g": [9]}), on="k")
        .window(ps.tumbling(10), by="g")
        .agg(n=ps.count())
    )
    result = run_quietly(query, pa.table({"t": [5, 25, 7], "k": [1, 2, 1]}))
    assert counts(result) == {(0, 10): 1}
    assert (result.rows_filtered, result.rows_late) == (1, 1)


def test_a_filtered_late_row_counts_as_filtered() -> None:
    stream = ps.stream({"t": "int64", "keep": "bool"}, time="t")
    query = stream.filter(ps.col("keep")).window(ps.tumbling(10)).agg(n=ps.count())
    result = run_quietly(query, pa.table({"t": [25, 5], "keep": [True, False]}))
    assert (result.rows_filtered, result.rows_late) == (1, 0)
    assert_nothing_lost(result)


def test_a_window_of_which_only_late_rows_are_left_does_not_come_out() -> None:
    query = ps.stream({"t": "int64"}, time="t").window(ps.tumbling(10)).agg(n=ps.count())
    assert counts(run_quietly(query, pa.table({"t": [50, 1, 2]}))) == {(50, 60): 1}


def test_windows_are_per_key_but_time_is_not() -> None:
    """A row of one key closes the windows of every key."""
    stream = ps.stream({"t": "int64", "k": "string"}, time="t")
    query = stream.window(ps.tumbling(10), by="k").agg(n=ps.count())
    result = run_quietly(query, pa.table({"t": [1, 30, 2, 31], "k": ["a", "b", "a", "a"]}))
    found = {(row["window_start"], row["k"]): row["n"] for row in rows_of(result)}
    assert found == {(0, "a"): 1, (30, "b"): 1, (30, "a"): 1}
    assert result.rows_late == 1
