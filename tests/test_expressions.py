"""Every operator over every pair of types, against the reference.

A pair of types is either refused when the pipeline is built, with both types named, or computed. Cells that
overflow are run alone and must be an error, all others must give the reference's value.
"""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

import penstock as ps
from reference.arithmetic import FailedError, RefusedError, UnspecifiedError
from reference.compare import assert_same_rows
from reference.engine import arrow_schema, build_expr, rows_of, table_of
from reference.expressions import (
    ARITHMETIC,
    COMPARISON,
    LOGIC,
    Binary,
    Column,
    Expression,
    Literal,
    Unary,
    evaluate,
    type_of,
)
from reference.plans import Columns, Row
from reference.types import (
    BINARY,
    BOOL,
    DATE32,
    DATE64,
    FLOAT32,
    FLOAT64,
    INT64,
    INTEGERS,
    STRING,
    TIME32_MS,
    TIME32_S,
    TIME64_NS,
    TIME64_US,
    Type,
    Value,
    decimal,
    duration,
    timestamp,
)

INF, NAN = float("inf"), float("nan")
TEMPORAL: list[Value] = [0, -1, 90_000, 2**61]
TIMES: list[Value] = [0, 1, 86_399]
SAMPLES: dict[Type, list[Value]] = {
    **{kind: [kind.low, kind.high, 0, 1, 7, -3 if kind.signed else 3] for kind in INTEGERS},
    FLOAT32: [0.0, -0.0, 1.5, -2.5, INF, NAN],
    FLOAT64: [0.0, -0.0, 0.1, -7.5, 1e300, INF, -INF, NAN],
    BOOL: [True, False],
    STRING: ["", "a", "b", "é", "longer than twelve bytes"],
    BINARY: [b"", b"a", b"\xff\x00", b"longer than twelve bytes"],
    decimal(10, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal("99999999.99")],
    decimal(38, 0): [Decimal(0), Decimal(10) ** 37, Decimal(-3)],
    decimal(5, 5): [Decimal("0.00000"), Decimal("-0.50000"), Decimal("0.00001")],
    timestamp("s"): TEMPORAL,
    timestamp("ns"): TEMPORAL,
    timestamp("us", "UTC"): TEMPORAL,
    timestamp("ms", "Europe/Paris"): TEMPORAL,
    duration("s"): TEMPORAL,
    duration("ns"): TEMPORAL,
    DATE32: [0, -1, 20_000],
    DATE64: [0, -86_400_000, 20_000 * 86_400_000],
    TIME32_S: TIMES,
    TIME32_MS: TIMES,
    TIME64_US: TIMES,
    TIME64_NS: TIMES,
}
TYPES = list(SAMPLES)


def compute(columns: Columns, expression: Expression, rows: list[Row]) -> list[dict[str, Value]]:
    """The engine's answer, with the ids of the rows."""
    stream = ps.stream(arrow_schema(columns)).select("id", r=build_expr(expression))
    return rows_of(stream.run(table_of(columns, rows)))


def check(columns: Columns, expression: Expression, rows: list[Row]) -> None:
    """Rows that succeed give the reference's value and type; one row that fails makes a ComputeError."""
    schema = dict(columns)
    kind = type_of(expression, schema)
    expected: list[dict[str, Value]] = []
    good: list[Row] = []
    failing: list[Row] = []
    for row in rows:
        try:
            expected.append({"id": row["id"], "r": evaluate(expression, schema, row)})
            good.append(row)
        except FailedError:
            failing.append(row)
        except UnspecifiedError:
            continue
    found = compute(columns, expression, good)
    if kind.kind == "float":
        tolerant = "decimal" in {schema[name].kind for name in schema}
        assert_close(expected, found, 1e-12 if tolerant else 0.0)
    else:
        assert_same_rows(expected, found, ["id"])
    if kind.kind != "decimal":
        stream = ps.stream(arrow_schema(columns)).select(r=build_expr(expression))
        assert table_of((("r", kind),), []).schema.field("r").type == rows_type(stream)
    if failing:
        with pytest.raises(ps.ComputeError):
            compute(columns, expression, [*good, failing[0]])


def assert_close(expected: list[dict[str, Value]], found: list[dict[str, Value]], tolerance: float) -> None:
    """Floats within a relative tolerance; NaN is NaN and null is null."""
    by_id = {row["id"]: row["r"] for row in found}
    assert len(by_id) == len(expected)
    for row in expected:
        wanted, got = row["r"], by_id[row["id"]]
        if wanted is None or got is None:
            assert wanted is got, row
            continue
        assert isinstance(wanted, float), row
        assert isinstance(got, float), row
        assert got == pytest.approx(wanted, rel=tolerance, abs=0.0, nan_ok=True), row


def rows_type(stream: ps.Stream) -> object:
    """The Arrow type of the column `r` of a stream without rows."""
    return stream.run([]).to_arrow().schema.field("r").type


def pairs(left: Type, right: Type) -> list[Row]:
    """Every pair of sample values of two types, with nulls."""
    cells = [(a, b) for a in [*SAMPLES[left], None] for b in [*SAMPLES[right], None]]
    return [{"id": i, "a": a, "b": b} for i, (a, b) in enumerate(cells)]


def check_pair(op: str, left: Type, right: Type) -> None:
    """One operator between two columns."""
    columns: Columns = (("id", INT64), ("a", left), ("b", right))
    expression = Binary(op, Column("a"), Column("b"))
    try:
        type_of(expression, dict(columns))
    except RefusedError:
        stream = ps.stream(arrow_schema(columns))
        with pytest.raises(ps.TypeMismatchError) as caught:
            stream.select(r=build_expr(expression))
        assert str(left) in str(caught.value)
        assert str(right) in str(caught.value)
        return
    except UnspecifiedError:
        return
    check(columns, expression, pairs(left, right))


@pytest.mark.parametrize("left", TYPES, ids=str)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_between_columns(op: str, left: Type) -> None:
    for right in TYPES:
        check_pair(op, left, right)


@pytest.mark.parametrize("left", TYPES, ids=str)
@pytest.mark.parametrize("op", COMPARISON)
def test_comparison_between_columns(op: str, left: Type) -> None:
    for right in TYPES:
        check_pair(op, left, right)


@pytest.mark.parametrize("left", TYPES, ids=str)
@pytest.mark.parametrize("op", LOGIC)
def test_logic_between_columns(op: str, left: Type) -> None:
    for right in TYPES:
        check_pair(op, left, right)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("op", ["-", "~", "is_null", "is_not_null"])
def test_unary_operators(op: str, kind: Type) -> None:
    columns: Columns = (("id", INT64), ("a", kind))
    expression = Unary(op, Column("a"))
    try:
        type_of(expression, dict(columns))
    except RefusedError:
        with pytest.raises(ps.TypeMismatchError, match=re.escape(str(kind))):
            ps.stream(arrow_schema(columns)).select(r=build_expr(expression))
        return
    except UnspecifiedError:
        return
    rows: list[Row] = [{"id": i, "a": value} for i, value in enumerate([*SAMPLES[kind], None])]
    check(columns, expression, rows)


@pytest.mark.parametrize("kind", [kind for kind in TYPES if not kind.is_temporal()], ids=str)
def test_literals_on_either_side(kind: Type) -> None:
    """A literal beside a column gives what a column full of that value would give."""
    columns: Columns = (("id", INT64), ("a", kind))
    rows: list[Row] = [{"id": i, "a": value} for i, value in enumerate([*SAMPLES[kind], None])]
    literals: list[Value] = [True, 2, -1, 300, 2**63 - 1, 0.5, Decimal("0.25"), "a", b"a", None]
    for value in literals:
        for op in COMPARISON if value is None else (*ARITHMETIC, *COMPARISON, *LOGIC):
            for expression in (
                Binary(op, Column("a"), Literal(value)),
                Binary(op, Literal(value), Column("a")),
            ):
                try:
                    type_of(expression, dict(columns))
                except UnspecifiedError:
                    continue
                except RefusedError:
                    with pytest.raises(ps.TypeMismatchError):
                        ps.stream(arrow_schema(columns)).select(r=build_expr(expression))
                    continue
                check(columns, expression, rows)
