"""Sliding windows, and tumbling ones that are moved: their edges by hand, and random streams by reference."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from reference import windowed_cases
from reference.compare import as_bag
from reference.engine import batches_of, rows_of
from reference.grouping import aggregated
from reference.options import run_one
from reference.types import I64_MAX, I64_MIN, INT64
from reference.windowed_cases import Case, Edge
from reference.windowing import Windows, arrive

EXAMPLES = settings().max_examples
TEN_FIVE = Windows("sliding", 10, 5)
MOVED = Windows("tumbling", 10, 0, 3)

EDGES = [
    Edge("no row", [], {}),
    Edge("one row is in two windows", [7], {(0, 10): 1, (5, 15): 1}),
    Edge("a row at a start is in the window that starts", [5], {(0, 10): 1, (5, 15): 1}),
    Edge("the last unit before a start is not", [4], {(-5, 5): 1, (0, 10): 1}),
    Edge("a row at an end is not in the window that ends", [10], {(5, 15): 1, (10, 20): 1}),
    Edge("the row that closes a window is not counted in it", [1, 2, 10],
         {(-5, 5): 2, (0, 10): 2, (5, 15): 1, (10, 20): 1}),
    Edge("minus one is in the window before zero", [-1], {(-10, 0): 1, (-5, 5): 1}),
    Edge("minus five starts one", [-5], {(-10, 0): 1, (-5, 5): 1}),
    Edge("minus six does not", [-6], {(-15, -5): 1, (-10, 0): 1}),
    Edge("a row may be late for one window and not for the next", [12, 7], {(5, 15): 2, (10, 20): 1}),
    Edge("it is late when its last window is over", [15, 9], {(10, 20): 1, (15, 25): 1}, late=1),
    Edge("and not a unit before", [14, 9], {(5, 15): 2, (10, 20): 1}),
    Edge("late by one unit, below zero", [5, -1], {(0, 10): 1, (5, 15): 1}, late=1),
    Edge("the delay holds windows open", [12, 7], {(0, 10): 1, (5, 15): 2, (10, 20): 1}, delay=3),
    Edge("and not one longer", [12, 7], {(5, 15): 2, (10, 20): 1}, delay=2),
    Edge("the first row is never late", [-1000], {(-1005, -995): 1, (-1000, -990): 1}),
    Edge("each late row counts", [100, 1, 2, 3, 101], {(95, 105): 2, (100, 110): 2}, late=3),
    Edge("duplicates all count", [6, 6, 6], {(0, 10): 3, (5, 15): 3}),
    Edge("a gap of many windows", [0, 10**15],
         {(-5, 5): 1, (0, 10): 1, (10**15 - 5, 10**15 + 5): 1, (10**15, 10**15 + 10): 1}),
    Edge("out of order is not late", [14, 6, 10, 5], {(0, 10): 2, (5, 15): 4, (10, 20): 2}, delay=5),
    Edge("end of input closes all", [3, 13], {(-5, 5): 1, (0, 10): 1, (5, 15): 1, (10, 20): 1}, delay=10**6),
    Edge("the greatest time", [I64_MAX], {(I64_MAX - 7, I64_MAX): 1, (I64_MAX - 2, I64_MAX): 1}),
    Edge("the least time", [I64_MIN], {(I64_MIN, I64_MIN + 3): 1, (I64_MIN, I64_MIN + 8): 1}),
    Edge("greatest to least", [I64_MAX, I64_MIN],
         {(I64_MAX - 7, I64_MAX): 1, (I64_MAX - 2, I64_MAX): 1}, late=1),
    Edge("least to greatest", [I64_MIN, I64_MAX],
         {(I64_MIN, I64_MIN + 3): 1, (I64_MIN, I64_MIN + 8): 1,
          (I64_MAX - 7, I64_MAX): 1, (I64_MAX - 2, I64_MAX): 1}),
    Edge("twice the greatest", [I64_MAX, I64_MAX], {(I64_MAX - 7, I64_MAX): 2, (I64_MAX - 2, I64_MAX): 2}),
    Edge("the watermark stops at the least time", [I64_MIN, I64_MIN],
         {(I64_MIN, I64_MIN + 3): 2, (I64_MIN, I64_MIN + 8): 2}, delay=5),
]  # fmt: skip
EDGES = [Edge(f"sliding: {e.name}", e.times, e.windows, e.late, TEN_FIVE, e.delay) for e in EDGES]

OTHERS = [
    Edge("a slide that does not divide the size", [0, 3],
         {(-8, 2): 1, (-4, 6): 2, (0, 10): 2}, cut=Windows("sliding", 10, 4)),
    Edge("a slide of one", [0], {(-2, 1): 1, (-1, 2): 1, (0, 3): 1}, cut=Windows("sliding", 3, 1)),
    Edge("a slide of the size is tumbling", [9, 10], {(0, 10): 1, (10, 20): 1},
         cut=Windows("sliding", 10, 10)),
    Edge("windows of one unit", [0, 1, 1, -1, 2], {(0, 1): 1, (1, 2): 2, (2, 3): 1}, late=1,
         cut=Windows("sliding", 1, 1)),
    Edge("an offset", [0], {(-8, 2): 1, (-3, 7): 1}, cut=Windows("sliding", 10, 5, 2)),
    Edge("an offset of more than the slide", [0], {(-8, 2): 1, (-3, 7): 1},
         cut=Windows("sliding", 10, 5, 12)),
    Edge("a negative offset", [0], {(-8, 2): 1, (-3, 7): 1}, cut=Windows("sliding", 10, 5, -3)),
    Edge("as long as time itself", [0, I64_MAX - 1, I64_MAX, -1],
         {(0, I64_MAX): 2, (I64_MAX, I64_MAX): 1}, late=1, cut=Windows("sliding", I64_MAX, I64_MAX)),
    Edge("tumbling, moved: no row", [], {}, cut=MOVED),
    Edge("tumbling, moved: before the start", [2], {(-7, 3): 1}, cut=MOVED),
    Edge("tumbling, moved: the start", [3], {(3, 13): 1}, cut=MOVED),
    Edge("tumbling, moved: the end", [12, 13], {(3, 13): 1, (13, 23): 1}, cut=MOVED),
    Edge("tumbling, moved: below zero", [-7, -8], {(-7, 3): 1}, late=1, cut=MOVED),
    Edge("tumbling, moved: late by one unit", [13, 12], {(13, 23): 1}, late=1, cut=MOVED),
    Edge("tumbling, moved: not late at the epoch", [12, 9], {(3, 13): 2}, cut=MOVED),
    Edge("tumbling, moved by more than the size", [2, 3], {(-7, 3): 1, (3, 13): 1},
         cut=Windows("tumbling", 10, 0, 13)),
    Edge("tumbling, moved back", [2, 3], {(-7, 3): 1, (3, 13): 1}, cut=Windows("tumbling", 10, 0, -7)),
    Edge("tumbling, moved: the greatest time", [I64_MAX], {(I64_MAX - 4, I64_MAX): 1}, cut=MOVED),
    Edge("tumbling, moved: the least time", [I64_MIN], {(I64_MIN, I64_MIN + 1): 1}, cut=MOVED),
    Edge("tumbling, moved: a gap of many windows", [0, 10**15], {(-7, 3): 1, (10**15 - 7, 10**15 + 3): 1},
         cut=MOVED),
]  # fmt: skip
ALL = [*EDGES, *OTHERS]


@pytest.mark.parametrize("edge", ALL, ids=lambda edge: edge.name)
@pytest.mark.parametrize("one_by_one", [False, True], ids=["one batch", "a batch per row"])
def test_edge(edge: Edge, one_by_one: bool) -> None:
    stream = ps.stream({"t": "int64"}, time="t", delay=edge.delay)
    query = stream.window(edge.cut.build()).agg(n=ps.count())
    table = pa.table({"t": pa.array(edge.times, pa.int64())})
    result = run_one(query, table.to_batches(max_chunksize=1) if one_by_one else table)
    rows = rows_of(result)
    assert {(row["window_start"], row["window_end"]): row["n"] for row in rows} == edge.windows
    assert len(rows) == len(edge.windows), "a window came out twice"
    assert result.rows_late == edge.late


@pytest.mark.parametrize("edge", ALL, ids=lambda edge: edge.name)
def test_the_reference_agrees_with_the_hand(edge: Edge) -> None:
    arrived = arrive([{"t": time} for time in edge.times], "t", edge.delay)
    rows, late = aggregated(edge.cut, arrived, (), {"n": ("count", None)})
    found = {(row["window_start"], row["window_end"]): row["n"] for row in rows}
    assert (found, len(late)) == (edge.windows, edge.late)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_behave_as_integers(unit: str) -> None:
    stream = ps.stream({"t": f"timestamp[{unit}]"}, time="t")
    for edge in (edge for edge in ALL if edge.delay == 0):
        query = stream.window(edge.cut.build(unit if edge.cut.size < 100 else "")).agg(n=ps.count())
        result = run_one(query, pa.table({"t": pa.array(edge.times, pa.timestamp(unit))}))
        found = {(row["window_start"], row["window_end"]): row["n"] for row in rows_of(result)}
        assert found == edge.windows, edge.name
        assert result.to_arrow().schema.field("window_end").type == pa.timestamp(unit)


def test_a_duration_may_be_a_timedelta() -> None:
    clicks = ps.stream({"t": "timestamp[ms]"}, time="t")
    data = pa.table({"t": pa.array([0, 700, 1400], pa.timestamp("ms"))})
    texts = clicks.window(ps.sliding("1s", "500ms", offset="100ms")).agg(n=ps.count())
    values = clicks.window(
        ps.sliding(
            timedelta(seconds=1), timedelta(milliseconds=500), offset=timedelta(milliseconds=100)
        )
    ).agg(n=ps.count())  # fmt: skip
    expected = {-900: 1, -400: 1, 100: 1, 600: 2, 1100: 1}
    for query in (texts, values):
        assert {row["window_start"]: row["n"] for row in rows_of(query.run(data))} == expected


def test_days_slide_over_dates() -> None:
    days = ps.stream({"t": "date32"}, time="t").window(ps.sliding("7d", "1d"))
    data = pa.table({"t": pa.array([-1, 0, 6], pa.int32()).cast(pa.date32())})
    found = {row["window_start"]: row["n"] for row in rows_of(days.agg(n=ps.count()).run(data))}
    assert found == {
        **{-7: 1},
        **dict.fromkeys(range(-6, -1), 2),
        **{-1: 2, 0: 2},
        **dict.fromkeys(range(1, 7), 1),
    }


@settings(max_examples=max(10, EXAMPLES * 2 // 3))
@given(windowed_cases.cases(windowed_cases.sliding_windows()))
def test_random_streams_equal_the_reference(case: Case) -> None:
    windowed_cases.check(case)


@settings(max_examples=max(10, EXAMPLES // 3))
@given(windowed_cases.cases(windowed_cases.tumbling_windows()))
def test_moved_tumbling_windows_equal_the_reference(case: Case) -> None:
    windowed_cases.check(case)


@settings(max_examples=max(10, EXAMPLES // 6))
@given(windowed_cases.cases(windowed_cases.sliding_windows()), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter_when_nothing_is_late(case: Case, rng: Random) -> None:
    rows = list(case.rows)
    rng.shuffle(rows)
    far = [min(max(int(str(row["t"])), -(2**61)), 2**61) for row in rows]
    rows = [{**row, "t": time} for row, time in zip(rows, far, strict=True)]
    case = Case(case.windows, case.time, case.key, case.by, 2**63 - 1, rows, case.cuts, case.options)
    assert windowed_cases.check(case).rows_late == 0


def test_a_slide_of_the_size_gives_what_tumbling_gives() -> None:
    stream = ps.stream({"t": "int64", "k": "string"}, time="t", delay=4)
    data = pa.table({"t": [1, 13, 9, 27, -3, 14, 25], "k": ["a", "b", None, "a", "a", "b", "a"]})
    one, other = (
        run_one(stream.window(window, by="k").agg(n=ps.count()), data)
        for window in (ps.sliding(10, 10), ps.tumbling(10))
    )
    assert as_bag(rows_of(one)) == as_bag(rows_of(other))
    assert one.rows_late == other.rows_late == 2


def test_a_budget_holds_rows_of_many_windows_once() -> None:
    """A row in a hundred windows is not kept a hundred times."""
    stream = ps.stream({"t": "int64", "k": "int64"}, time="t")
    query = stream.window(ps.sliding(1000, 10), by="k").agg(n=ps.count(), total=ps.sum("k"))
    columns = pa.table(
        {"t": pa.array(range(5_000), pa.int64()), "k": pa.array([n % 50 for n in range(5_000)])}
    )
    result = run_one(query, columns, budget="16MiB")
    rows = rows_of(result)
    assert sum(int(str(row["n"])) for row in rows) == 5_000 * 100
    full = [row for row in rows if 0 <= int(str(row["window_start"])) <= 4_000]
    assert {row["n"] for row in full} == {20}


@pytest.mark.parametrize(
    ("size", "slide"), [(0, 1), (10, 0), (-10, 5), (10, -5), (10, 11), ("10s", 5), ("10s", "5s")]
)
def test_lengths_that_make_no_sense(size: int | str, slide: int | str) -> None:
    with pytest.raises(ps.DurationError):
        ps.stream({"t": "int64"}, time="t").window(ps.sliding(size, slide)).agg(ps.count())


@pytest.mark.parametrize("bad", [1.5, None, b"10s", True])
def test_lengths_that_are_none(bad: object) -> None:
    with pytest.raises(TypeError):
        ps.sliding(bad, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ps.sliding(10, bad)  # type: ignore[arg-type]


def test_batches_may_be_empty() -> None:
    columns = (("t", INT64),)
    query = ps.stream({"t": "int64"}, time="t").window(ps.sliding(10, 5)).agg(n=ps.count())
    result = run_one(query, batches_of(columns, [{"t": 7}], [0, 0, 1, 1]))
    assert as_bag(rows_of(result)) == as_bag(
        [{"window_start": 0, "window_end": 10, "n": 1}, {"window_start": 5, "window_end": 15, "n": 1}]
    )
