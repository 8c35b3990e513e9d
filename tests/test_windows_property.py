"""Laws of windowed pipelines, over random plans and random streams.

Each row carries a unique id, and each run checks that every row is accounted for.
"""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from reference import engine, plans, strategies
from reference.compare import as_bag, assert_same_rows
from reference.expressions import Column
from reference.plans import Plan, Row
from reference.types import I64_MAX

CASES = strategies.window_cases()


def check_against_reference(plan: Plan, rows: list[Row], cuts: list[int]) -> None:
    """The engine gives what the reference gives, and counts what the reference counts."""
    expected = plans.run(plan, rows)
    result = engine.run_quietly(engine.build(plan), engine.batches_of(plan.source.columns, rows, cuts))
    metrics = engine.assert_nothing_lost(result)
    event(f"late rows: {min(expected.rows_late, 3)}")
    event(f"filtered rows: {min(expected.rows_filtered, 3)}")
    assert metrics["rows_in"] == expected.rows_in
    assert metrics["rows_late"] == expected.rows_late
    assert metrics["rows_filtered"] == expected.rows_filtered
    assert metrics["rows_contributed"] == expected.rows_contributed
    window = next((step for step in plan.steps if isinstance(step, plans.Window)), None)
    keys = ["id"] if window is None else ["window_start", "window_end", *(name for name, _ in window.by)]
    assert_same_rows(expected.rows, engine.rows_of(result), keys)
    kinds = {name: str(kind.arrow()) for name, kind in expected.columns.items() if kind.kind != "decimal"}
    found = {field.name: str(field.type) for field in result.to_arrow().schema}
    assert {name: found[name] for name in kinds} == kinds


@given(CASES, st.data())
def test_any_plan_equals_the_reference(case: tuple[Plan, list[Row]], data: st.DataObject) -> None:
    plan, rows = case
    check_against_reference(plan, rows, data.draw(strategies.cuts(len(rows))))


@given(strategies.stateless_cases(), st.data())
def test_any_plan_without_a_window_equals_the_reference(
    case: tuple[Plan, list[Row]], data: st.DataObject
) -> None:
    plan, rows = case
    check_against_reference(plan, rows, data.draw(strategies.cuts(len(rows))))


@given(CASES, st.data())
def test_batch_boundaries_change_nothing(case: tuple[Plan, list[Row]], data: st.DataObject) -> None:
    plan, rows = case
    stream = engine.build(plan)
    whole = engine.run_quietly(stream, engine.table_of(plan.source.columns, rows))
    cut = engine.run_quietly(
        stream, engine.batches_of(plan.source.columns, rows, data.draw(strategies.cuts(len(rows))))
    )
    floats = {"float_total", "float_mean", "mean"}
    strip = [
        [{name: value for name, value in row.items() if name not in floats} for row in engine.rows_of(result)]
        for result in (whole, cut)
    ]
    assert as_bag(strip[0]) == as_bag(strip[1])
    assert (whole.rows_in, whole.rows_late, whole.rows_filtered, whole.rows_out, whole.late_by) == (
        cut.rows_in, cut.rows_late, cut.rows_filtered, cut.rows_out, cut.late_by,
    )  # fmt: skip


@given(CASES)
def test_every_row_is_accounted_for(case: tuple[Plan, list[Row]]) -> None:
    plan, rows = case
    result = engine.run_quietly(engine.build(plan), engine.table_of(plan.source.columns, rows))
    metrics = engine.assert_nothing_lost(result)
    assert metrics["rows_in"] == len(rows)


@given(CASES)
def test_ids_of_contributing_rows_are_counted_once(case: tuple[Plan, list[Row]]) -> None:
    """Counts and the sum of ids per window add up to what contributed, whatever the grouping."""
    plan, rows = case
    index = next(i for i, step in enumerate(plan.steps) if isinstance(step, plans.Window))
    window = plan.steps[index]
    assert isinstance(window, plans.Window)
    audit = plans.Window(
        window.size, window.by, (plans.Agg("n", "count"), plans.Agg("ids", "sum", Column("id")))
    )
    audited = Plan(plan.source, (*plan.steps[:index], audit))
    result = engine.run_quietly(engine.build(audited), engine.table_of(plan.source.columns, rows))
    table = result.to_arrow()
    expected = plans.run(audited, rows)
    assert sum(table.column("n").to_pylist()) == expected.rows_contributed
    assert sum(table.column("ids").to_pylist()) == sum(int(str(row["ids"])) for row in expected.rows)


@given(CASES)
def test_late_by_is_the_largest_distance(case: tuple[Plan, list[Row]]) -> None:
    plan, rows = case
    expected = plans.run(plan, rows)
    result = engine.run_quietly(engine.build(plan), engine.table_of(plan.source.columns, rows))
    assert (result.late_by is None) == (expected.late_by is None)
    integers = dict(plan.source.columns)["t"].kind == "int"
    if integers and expected.late_by is not None and expected.late_by <= I64_MAX:
        assert str(expected.late_by) in str(result.late_by)
