"""Pipelines as plain data, and what they make of rows in arrival order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from reference import aggregates
from reference.expressions import Expression, evaluate, type_of
from reference.types import I64_MAX, I64_MIN, INT64, Type, Value

Row = Mapping[str, Value]
Columns = tuple[tuple[str, Type], ...]
Named = tuple[tuple[str, Expression], ...]
How = Literal["inner", "left"]


@dataclass(frozen=True)
class Source:
    """The declared columns, the time column and how long rows may be late, in units of the time column."""

    columns: Columns
    time: str | None = None
    delay: int = 0


@dataclass(frozen=True)
class Filter:
    """Keeps rows for which all predicates are true; unknown is not true."""

    predicates: tuple[Expression, ...]


@dataclass(frozen=True)
class Select:
    """Keeps the named expressions and nothing else."""

    items: Named


@dataclass(frozen=True)
class WithColumns:
    """Replaces or appends the named expressions."""

    items: Named


@dataclass(frozen=True)
class Lookup:
    """Appends the columns of the table row with the same keys."""

    columns: Columns
    rows: tuple[tuple[Value, ...], ...]
    on: tuple[str, ...]
    how: How


@dataclass(frozen=True)
class Agg:
    """One aggregate: `count` without an input counts rows."""

    name: str
    kind: str
    input: Expression | None = None


@dataclass(frozen=True)
class Window:
    """Tumbling windows of `size` units, grouped by the named expressions."""

    size: int
    by: Named
    aggs: tuple[Agg, ...]


Step = Filter | Select | WithColumns | Lookup | Window


@dataclass(frozen=True)
class Plan:
    """A source and what happens to its rows."""

    source: Source
    steps: tuple[Step, ...]


@dataclass
class Outcome:
    """What came out, and what became of every row that went in."""

    columns: dict[str, Type]
    rows: list[dict[str, Value]] = field(default_factory=list)
    rows_in: int = 0
    rows_filtered: int = 0
    rows_late: int = 0
    rows_contributed: int = 0
    late_by: int | None = None


def group_key(values: Sequence[Value]) -> tuple[object, ...]:
    """What makes two keys the same key: null equals null, NaN equals NaN, -0.0 equals 0.0."""
    return tuple(aggregates.sort_key(value) if isinstance(value, float) else value for value in values)


def schema_after(step: Step, schema: Mapping[str, Type], time: str | None) -> dict[str, Type]:
    """The columns behind a step."""
    if isinstance(step, Select):
        return {name: type_of(item, schema) for name, item in step.items}
    if isinstance(step, WithColumns):
        return {**schema, **{name: type_of(item, schema) for name, item in step.items}}
    if isinstance(step, Lookup):
        return {**schema, **{name: kind for name, kind in step.columns if name not in step.on}}
    if isinstance(step, Window):
        assert time is not None
        bound = INT64 if schema[time].kind == "int" else schema[time]
        keys = {name: type_of(item, schema) for name, item in step.by}
        outputs = {agg.name: aggregates.type_of_aggregate(agg.kind, agg.input, schema) for agg in step.aggs}
        return {"window_start": bound, "window_end": bound, **keys, **outputs}
    return dict(schema)


def schemas(plan: Plan) -> list[dict[str, Type]]:
    """The columns before the first step, and behind each step."""
    found = [dict(plan.source.columns)]
    for step in plan.steps:
        found.append(schema_after(step, found[-1], plan.source.time))
    return found


def apply(step: Step, schema: Mapping[str, Type], row: Row) -> Row | None:
    """What a step other than a window makes of a row; None if the row stops here."""
    if isinstance(step, Filter):
        answers = [evaluate(predicate, schema, row) for predicate in step.predicates]
        return row if all(answer is True for answer in answers) else None
    if isinstance(step, Select):
        return {name: evaluate(item, schema, row) for name, item in step.items}
    if isinstance(step, WithColumns):
        return {**row, **{name: evaluate(item, schema, row) for name, item in step.items}}
    assert isinstance(step, Lookup)
    names = [name for name, _ in step.columns]
    wanted = [row[name] for name in step.on]
    for candidate in step.rows:
        entry = dict(zip(names, candidate, strict=True))
        keys = [entry[name] for name in step.on]
        if None not in wanted and None not in keys and group_key(wanted) == group_key(keys):
            return {**row, **{name: value for name, value in entry.items() if name not in step.on}}
    if step.how == "inner":
        return None
    return {**row, **{name: None for name in names if name not in step.on}}


def apply_all(steps: Sequence[Step], known: Sequence[Mapping[str, Type]], row: Row) -> Row | None:
    """What several steps make of a row, where `known` are the columns before each of them."""
    current = row
    for step, schema in zip(steps, known, strict=False):
        after = apply(step, schema, current)
        if after is None:
            return None
        current = after
    return current


def run(plan: Plan, rows: Sequence[Row]) -> Outcome:
    """Runs the plan over rows in arrival order."""
    known = schemas(plan)
    windows = [i for i, step in enumerate(plan.steps) if isinstance(step, Window)]
    assert len(windows) <= 1
    outcome = Outcome(known[-1], rows_in=len(rows))
    front = plan.steps[: windows[0]] if windows else plan.steps
    arrived: list[tuple[Row, int | None]] = []

    greatest: int | None = None
    for row in rows:
        watermark = None
        if plan.source.time is not None:
            if greatest is not None:
                watermark = min(max(greatest - plan.source.delay, I64_MIN), I64_MAX)
            time = row[plan.source.time]
            assert isinstance(time, int)
            greatest = time if greatest is None else max(greatest, time)
        survivor = apply_all(front, known, row)
        if survivor is None:
            outcome.rows_filtered += 1
        else:
            arrived.append((survivor, watermark))

    if not windows:
        outcome.rows = [dict(row) for row, _ in arrived]
        outcome.rows_contributed = len(arrived)
        return outcome

    step = plan.steps[windows[0]]
    assert isinstance(step, Window)
    assert plan.source.time is not None
    results = aggregate(step, plan.source.time, known[len(front)], arrived, outcome)
    for result in results:
        kept = apply_all(plan.steps[windows[0] + 1 :], known[windows[0] + 1 :], result)
        if kept is not None:
            outcome.rows.append(dict(kept))
    return outcome


def aggregate(
    step: Window,
    time: str,
    schema: Mapping[str, Type],
    arrived: list[tuple[Row, int | None]],
    outcome: Outcome,
) -> list[dict[str, Value]]:
    """Groups the rows that are not late into windows and keys, and counts what became of the rest."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row, watermark in arrived:
        at = row[time]
        assert isinstance(at, int)
        if watermark is not None and at // step.size < watermark // step.size:
            outcome.rows_late += 1
            outcome.late_by = max(outcome.late_by or 0, watermark - at)
            continue
        outcome.rows_contributed += 1
        keys = [evaluate(item, schema, row) for _, item in step.by]
        groups.setdefault((at // step.size, *group_key(keys)), []).append(row)

    low, high = (schema[time].low, schema[time].high) if schema[time].bits == 32 else (I64_MIN, I64_MAX)
    if schema[time].kind == "int":
        low, high = I64_MIN, I64_MAX
    results = []
    for rows in groups.values():
        first = rows[0]
        at = first[time]
        assert isinstance(at, int)
        start = (at // step.size) * step.size
        result: dict[str, Value] = {
            "window_start": min(max(start, low), high),
            "window_end": min(max(start + step.size, low), high),
        }
        for name, item in step.by:
            result[name] = evaluate(item, schema, first)
        for agg in step.aggs:
            result[agg.name] = aggregates.value_of_aggregate(agg.kind, agg.input, schema, rows)
        results.append(result)
    return results
