"""What an aggregate makes of the rows of one group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from reference.arithmetic import EXACT, FailedError, RefusedError, fit, order_key
from reference.expressions import Expression, evaluate, type_of
from reference.types import BOOL, FLOAT64, INT64, UINT64, Type, Value, decimal


class Approximate(float):
    """A float total, with the sum of the magnitudes that went into it."""

    magnitude: float

    def __new__(cls, value: float, magnitude: float) -> Approximate:
        made = super().__new__(cls, value)
        made.magnitude = magnitude
        return made


def sort_key(value: Value) -> object:
    """Sorts values of one type; floats in the documented order."""
    return order_key(value) if isinstance(value, float) else value


def type_of_aggregate(kind: str, expression: Expression | None, schema: Mapping[str, Type]) -> Type:
    """The output type of an aggregate."""
    if kind == "count":
        return INT64
    assert expression is not None
    given = type_of(expression, schema)
    if kind in ("min", "max"):
        return given
    if kind == "mean":
        if not given.is_number():
            raise RefusedError(given)
        return FLOAT64
    if given.kind == "int":
        return INT64 if given.signed else UINT64
    if given.kind == "float":
        return FLOAT64
    if given.kind == "decimal":
        return decimal(38, given.scale)
    if given.kind == "duration":
        return given
    raise RefusedError(given)


def float_sum(values: Sequence[float]) -> Approximate:
    """The sum of floats; infinities of both signs cancel to NaN."""
    magnitude = math.fsum(abs(v) for v in values if math.isfinite(v))
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return Approximate(sum(special), magnitude)
    return Approximate(math.fsum(values), magnitude)


def value_of_aggregate(
    kind: str, expression: Expression | None, schema: Mapping[str, Type], rows: Sequence[Mapping[str, Value]]
) -> Value:
    """The aggregate over the rows of one group. Nulls are skipped."""
    if expression is None:
        return len(rows)
    every = [evaluate(expression, schema, row) for row in rows]
    values = [value for value in every if value is not None]
    if kind == "count":
        return len(values)
    if not values:
        return None
    if kind == "min":
        return min(values, key=sort_key)  # type: ignore[arg-type]
    if kind == "max":
        return max(values, key=sort_key)  # type: ignore[arg-type]
    given = type_of(expression, schema)
    assert given != BOOL
    if given.kind == "float":
        total = float_sum([float(value) for value in values])
        return total if kind == "sum" else Approximate(total / len(values), total.magnitude / len(values))
    if given.kind == "decimal":
        exact = Decimal(0)
        for value in values:
            assert isinstance(value, Decimal)
            exact = EXACT.add(exact, value)
        if kind == "mean":
            return Approximate(float(exact) / len(values), math.fsum(abs(float(v)) for v in values))
        if abs(exact.scaleb(given.scale, EXACT)) >= 10**38:
            raise FailedError("the sum needs more than 38 digits")
        return exact
    whole = sum(int(value) for value in values)
    if kind == "mean":
        return Approximate(whole / len(values), float(sum(abs(int(v)) for v in values)) / len(values))
    return fit(whole, type_of_aggregate("sum", expression, schema))
