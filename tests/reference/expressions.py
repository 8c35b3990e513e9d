"""Expressions: which type they have, and which value they take in a row.

`type_of` raises `RefusedError` for types that do not go together, `evaluate` raises `FailedError` where the
engine must raise a `ComputeError`. `UnspecifiedError` marks what the documentation leaves open; tests look
away there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from reference import arithmetic
from reference.arithmetic import FailedError, RefusedError, UnspecifiedError
from reference.types import BOOL, FLOAT32, FLOAT64, INT64, STRING, UINT64, Type, Value, decimal

__all__ = [
    "Binary", "Column", "Expression", "FailedError", "Literal", "RefusedError", "Unary", "UnspecifiedError",
    "evaluate", "operand_types", "type_of",
]  # fmt: skip

ARITHMETIC = ("+", "-", "*", "/", "//", "%")
COMPARISON = ("==", "!=", "<", "<=", ">", ">=")
LOGIC = ("&", "|", "^")

Row = Mapping[str, Value]
Schema = Mapping[str, Type]


@dataclass(frozen=True)
class Column:
    """A column by name."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A plain Python value."""

    value: Value


@dataclass(frozen=True)
class Binary:
    """An operator between two expressions."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Unary:
    """`-`, `~`, `is_null` or `is_not_null`."""

    op: str
    operand: Expression


Expression = Column | Literal | Binary | Unary


def literal_type(value: Value) -> Type | None:
    """The type a literal has when nothing around it says otherwise; None for a null."""
    if value is None:
        return None
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64 if value <= INT64.high else UINT64
    if isinstance(value, float):
        return FLOAT64
    if isinstance(value, Decimal):
        digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
        assert isinstance(exponent, int)
        scale = max(0, -exponent)
        return decimal(max(len(digits), scale), scale)
    return STRING if isinstance(value, str) else Type("binary")


def adapted(value: Value, other: Type, op: str) -> Type:
    """The type of a literal that stands beside a column or expression of type `other`."""
    own = literal_type(value)
    if own is None:
        return other
    if own.kind == "int" and other.kind == "int":
        assert isinstance(value, int)
        return other if other.low <= value <= other.high else own
    if isinstance(value, float) and other == FLOAT32:
        if op == "/" and arithmetic.rounded(value, FLOAT32) != value:
            raise UnspecifiedError("whether a literal is rounded to float32 before a float64 division")
        return FLOAT32
    if own.kind == "int" and other == FLOAT32:
        raise UnspecifiedError("an integer literal beside a float32 column")
    return own


def operand_types(expression: Binary, schema: Schema) -> tuple[Type, Type]:
    """The types of both sides, after literals took the type of what they stand beside."""
    left, right = expression.left, expression.right
    if isinstance(left, Literal) and isinstance(right, Literal):
        raise UnspecifiedError("an operator between two literals")
    if isinstance(left, Literal):
        right_type = type_of(right, schema)
        return adapted(left.value, right_type, expression.op), right_type
    left_type = type_of(left, schema)
    if isinstance(right, Literal):
        return left_type, adapted(right.value, left_type, expression.op)
    return left_type, type_of(right, schema)


def type_of(expression: Expression, schema: Schema) -> Type:
    """The type of an expression over columns of these types."""
    if isinstance(expression, Column):
        return schema[expression.name]
    if isinstance(expression, Literal):
        own = literal_type(expression.value)
        if own is None:
            raise UnspecifiedError("a null without a type")
        return own
    if isinstance(expression, Unary):
        operand = type_of(expression.operand, schema)
        if expression.op in ("is_null", "is_not_null"):
            return BOOL
        return arithmetic.unary_type(expression.op, operand)
    left, right = operand_types(expression, schema)
    if expression.op in ARITHMETIC:
        return arithmetic.binary_type(expression.op, left, right)
    if expression.op in LOGIC:
        if left == right == BOOL:
            return BOOL
        raise RefusedError(left, right)
    arithmetic.comparable_type(left, right)
    return BOOL


def evaluate(expression: Expression, schema: Schema, row: Row) -> Value:
    """The value of an expression in one row."""
    if isinstance(expression, Column):
        return row[expression.name]
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Unary):
        value = evaluate(expression.operand, schema, row)
        if expression.op == "is_null":
            return value is None
        if expression.op == "is_not_null":
            return value is not None
        if value is None:
            return None
        return arithmetic.unary(expression.op, value, type_of(expression.operand, schema))
    left = evaluate(expression.left, schema, row)
    right = evaluate(expression.right, schema, row)
    if expression.op in LOGIC:
        return three_valued(expression.op, left, right)
    if left is None or right is None:
        return None
    left_type, right_type = operand_types(expression, schema)
    if expression.op in ARITHMETIC:
        return arithmetic.binary(expression.op, left, left_type, right, right_type)
    return arithmetic.compare(expression.op, left, left_type, right, right_type)


def three_valued(op: str, left: Value, right: Value) -> bool | None:
    """SQL's logic: an unknown operand matters only where the other one does not settle the answer."""
    if op == "&":
        if left is False or right is False:
            return False
        return None if left is None or right is None else True
    if op == "|":
        if left is True or right is True:
            return True
        return None if left is None or right is None else False
    if left is None or right is None:
        return None
    return left is not right
