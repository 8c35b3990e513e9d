"""Functions of numbers, `is_in` and `between`, against the reference."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from reference.arithmetic import FailedError, RefusedError
from reference.compare import assert_same_rows
from reference.engine import arrow_schema, rows_of, table_of
from reference.functions import rounded
from reference.plans import Columns, Row
from reference.types import (
    BOOL,
    DATE32,
    FLOAT32,
    FLOAT64,
    INT64,
    INTEGERS,
    STRING,
    Type,
    Value,
    decimal,
    duration,
    timestamp,
)

COL = ps.col
INF, NAN = float("inf"), float("nan")
NAMES = ("floor", "ceil", "round", "abs", "sqrt")
FLOATS: list[Value] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.49999999999999994,
    4503599627370495.5,
    INF,
    -INF,
    NAN,
]
SAMPLES: dict[Type, list[Value]] = {
    **{kind: [kind.low, kind.high, 0, 1, 7] for kind in INTEGERS},
    FLOAT32: [0.0, 0.5, -0.5, 2.5, -2.5, 8388607.5, INF, NAN],
    FLOAT64: FLOATS,
    decimal(4, 2): [Decimal("0.00"), Decimal("-0.50"), Decimal("99.99"), Decimal("-99.50"), Decimal("2.49")],
    decimal(38, 1): [Decimal("0.5"), Decimal("9" * 37 + ".9"), Decimal("-0.1")],
    decimal(5, -2): [Decimal("0E+2"), Decimal("12300")],
    duration("ms"): [0, -5, 5, -(2**63)],
    BOOL: [True],
    STRING: ["1"],
    DATE32: [1],
    timestamp("s"): [1],
}


def check(name: str, kind: Type, cells: list[Value]) -> None:
    columns: Columns = (("id", INT64), ("a", kind))
    expression = getattr(COL("a"), name)()
    stream = ps.stream(arrow_schema(columns))
    expected: list[dict[str, Value]] = []
    good: list[Row] = []
    for i, cell in enumerate([*cells, None]):
        try:
            expected.append({"id": i, "r": None if cell is None else rounded(name, cell, kind)})
            good.append({"id": i, "a": cell})
        except RefusedError:
            with pytest.raises(ps.TypeMismatchError) as caught:
                stream.select(r=expression)
            assert f"{name}() needs a number" in str(caught.value)
            assert str(kind) in str(caught.value)
            return
        except FailedError:
            with pytest.raises(ps.ComputeError, match="overflow"):
                stream.select(r=expression).run(table_of(columns, [{"id": i, "a": cell}]))
    made = stream.select("id", r=expression)
    assert_same_rows(expected, rows_of(made.run(table_of(columns, good))), ["id"])
    if kind.kind != "decimal":
        assert made.schema.types[1] == ("float64" if name == "sqrt" else str(kind))


@pytest.mark.parametrize("name", NAMES)
def test_every_type(name: str) -> None:
    for kind, cells in SAMPLES.items():
        check(name, kind, cells)


@given(st.lists(st.floats(), max_size=12), st.sampled_from(NAMES))
def test_floats(cells: list[float], name: str) -> None:
    check(name, FLOAT64, list(cells))


@given(st.lists(st.integers(-(10**6) + 1, 10**6 - 1), max_size=12), st.sampled_from(NAMES), st.integers(0, 6))
def test_decimals(cells: list[int], name: str, scale: int) -> None:
    check(name, decimal(6, scale), [Decimal(cell).scaleb(-scale) for cell in cells])


def test_a_decimal_gets_a_digit_more() -> None:
    kinds = ps.stream({"a": "decimal128(4, 2)", "b": "decimal128(38, 2)"})
    made = kinds.select(a=COL("a").floor(), b=COL("b").ceil())
    assert made.schema.types == ["decimal128(5, 2)", "decimal128(38, 2)"]


def test_zero_keeps_its_sign() -> None:
    table = pa.table({"a": [-0.0, -0.25]})
    for name in ("ceil", "round"):
        made = ps.stream(table.schema).select(r=getattr(COL("a"), name)())
        found = pa.table(made.run(table))["r"].to_pylist()
        assert [math.copysign(1, value) for value in found] == [-1, -1]


def test_the_error_names_the_value() -> None:
    table = pa.table({"a": pa.array([5, -128], pa.int8())})
    with pytest.raises(ps.ComputeError, match=r'int8 overflow in col\("a"\)\.abs\(\): -128'):
        ps.stream(table.schema).select(r=COL("a").abs()).run(table)


def value_of(expression: ps.Expr, cells: list[Any], kind: pa.DataType) -> list[Any]:
    table = pa.table({"a": pa.array(cells, kind)})
    values: list[Any] = pa.table(ps.stream(table.schema).select(r=expression).run(table))["r"].to_pylist()
    return values


@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=12), st.lists(st.integers(-5, 5), max_size=40)
)
def test_is_in(cells: list[int | None], values: list[int]) -> None:
    expected = [None if cell is None and values else cell in values for cell in cells]
    assert value_of(COL("a").is_in(values), cells, pa.int64()) == expected


def test_is_in_takes_many_values_and_any_iterable() -> None:
    assert value_of(COL("a").is_in(range(5_000)), [4_999, 5_000], pa.int64()) == [True, False]
    assert value_of(COL("a").is_in({"x", "y"}), ["x", "z"], pa.string()) == [True, False]
    assert value_of(COL("a").is_in([1, None]), [1, 2], pa.int64()) == [True, None]
    for wrong in ("xyz", b"xyz", 7):
        with pytest.raises(TypeError, match=r"is_in\(\) takes a list"):
            COL("a").is_in(wrong)  # type: ignore[arg-type]


@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=12), st.integers(-5, 5), st.integers(-5, 5)
)
def test_between(cells: list[int | None], low: int, high: int) -> None:
    expected = [None if cell is None else low <= cell <= high for cell in cells]
    assert value_of(COL("a").between(low, high), cells, pa.int64()) == expected


def test_they_print_as_python() -> None:
    assert repr((COL("a") + 1).abs().sqrt()) == '(col("a") + 1).abs().sqrt()'
    assert repr((-COL("a")).floor()) == '(-col("a")).floor()'
    assert repr(ps.lit(-1.5).round()) == "lit(-1.5).round()"
    assert repr(COL("a").is_in([1, 2, 3])) == '((col("a") == 1) | (col("a") == 2)) | (col("a") == 3)'
