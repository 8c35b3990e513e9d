"""What the operators do with two typed values: exact for integers and decimals, IEEE for floats."""

from __future__ import annotations

import ctypes
import math
from decimal import Context, Decimal

from reference.types import BOOL, FLOAT32, FLOAT64, UINT64, Type, Value, decimal, duration

EXACT = Context(prec=200)
INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
FINER = ("s", "ms", "us", "ns")


class RefusedError(Exception):
    """Types that do not go together."""

    def __init__(self, *types: Type) -> None:
        super().__init__(*types)
        self.types = types


class FailedError(Exception):
    """A row in which the engine must raise a ComputeError."""


class UnspecifiedError(Exception):
    """The documentation does not say."""


def as_decimal(kind: Type) -> Type:
    """The decimal type that holds every value of an integer type."""
    if kind.kind == "decimal":
        return kind
    return decimal(20 if kind == UINT64 else INTEGER_DIGITS[kind.bits], 0)


def number_type(left: Type, right: Type) -> Type:
    """The type in which two numbers meet, for everything but decimals."""
    if "float" in (left.kind, right.kind):
        small = all(t == FLOAT32 or (t.kind == "int" and t.bits <= 16) for t in (left, right))
        # uint8 and uint16 fit a float32 as well, but only int8 and int16 are named.
        if small and any(t.kind == "int" and not t.signed for t in (left, right)):
            raise UnspecifiedError("a small unsigned integer with a float32")
        return FLOAT32 if small else FLOAT64
    if left.signed == right.signed:
        return left if left.bits >= right.bits else right
    signed, unsigned = (left, right) if left.signed else (right, left)
    if unsigned == UINT64:
        raise RefusedError(left, right)
    return Type("int", max(signed.bits, 2 * unsigned.bits))


def finer(left: Type, right: Type) -> str:
    """The finer of two units."""
    return max(left.unit, right.unit, key=FINER.index)


def binary_type(op: str, left: Type, right: Type) -> Type:
    """The type of `left op right` for the arithmetic operators."""
    kinds = (left.kind, right.kind)
    if left.is_number() and right.is_number():
        if "decimal" in kinds and op in ("//", "%"):
            raise UnspecifiedError("floor division of decimals")
        if op == "/":
            if UINT64 in (left, right) and any(t.kind == "int" and t.signed for t in (left, right)):
                raise UnspecifiedError("true division of uint64 by a signed type")
            return FLOAT64
        if "decimal" in kinds:
            return FLOAT64 if "float" in kinds else decimal_type(op, as_decimal(left), as_decimal(right))
        return number_type(left, right)
    if kinds == ("timestamp", "timestamp") and op == "-" and same_zone_kind(left, right):
        return duration(finer(left, right))
    if kinds == ("timestamp", "duration") and op in ("+", "-"):
        return Type("timestamp", unit=finer(left, right), zone=left.zone)
    if kinds == ("duration", "timestamp") and op == "+":
        return Type("timestamp", unit=finer(left, right), zone=right.zone)
    if kinds == ("duration", "duration") and op in ("+", "-"):
        return duration(finer(left, right))
    raise RefusedError(left, right)


def same_zone_kind(left: Type, right: Type) -> bool:
    """Whether both timestamps have a zone, or neither has."""
    return (left.zone is None) == (right.zone is None)


def decimal_type(op: str, left: Type, right: Type) -> Type:
    """The type of an exact decimal operation; only the scale is documented, the precision is capped at 38."""
    if op == "*":
        scale, digits = left.scale + right.scale, left.precision + right.precision
        if scale > 38:
            raise UnspecifiedError("a product with more than 38 places")
    else:
        scale = max(left.scale, right.scale)
        digits = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    return decimal(min(38, digits), scale)


def comparable_type(left: Type, right: Type) -> None:
    """Raises `RefusedError` unless the two types can be compared."""
    if left.is_number() and right.is_number():
        if "decimal" not in (left.kind, right.kind) and "float" in (left.kind, right.kind):
            number_type(left, right)
        return
    if left.kind != right.kind or (left.kind == "timestamp" and not same_zone_kind(left, right)):
        raise RefusedError(left, right)


def unary_type(op: str, operand: Type) -> Type:
    """The type of `-x` or `~x`."""
    if op == "~":
        if operand != BOOL:
            raise RefusedError(operand)
        return BOOL
    if operand.kind == "int" and not operand.signed:
        raise UnspecifiedError("negating an unsigned integer")
    if operand.kind == "duration":
        raise UnspecifiedError("negating a duration")
    if not operand.is_number():
        raise RefusedError(operand)
    return operand


def fit(value: int, kind: Type) -> int:
    """The value, if the type can hold it."""
    if not kind.low <= value <= kind.high:
        raise FailedError(f"{value} does not fit {kind}")
    return value


def rounded(value: float, kind: Type) -> float:
    """The value in the precision of a float type."""
    return ctypes.c_float(value).value if kind == FLOAT32 else value


def unary(op: str, value: Value, kind: Type) -> Value:
    """`-value` or `~value`."""
    if op == "~":
        return not value
    assert isinstance(value, (int, float, Decimal))
    if kind.kind == "int":
        return fit(-int(value), kind)
    return value.copy_negate() if isinstance(value, Decimal) else -value


def rescaled(value: Value, kind: Type, target: Type) -> int:
    """A temporal value in the unit of `target`, which is at least as fine."""
    assert isinstance(value, int)
    return value * (target.ticks_per_day() // kind.ticks_per_day())


def binary(op: str, left: Value, left_type: Type, right: Value, right_type: Type) -> Value:
    """`left op right` for the arithmetic operators; neither value is null."""
    result = binary_type(op, left_type, right_type)
    if result.is_temporal():
        unit = Type("duration", unit=result.unit)
        a, b = fit(rescaled(left, left_type, unit), unit), fit(rescaled(right, right_type, unit), unit)
        return fit(a + b if op == "+" else a - b, unit)
    if result.kind == "decimal":
        return decimal_value(op, exact(left), exact(right), result.scale)
    if result.kind == "float":
        # Both sides are brought to the result's type first; division is always done in float64.
        return rounded(float_value(op, real(left, result), real(right, result)), result)
    assert isinstance(left, int)
    assert isinstance(right, int)
    if op in ("//", "%") and right == 0:
        raise FailedError("division by zero")
    if op == "+":
        return fit(left + right, result)
    if op == "-":
        return fit(left - right, result)
    if op == "*":
        return fit(left * right, result)
    return fit(left // right, result) if op == "//" else left % right


def real(value: Value, kind: Type) -> float:
    """A number as a float of the given precision."""
    assert isinstance(value, (int, float, Decimal))
    return rounded(float(value), kind)


def exact(value: Value) -> Decimal:
    """An integer or decimal as a decimal."""
    assert isinstance(value, (int, Decimal))
    return Decimal(value)


def decimal_value(op: str, left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Exact decimal arithmetic; what needs more than 38 digits at this scale fails."""
    operation = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}[op]
    value = operation(left, right)
    if abs(value.scaleb(scale, EXACT)) >= 10**38:
        raise FailedError(f"{value} needs more than 38 digits")
    return value


def float_value(op: str, left: float, right: float) -> float:
    """Float arithmetic: IEEE, with Python's floor division."""
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    if right == 0.0:
        if op == "//" and left == left and left != 0.0:
            raise UnspecifiedError("floor division of a number by a float zero: nan or an infinity")
        if op != "/" or left == 0.0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    if op == "/":
        return left / right
    return left // right if op == "//" else left % right


def order_key(value: float) -> tuple[bool, float]:
    """Sorts floats the documented way: NaN equals NaN and is above every number; -0.0 equals 0.0."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def compare(op: str, left: Value, left_type: Type, right: Value, right_type: Type) -> bool:
    """`left op right` for the comparison operators; neither value is null."""
    if left_type.is_temporal():
        both = (left_type, right_type)
        target = max(both, key=Type.ticks_per_day)
        a, b = (rescaled(v, t, target) for v, t in zip((left, right), both, strict=True))
        if not all(-(2**63) <= v < 2**63 for v in (a, b)):
            raise UnspecifiedError("a comparison whose finer unit cannot hold a side")
        return ordered(op, a, b)
    if "float" in (left_type.kind, right_type.kind):
        if "decimal" in (left_type.kind, right_type.kind):
            kind = FLOAT64
        else:
            kind = number_type(left_type, right_type)
        return ordered(op, order_key(real(left, kind)), order_key(real(right, kind)))
    return ordered(op, left, right)


def ordered(op: str, left: object, right: object) -> bool:
    """Python's own comparison of two values of one kind."""
    a, b = left, right
    if op == "==":
        return a == b
    if op == "!=":
        return a != b
    if op == "<":
        return a < b  # type: ignore[operator,no-any-return]
    if op == "<=":
        return a <= b  # type: ignore[operator,no-any-return]
    if op == ">":
        return a > b  # type: ignore[operator,no-any-return]
    return a >= b  # type: ignore[operator,no-any-return]
