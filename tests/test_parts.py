"""Data in parts: the same answer as in one run, however the data is cut."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference.sizes import SMALLER
from reference.stateful import PLANS, SCHEMA, rows_of, table_of

ROWS = st.lists(
    st.tuples(st.integers(-30, 60), st.sampled_from(["a", "b", "c", "d", "e", None]), st.integers(-9, 9)),
    max_size=60,
)
# Each example runs an engine for each part, and there are many pipelines.
FEWER = settings(max_examples=90 // SMALLER)
COUNTERS = ("rows_in", "rows_copied", "rows_contributed", "rows_filtered", "rows_late", "rows_rejected")


def in_parts(plan: ps.Stream, parts: list[Any]) -> tuple[list[ps.Result], list[bytes]]:
    """The results of all parts, and the states between them."""
    state, results, states = None, [], []
    for number, part in enumerate(parts):
        done = plan.run_part(part, state, last=number == len(parts) - 1)
        state = done.state
        results.append(done.result)
        states += [state] if state is not None else []
    assert state is None
    return results, states


def check(plan: ps.Stream, whole: Any, parts: list[Any]) -> None:
    expected = plan.run(whole)
    results, _ = in_parts(plan, parts)
    assert sorted(row for result in results for row in rows_of(result)) == rows_of(expected)
    for counter in COUNTERS:
        found = sum(result.metrics()[counter] for result in results)
        assert found == expected.metrics()[counter], counter
    for result in results:
        numbers = result.metrics()
        gone = sum(numbers[f"rows_{way}"] for way in ("contributed", "filtered", "late", "shed", "rejected"))
        assert numbers["rows_in"] + numbers["rows_copied"] == gone


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
@pytest.mark.parametrize("name", PLANS)
@FEWER
@given(rows=ROWS, cuts=st.lists(st.integers(0, 60), max_size=5))
def test_no_cut_changes_the_answer(
    name: str, rows: list[tuple[int, str | None, int]], cuts: list[int]
) -> None:
    table = table_of(rows)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [table.slice(start, end - start) for start, end in pairwise(bounds)]
    check(PLANS[name], table, parts)


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
@pytest.mark.parametrize("how", ["inner", "left", "full"])
@FEWER
@given(rows=ROWS, marks=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=60, max_size=60))
def test_an_input_without_rows_in_a_part_is_still_waited_for(
    how: Any, rows: list[tuple[int, str | None, int]], marks: list[tuple[int, bool]]
) -> None:
    """Rows in order, of two streams: whatever a part lacks of one of them may still come."""
    left, right = (ps.stream(SCHEMA, time="t", name=name) for name in ("left", "right"))
    plan = left.join(right.select("t", "k", z="x"), window=ps.tumbling(10), on="k", how=how)
    rows = sorted(rows, key=lambda row: row[0])
    sides: list[list[list[tuple[int, str | None, int]]]] = [[[] for _ in range(5)] for _ in range(2)]
    # The parts of each side are in order, and need not be those of the other side.
    numbers = [sorted(number for (number, is_right) in marks if is_right == side) for side in (False, True)]
    taken = [0, 0]
    for row, (_, is_right) in zip(rows, marks, strict=False):
        sides[is_right][numbers[is_right][taken[is_right]]].append(row)
        taken[is_right] += 1
    whole = {
        name: table_of([row for part in side for row in part])
        for name, side in zip(("left", "right"), sides, strict=True)
    }
    parts = [{"left": table_of(a), "right": table_of(b)} for a, b in zip(*sides, strict=True)]
    check(plan, whole, parts)


def test_a_part_without_any_row_changes_nothing() -> None:
    plan = PLANS["tumbling"]
    first = plan.run_part(table_of([(1, "a", 1)]))
    second = plan.run_part([], first.state)
    assert (second.result.rows_out, second.state) == (0, first.state)
    assert plan.run_part([], second.state, last=True).result.rows_out == 1


def test_the_state_of_another_pipeline_is_refused() -> None:
    state = PLANS["tumbling"].run_part(table_of([(1, "a", 1)])).state
    with pytest.raises(ps.PlanError, match="belongs to another plan"):
        PLANS["sliding"].run_part([], state)
    with pytest.raises(TypeError, match="bytes or None, not str"):
        PLANS["sliding"].run_part([], "state")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tumbling", "session", "join"])
def test_damage_is_found_wherever_it_is(name: str) -> None:
    plan = PLANS[name]
    state = plan.run_part(table_of([(1, "a", 1), (2, "b", 2)])).state
    assert state is not None
    for place in range(0, len(state), max(1, len(state) // 300)):
        broken = bytearray(state)
        broken[place] ^= 1 << place % 8
        with pytest.raises(ps.PlanError, match="the state cannot be read"):
            plan.run_part([], bytes(broken))
        with pytest.raises(ps.PlanError, match="the state cannot be read"):
            plan.run_part([], state[:place])


def test_a_part_that_fails_can_be_run_again() -> None:
    plan = ps.stream(SCHEMA, time="t").with_columns(y=10 // col("x")).window(ps.tumbling(10)).agg(ps.sum("y"))
    first = plan.run_part(table_of([(1, "a", 1)]))
    with pytest.raises(ps.ComputeError, match="zero"):
        plan.run_part(table_of([(2, "a", 0)]), first.state)
    again = plan.run_part(table_of([(2, "a", 2)]), first.state, last=True)
    assert [row["y_sum"] if "y_sum" in row else row["y"] for row in again.result.to_pylist()] == [15]


def test_many_keys_go_from_part_to_part() -> None:
    """State of some size: every key comes in every part, in another order."""
    keys, parts = 20_000, 4
    plan = (
        ps.stream({"t": "int64", "k": "int64"}, time="t").window(ps.tumbling(1_000), by="k").agg(n=ps.count())
    )
    tables = [
        pa.table({"t": [number] * keys, "k": [(key * 7_919 + number) % keys for key in range(keys)]})
        for number in range(parts)
    ]
    results, states = in_parts(plan, list(tables))
    assert [result.rows_out for result in results] == [0, 0, 0, keys]
    assert {row["n"] for row in results[-1].to_pylist()} == {parts}
    assert len(states[-1]) < 100 * keys
