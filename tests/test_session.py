"""Session windows: their edges by hand, random streams by reference, and no trace of the order of arrival."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference import windowed_cases
from reference.compare import as_bag
from reference.engine import rows_of
from reference.grouping import aggregated
from reference.options import run_one
from reference.plans import Row
from reference.types import I64_MAX, I64_MIN, Value
from reference.windowed_cases import Case, Edge
from reference.windowing import Windows, arrive

EXAMPLES = settings().max_examples
TEN = Windows("session", 10)

EDGES = [
    Edge("no row", [], {}),
    Edge("one row", [5], {(5, 15): 1}),
    Edge("a session is not aligned to anything", [7, 8], {(7, 18): 2}),
    Edge("one unit less than the gap goes on", [0, 9], {(0, 19): 2}),
    Edge("the gap ends it", [0, 10], {(0, 10): 1, (10, 20): 1}),
    Edge("longer than the gap as a whole", [0, 9, 18, 27], {(0, 37): 4}),
    Edge("a row between two makes them one", [0, 18, 9], {(0, 28): 3}),
    Edge("a row at both gaps leaves three", [0, 20, 11, 31], {(0, 10): 1, (11, 30): 2, (31, 41): 1}),
    Edge("a row before the first", [9, 0], {(0, 19): 2}),
    Edge("below zero", [-15, -6], {(-15, 4): 2}),
    Edge("a pause below zero", [-30, -20, -11], {(-30, -20): 1, (-20, -1): 2}),
    Edge("late by one unit", [20, 10], {(20, 30): 1}, late=1),
    Edge("not late by one unit", [20, 11], {(11, 30): 2}),
    Edge("late below zero", [0, -10], {(0, 10): 1}, late=1),
    Edge("a delay of one", [20, 10], {(10, 20): 1, (20, 30): 1}, delay=1),
    Edge("the delay and not one longer", [23, 10], {(23, 33): 1}, late=1, delay=3),
    Edge("a session that is over waits for a row that reaches it", [0, 15, 6], {(0, 25): 3}),
    Edge("and for one that reaches it from behind", [0, 16, 7, 25], {(0, 35): 4}),
    Edge("it is given out alone when that was late", [0, 17, 7], {(0, 10): 1, (17, 27): 1}, late=1),
    Edge("each late row counts", [100, 1, 2, 3, 101], {(100, 111): 2}, late=3),
    Edge("a late row does not begin a session again", [0, 100, 3, 4], {(0, 10): 1, (100, 110): 1}, late=2),
    Edge("the first row is never late", [-1000], {(-1000, -990): 1}),
    Edge("duplicates all count", [4, 4, 4], {(4, 14): 3}),
    Edge("a pause of many gaps", [0, 10**15, 10**15 + 1], {(0, 10): 1, (10**15, 10**15 + 11): 2}),
    Edge("end of input closes all", [0, 30, 60], {(0, 10): 1, (30, 40): 1, (60, 70): 1}, delay=10**6),
    Edge("the greatest time", [I64_MAX], {(I64_MAX, I64_MAX): 1}),
    Edge("up to the greatest time", [I64_MAX, I64_MAX - 9], {(I64_MAX - 9, I64_MAX): 2}),
    Edge("late at the greatest time", [I64_MAX, I64_MAX - 10], {(I64_MAX, I64_MAX): 1}, late=1),
    Edge("the least time", [I64_MIN], {(I64_MIN, I64_MIN + 10): 1}),
    Edge("from the least time", [I64_MIN + 9, I64_MIN], {(I64_MIN, I64_MIN + 19): 2}),
    Edge("greatest to least", [I64_MAX, I64_MIN], {(I64_MAX, I64_MAX): 1}, late=1),
    Edge("least to greatest", [I64_MIN, I64_MAX], {(I64_MIN, I64_MIN + 10): 1, (I64_MAX, I64_MAX): 1}),
    Edge("a delay as long as time itself", [I64_MAX, -1, I64_MIN, -10],
         {(I64_MAX, I64_MAX): 1, (-1, 9): 1}, late=2, delay=I64_MAX),
    Edge("the watermark stops at the least time", [I64_MIN, I64_MIN], {(I64_MIN, I64_MIN + 10): 2}, delay=5),
]  # fmt: skip
EDGES = [Edge(e.name, e.times, e.windows, e.late, TEN, e.delay) for e in EDGES]
EDGES += [
    Edge("a gap of one", [0, 1, 1, 2], {(0, 1): 1, (1, 2): 2, (2, 3): 1}, cut=Windows("session", 1)),
    Edge("a gap of one, late", [1, 0], {(1, 2): 1}, late=1, cut=Windows("session", 1)),
    Edge("a gap as long as time itself", [I64_MIN, 0, I64_MAX],
         {(I64_MIN, -1): 1, (0, I64_MAX): 1, (I64_MAX, I64_MAX): 1}, cut=Windows("session", I64_MAX)),
    Edge("a gap that all rows are within", [0, I64_MAX - 1], {(0, I64_MAX): 2},
         cut=Windows("session", I64_MAX)),
]  # fmt: skip


def found(result: ps.Result) -> dict[tuple[Value, Value], Value]:
    """Rows per session."""
    rows = rows_of(result)
    made = {(row["window_start"], row["window_end"]): row["n"] for row in rows}
    assert len(made) == len(rows), "a session came out twice"
    return made


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
@pytest.mark.parametrize("one_by_one", [False, True], ids=["one batch", "a batch per row"])
def test_edge(edge: Edge, one_by_one: bool) -> None:
    stream = ps.stream({"t": "int64"}, time="t", delay=edge.delay)
    query = stream.window(edge.cut.build()).agg(n=ps.count())
    table = pa.table({"t": pa.array(edge.times, pa.int64())})
    result = run_one(query, table.to_batches(max_chunksize=1) if one_by_one else table)
    assert found(result) == edge.windows
    assert result.rows_late == edge.late


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
def test_the_reference_agrees_with_the_hand(edge: Edge) -> None:
    arrived = arrive([{"t": time} for time in edge.times], "t", edge.delay)
    rows, late = aggregated(edge.cut, arrived, (), {"n": ("count", None)})
    made = {(row["window_start"], row["window_end"]): row["n"] for row in rows}
    assert (made, len(late)) == (edge.windows, edge.late)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_behave_as_integers(unit: str) -> None:
    stream = ps.stream({"t": f"timestamp[{unit}]"}, time="t")
    for edge in (edge for edge in EDGES if edge.delay == 0 and edge.cut.size < 100):
        query = stream.window(edge.cut.build(unit)).agg(n=ps.count())
        result = run_one(query, pa.table({"t": pa.array(edge.times, pa.timestamp(unit))}))
        assert found(result) == edge.windows, edge.name
        assert result.to_arrow().schema.field("window_end").type == pa.timestamp(unit)


def test_the_gap_may_be_a_timedelta() -> None:
    clicks = ps.stream({"t": "timestamp[ms]"}, time="t")
    data = pa.table({"t": pa.array([0, 249, 499], pa.timestamp("ms"))})
    for gap in ("250ms", timedelta(milliseconds=250), 250):
        query = clicks.window(ps.session(gap)).agg(n=ps.count())
        assert found(query.run(data)) == {(0, 499): 2, (499, 749): 1}


def test_sessions_belong_to_keys_but_time_does_not() -> None:
    """A row of one key ends the sessions of every key, and is in none of theirs."""
    stream = ps.stream({"t": "int64", "k": "string"}, time="t")
    query = stream.window(ps.session(10), by="k").agg(n=ps.count())
    data = pa.table({"t": [0, 5, 8, 40, 30, 41], "k": ["a", "b", None, "b", "a", None]})
    result = run_one(query, data)
    rows = {(row["k"], row["window_start"], row["window_end"]): row["n"] for row in rows_of(result)}
    assert rows == {("a", 0, 10): 1, ("b", 5, 15): 1, (None, 8, 18): 1, ("b", 40, 50): 1, (None, 41, 51): 1}
    assert result.rows_late == 1


@settings(max_examples=max(10, EXAMPLES * 2 // 3))
@given(windowed_cases.cases(windowed_cases.session_windows()))
def test_random_streams_equal_the_reference(case: Case) -> None:
    windowed_cases.check(case)


@settings(max_examples=max(10, EXAMPLES // 3))
@given(windowed_cases.cases(windowed_cases.session_windows()), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter_when_nothing_is_late(case: Case, rng: Random) -> None:
    far = [min(max(int(str(row["t"])), -(2**61)), 2**61) for row in case.rows]
    rows: list[Row] = [{**row, "t": time} for row, time in zip(case.rows, far, strict=True)]
    answers = []
    for _ in range(2):
        one = Case(case.windows, case.time, case.key, case.by, 2**63 - 1, rows, case.cuts, case.options)
        result = windowed_cases.check(one)
        assert result.rows_late == 0
        answers.append(as_bag(rows_of(result)))
        rows = list(rows)
        rng.shuffle(rows)
    assert answers[0] == answers[1]


@given(
    st.lists(st.tuples(st.integers(-60, 60), st.sampled_from("ab")), max_size=25),
    st.integers(1, 8),
    st.integers(0, 60),
    st.sampled_from([ps.tumbling(7), ps.sliding(9, 4), ps.session(12)]),
)
@settings(max_examples=max(10, EXAMPLES // 3))
def test_no_session_is_late_for_the_windows_behind_it(
    events: list[tuple[int, str]], gap: int, delay: int, behind: ps.Window
) -> None:
    """Sessions leave a gap after they end: whatever reads them has to wait for as long."""
    stream = ps.stream({"t": "int64", "k": "string"}, time="t", delay=delay)
    sessions = stream.window(ps.session(gap), by="k").agg(n=ps.count())
    again = sessions.window(behind).agg(sessions=ps.count(), rows=ps.sum("n"))
    schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    data = pa.Table.from_pylist([{"t": t, "k": k} for t, k in events], schema)
    arrived = arrive(data.to_pylist(), "t", delay)
    inner, late = aggregated(Windows("session", gap), arrived, ["k"], {"n": ("count", None)})
    # The time of a result is the last one of its window.
    results = arrive([{**row, "t": int(str(row["window_end"])) - 1} for row in inner], "t", 10**6)
    kinds = {
        "tumbling": Windows("tumbling", 7),
        "sliding": Windows("sliding", 9, 4),
        "session": Windows("session", 12),
    }
    outer, _ = aggregated(
        kinds[behind.kind], results, (), {"sessions": ("count", None), "rows": ("sum", "n")}
    )
    for batches in (data, data.to_batches(max_chunksize=1)):
        result = run_one(again, batches)
        assert as_bag(rows_of(result)) == as_bag(outer)
        assert result.rows_late == len(late)


def test_filtered_rows_still_advance_the_watermark() -> None:
    stream = ps.stream({"t": "int64", "keep": "bool"}, time="t")
    query = stream.filter(col("keep")).window(ps.session(10)).agg(n=ps.count())
    result = run_one(query, pa.table({"t": [5, 25, 7, 26], "keep": [True, False, True, True]}))
    assert found(result) == {(5, 15): 1, (26, 36): 1}
    assert (result.rows_filtered, result.rows_late) == (1, 1)


def test_one_long_session_of_many_rows() -> None:
    times = list(range(0, 60_000, 3))
    query = ps.stream({"t": "int64"}, time="t").window(ps.session(10)).agg(n=ps.count(), last=ps.max("t"))
    result = run_one(query, pa.table({"t": pa.array(times, pa.int64())}).to_batches(max_chunksize=999))
    assert rows_of(result) == [{"window_start": 0, "window_end": 60_007, "n": 20_000, "last": 59_997}]


def test_many_sessions_are_made_one_from_both_ends() -> None:
    times = [*range(0, 4000, 20), *range(10, 4000, 20)]
    query = ps.stream({"t": "int64"}, time="t", delay=10_000).window(ps.session(11)).agg(n=ps.count())
    data = pa.table({"t": pa.array(times, pa.int64())})
    assert found(run_one(query, data)) == {(0, 4001): 400}


@pytest.mark.parametrize("gap", [0, -1, "0s", "10s"])
def test_gaps_that_make_no_sense(gap: int | str) -> None:
    with pytest.raises(ps.DurationError):
        ps.stream({"t": "int64"}, time="t").window(ps.session(gap)).agg(ps.count())


def test_sessions_take_no_allowed_lateness_and_no_first_rows() -> None:
    stream = ps.stream({"t": "int64", "v": "int64"}, time="t")
    with pytest.raises(ps.PlanError, match="session"):
        stream.window(ps.session(10), allowed_lateness=5).agg(ps.count())
    with pytest.raises(ps.PlanError, match="session"):
        stream.window(ps.session(10)).top_k(1, "v")
