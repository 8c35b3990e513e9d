"""Builds the pipelines of the reference with penstock, and runs them there."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

import penstock as ps
from reference.expressions import Binary, Column, Expression, Literal
from reference.plans import Agg, Columns, Filter, Lookup, Plan, Row, Select, Window, WithColumns
from reference.types import Type, Value

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


def build_expr(expression: Expression) -> ps.Expr:
    """The expression, spoken in penstock."""
    if isinstance(expression, Column):
        return ps.col(expression.name)
    if isinstance(expression, Literal):
        return ps.lit(expression.value)
    if isinstance(expression, Binary):
        left, right = build_expr(expression.left), build_expr(expression.right)
        made = OPERATORS[expression.op](left, right)
    else:
        operand = build_expr(expression.operand)
        if expression.op == "is_null":
            made = operand.is_null()
        elif expression.op == "is_not_null":
            made = operand.is_not_null()
        else:
            made = -operand if expression.op == "-" else ~operand
    assert isinstance(made, ps.Expr)
    return made


def build_duration(length: int, kind: Type) -> str | int | timedelta:
    """A length in units of the time column, the way a user would write it."""
    if kind.kind == "int":
        return length
    if kind.unit == "d":
        return timedelta(days=length)
    return f"{length}{kind.unit}"


def build_aggregate(agg: Agg) -> ps.Aggregate:
    """The aggregate, spoken in penstock."""
    if agg.input is None:
        return ps.count().alias(agg.name)
    makers = {"count": ps.count, "sum": ps.sum, "min": ps.min, "max": ps.max, "mean": ps.mean}
    return makers[agg.kind](build_expr(agg.input)).alias(agg.name)


def arrow_schema(columns: Columns) -> pa.Schema:
    """The Arrow schema of the columns."""
    return pa.schema([(name, kind.arrow()) for name, kind in columns])


def build(plan: Plan) -> ps.Stream:
    """The plan as a penstock pipeline."""
    source = plan.source
    schema = arrow_schema(source.columns)
    if source.time is None:
        stream = ps.stream(schema)
    else:
        kind = dict(source.columns)[source.time]
        stream = ps.stream(schema, time=source.time, delay=build_duration(source.delay, kind))
    for step in plan.steps:
        if isinstance(step, Filter):
            stream = stream.filter(*(build_expr(p) for p in step.predicates))
        elif isinstance(step, Select):
            stream = stream.select(**{name: build_expr(item) for name, item in step.items})
        elif isinstance(step, WithColumns):
            stream = stream.with_columns(**{name: build_expr(item) for name, item in step.items})
        elif isinstance(step, Lookup):
            names = [name for name, _ in step.columns]
            rows = [dict(zip(names, row, strict=True)) for row in step.rows]
            stream = stream.lookup(table_of(step.columns, rows), on=list(step.on), how=step.how)
        else:
            assert isinstance(step, Window)
            assert source.time is not None
            size = build_duration(step.size, dict(source.columns)[source.time])
            by = [build_expr(item).alias(name) for name, item in step.by]
            windowed = stream.window(ps.tumbling(size), by=by or None)
            stream = windowed.agg(*(build_aggregate(agg) for agg in step.aggs))
    return stream


def table_of(columns: Columns, rows: Sequence[Row]) -> pa.Table:
    """The rows as an Arrow table of the given column types."""
    arrays = [pa.array([row[name] for row in rows], type=kind.arrow()) for name, kind in columns]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def batches_of(columns: Columns, rows: Sequence[Row], cuts: Sequence[int] = ()) -> list[pa.RecordBatch]:
    """The rows as record batches, cut before the given row numbers; equal cuts give empty batches."""
    edges = [0, *sorted(cuts), len(rows)]
    schema = arrow_schema(columns)
    made = []
    for low, high in itertools.pairwise(edges):
        part = rows[low:high]
        arrays = [pa.array([row[name] for row in part], type=kind.arrow()) for name, kind in columns]
        made.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return made


def cells(column: pa.Array | pa.ChunkedArray) -> list[Value]:
    """The cells of a column as reference values: temporal ones as integers in their unit."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return cells(column.cast(kind.value_type))
    if pa.types.is_temporal(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        found: list[Value] = []
        for chunk in chunks:
            found.extend(chunk.view(whole).to_pylist())
        return found
    listed: list[Value] = column.to_pylist()
    return listed


def rows_of(result: Any) -> list[dict[str, Value]]:
    """Anything Arrow, as a list of reference rows."""
    table = pa.table(result)
    columns = {name: cells(table.column(i)) for i, name in enumerate(table.column_names)}
    return [{name: values[i] for name, values in columns.items()} for i in range(table.num_rows)]


def run_quietly(stream: ps.Stream, data: Any, **options: Any) -> ps.Result:
    """Runs without the warning about late rows, for tests that read the counts instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.LateRowsWarning)
        return stream.run(data, **options)


def assert_nothing_lost(result: ps.Result) -> Mapping[str, object]:
    """Every row that went in is accounted for; gives back the metrics."""
    metrics: Mapping[str, Any] = result.metrics()
    parts = [metrics[name] for name in ("rows_contributed", "rows_filtered", "rows_late")]
    assert metrics["rows_in"] == sum(parts), metrics
    assert (metrics["rows_in"], metrics["rows_filtered"], metrics["rows_late"]) == (
        result.rows_in, result.rows_filtered, result.rows_late,
    )  # fmt: skip
    assert result.rows_out == len(result)
    return metrics
