"""Windows that still take rows in after their end, and correct what they gave out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import penstock as ps
from reference import strategies, windowed_cases
from reference.compare import as_bag
from reference.engine import batches_of, rows_of
from reference.grouping import aggregate, aggregated, build
from reference.options import account_of, run_all, run_one, run_options
from reference.types import INT64, Value
from reference.watchdog import watched
from reference.windowed_cases import EXACT, Case
from reference.windowing import Arrived, Windows, arrive, clamped, group

EXAMPLES = settings().max_examples
STREAM = ps.stream({"t": "int64", "k": "string"}, time="t")
TEN = ps.tumbling(10)
Counts = list[tuple[Any, Any, Any]]


def times(*values: int, key: str = "a") -> pa.Table:
    return pa.table({"t": pa.array(values, pa.int64()), "k": pa.array([key] * len(values), pa.string())})


def counts(result: Any) -> Counts:
    """Window, rows and whether it is a correction, in order."""
    rows: list[Any] = list(rows_of(result))
    return sorted((row["window_start"], row["n"], row["is_correction"]) for row in rows)


def corrected(
    windows: Windows, arrived: Sequence[Arrived], by: Sequence[str], allowed: int
) -> tuple[list[dict[str, Value]], int]:
    """The results as they come first, and those of windows that took rows in afterwards, once more."""
    grouped = group(windows, arrived, lambda row: [row[name] for name in by], allowed)
    rows: list[dict[str, Value]] = []
    for (start, end, _), members in grouped.groups.items():
        early = [one for one in members if one.watermark is None or one.watermark < end]
        for correction, chosen in ((False, early), (True, members)):
            if chosen and (not correction or len(early) < len(members)):
                row: dict[str, Value] = {"window_start": clamped(start), "window_end": clamped(end)}
                row.update({name: members[0].row[name] for name in by})
                row.update({name: aggregate(kind, column, chosen) for name, (kind, column) in EXACT.items()})
                rows.append({**row, "is_correction": correction})
    return rows, len(grouped.late)


# By hand.

EDGES: dict[str, tuple[list[int], int, Counts, int]] = {
    "no row": ([], 5, [], 0),
    "nothing to correct": ([1, 12], 5, [(0, 1, False), (10, 1, False)], 0),
    "one correction": ([1, 12, 7], 5, [(0, 1, False), (0, 2, True), (10, 1, False)], 0),
    "one for many rows": ([1, 12, 7, 8, 14, 9], 5, [(0, 1, False), (0, 4, True), (10, 2, False)], 0),
    "up to the last unit": ([1, 14, 9], 5, [(0, 1, False), (0, 2, True), (10, 1, False)], 0),
    "late by one unit": ([1, 15, 9], 5, [(0, 1, False), (10, 1, False)], 1),
    "late when it was corrected": ([1, 12, 7, 15, 8], 5, [(0, 1, False), (0, 2, True), (10, 2, False)], 1),
    "out of order and on time": ([9, 1, 3], 5, [(0, 3, False)], 0),
    "only rows that came afterwards": ([12, 7], 5, [(0, 1, True), (10, 1, False)], 0),
    "below zero": ([-5, 2, -1], 5, [(-10, 1, False), (-10, 2, True), (0, 1, False)], 0),
    "several windows at once": (
        [1, 11, 25, 5, 15], 100,
        [(0, 1, False), (0, 2, True), (10, 1, False), (10, 2, True), (20, 1, False)], 0),
    "as long as time itself": (
        [1, 10**18, 7], 2**63 - 1, [(0, 1, False), (0, 2, True), (10**18, 1, False)], 0),
    "one unit": ([1, 10, 9, 11, 8], 1, [(0, 1, False), (0, 2, True), (10, 2, False)], 1),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("one_by_one", [False, True], ids=["one batch", "a batch per row"])
def test_edge(name: str, one_by_one: bool) -> None:
    given_times, allowed, expected, late = EDGES[name]
    query = STREAM.window(TEN, allowed_lateness=allowed).agg(n=ps.count())
    data = times(*given_times)
    result = run_one(query, data.to_batches(max_chunksize=1) if one_by_one else data)
    assert counts(result) == expected
    assert result.rows_late == late


def test_the_columns() -> None:
    query = STREAM.window(TEN, by="k", allowed_lateness=1).agg(n=ps.count())
    assert query.schema.names == ["window_start", "window_end", "k", "n", "is_correction"]
    assert query.schema.types[-1] == "bool"
    assert (
        "is_correction" not in STREAM.window(TEN, by="k", allowed_lateness=0).agg(n=ps.count()).schema.names
    )


def test_each_key_is_corrected_by_itself() -> None:
    query = STREAM.window(TEN, by="k", allowed_lateness=5).agg(n=ps.count())
    result = run_one(query, [times(1), times(2, key="b"), times(12), times(7), times(8, key="c")])
    found = sorted(
        (row["window_start"], row["k"], row["n"], row["is_correction"]) for row in result.to_pylist()
    )
    assert found == [
        (0, "a", 1, False), (0, "a", 2, True), (0, "b", 1, False), (0, "c", 1, True), (10, "a", 1, False),
    ]  # fmt: skip


def test_a_correction_is_the_whole_result() -> None:
    stream = ps.stream({"t": "int64", "v": "int64"}, time="t")
    aggregates = {
        kind: (kind, "v") for kind in ("sum", "min", "max", "mean", "first", "last", "count_distinct")
    }
    query = stream.window(TEN, allowed_lateness=5).agg(**build(aggregates))
    result = run_one(query, pa.table({"t": [3, 5, 12, 1, 9], "v": [10, 20, 0, 40, 10]}))
    row = next(row for row in result.to_pylist() if row["is_correction"])
    expected = {"sum": 80, "min": 10, "max": 40, "mean": 20.0, "first": 40, "last": 10, "count_distinct": 3}
    assert {name: row[name] for name in expected} == expected


def test_a_sliding_row_may_be_on_time_for_one_window_and_correct_another() -> None:
    query = STREAM.window(ps.sliding(10, 5), allowed_lateness=5).agg(n=ps.count())
    result = run_one(query, times(6, 12, 7))
    assert counts(result) == [(0, 1, False), (0, 2, True), (5, 3, False), (10, 1, False)]


@pytest.mark.parametrize("allowed", ["250ms", timedelta(milliseconds=250), 250])
def test_lengths_of_time(allowed: Any) -> None:
    stream = ps.stream({"t": "timestamp[ms]"}, time="t").window(ps.tumbling("1s"), allowed_lateness=allowed)
    data = pa.table({"t": pa.array([1, 1249, 999, 1250, 998], pa.timestamp("ms"))})
    result = run_one(stream.agg(n=ps.count()), data)
    assert counts(result) == [(0, 1, False), (0, 2, True), (1000, 2, False)]
    assert result.rows_late == 1


# At random.


@given(
    windowed_cases.cases(st.one_of(windowed_cases.tumbling_windows(), windowed_cases.sliding_windows())),
    st.one_of(st.integers(1, 30), st.sampled_from([1000, 2**62, 2**63 - 1])),
)
@settings(max_examples=max(10, EXAMPLES // 2))
def test_random_streams_equal_the_reference(case: Case, allowed: int) -> None:
    windowed = case.stream().window(
        case.windows.build(case.unit), by=list(case.by) or None, allowed_lateness=allowed
    )
    expected, late = corrected(case.windows, arrive(case.rows, "t", case.delay), case.by, allowed)
    batches = batches_of(case.columns, case.rows, case.cuts)
    result = run_one(windowed.agg(**build(EXACT)), batches, **case.options)
    event(
        f"corrections: {min(sum(row['is_correction'] is True for row in expected), 3)}, late: {min(late, 3)}"
    )
    assert as_bag(rows_of(result)) == as_bag(expected)
    assert result.rows_late == late
    assert account_of(result)["rows_contributed"] == len(case.rows) - late


@settings(max_examples=max(10, EXAMPLES // 6))
@given(
    st.lists(st.integers(-20, 60), max_size=25),
    st.lists(st.integers(-20, 60), max_size=25),
    st.integers(1, 30),
    run_options(),
)
def test_behind_a_union_the_last_word_is_the_whole_truth(
    north: list[int], south: list[int], allowed: int, options: dict[str, Any]
) -> None:
    """When results come depends on both sources; what a window has said in the end does not."""
    one, two = (ps.stream({"t": "int64"}, time="t", delay=3, name=name) for name in ("north", "south"))
    query = one.union(two).window(TEN, allowed_lateness=allowed).agg(n=ps.count())
    data = {
        name: pa.table({"t": pa.array(some, pa.int64())})
        for name, some in (("north", north), ("south", south))
    }
    result = run_one(query, data, **options)
    arrived = [one for some in (north, south) for one in arrive([{"t": time} for time in some], "t", 3)]
    expected, late = aggregated(Windows("tumbling", 10), arrived, (), {"n": ("count", None)}, allowed)
    last: dict[Value, Value] = {}
    for start, n, _ in counts(result):
        last[start] = n  # corrections sort behind what they correct: they have more rows
    assert last == {row["window_start"]: row["n"] for row in expected}
    assert result.rows_late == len(late)


@settings(max_examples=max(10, EXAMPLES // 10))
@given(st.lists(st.integers(0, 80), max_size=30), st.integers(0, 20), st.data())
def test_batches_change_nothing(given_times: list[int], allowed: int, data: st.DataObject) -> None:
    stream = ps.stream({"t": "int64"}, time="t").window(TEN, allowed_lateness=allowed + 1).agg(n=ps.count())
    rows = [{"t": time} for time in given_times]
    cut = batches_of((("t", INT64),), rows, data.draw(strategies.cuts(len(rows))))
    whole, parts = run_one(stream, batches_of((("t", INT64),), rows)), run_one(stream, cut)
    assert counts(whole) == counts(parts)
    assert (whole.rows_late, whole.late_by) == (parts.rows_late, parts.late_by)


# As rows come.


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
def test_results_come_as_early_as_without() -> None:
    query = STREAM.window(TEN, allowed_lateness=20).agg(n=ps.count())
    source = ps.PushSource()
    with ps.Engine(workers=2) as engine, watched(engine) as queries:
        running = engine.submit(query, source=source)
        queries.append(running)
        results = running.results()
        source.push(times(1, 10))
        assert counts(next(results)) == [(0, 1, False)]
        source.push(times(2, 3, 29))
        assert counts(next(results)) == [(10, 1, False)]
        source.push(times(4, 30))  # the time of the first window is over
        found: Counts = []
        while len(found) < 2:
            found += counts(next(results))
        assert sorted(found) == [(0, 4, True), (20, 1, False)]
        source.push(times(5))
        source.close()
        assert [row for batch in results for row in counts(batch)] == [(30, 1, False)]
        assert running.metrics()["rows_late"] == 1


def test_late_rows_are_those_of_which_nobody_takes_note() -> None:
    result, late = STREAM.window(TEN, allowed_lateness=5).agg(n=ps.count()).split_late()
    found = run_all(ps.outputs(result=result, late=late), times(1, 12, 7, 15, 8))
    assert counts(found["result"]) == [(0, 1, False), (0, 2, True), (10, 2, False)]
    assert [row["t"] for row in found["late"].to_pylist()] == [8]


def test_a_window_behind_corrections_counts_them_or_is_refused() -> None:
    first = STREAM.window(TEN, allowed_lateness=100).agg(n=ps.count())
    try:
        query = first.window(ps.tumbling(20)).agg(rows=ps.count())
    except ps.MissingTimeColumnError:
        assert first.time is None
        return
    result = run_one(query, times(1, 50, 2))
    assert sum(row["rows"] for row in result.to_pylist()) == 3


def test_what_makes_no_sense() -> None:
    with pytest.raises(ps.DurationError):
        STREAM.window(TEN, allowed_lateness=-1).agg(n=ps.count())
    with pytest.raises(ps.DurationError):
        STREAM.window(TEN, allowed_lateness="1s").agg(n=ps.count())
    with pytest.raises(ps.PlanError, match="session"):
        STREAM.window(ps.session(10), allowed_lateness=1).agg(n=ps.count())
    with pytest.raises(ps.PlanError, match="is_correction"):
        STREAM.window(TEN, allowed_lateness=1).agg(is_correction=ps.count())
    with pytest.raises(TypeError):
        STREAM.window(TEN, allowed_lateness=1.5)  # type: ignore[arg-type]


def test_a_plan_with_corrections_survives_json() -> None:
    query = STREAM.window(TEN, by="k", allowed_lateness=7).agg(n=ps.count())
    again = ps.Stream.from_json(query.to_json())
    assert again == query
    assert again != STREAM.window(TEN, by="k", allowed_lateness=8).agg(n=ps.count())
    assert counts(run_one(again, times(1, 12, 7))) == [(0, 1, False), (0, 2, True), (10, 1, False)]
