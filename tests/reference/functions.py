"""Functions of expressions, value by value, from their docstrings. No argument is null."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

from reference.arithmetic import FailedError, RefusedError, fit
from reference.casts import zone_of
from reference.types import PER_SECOND, Type, Value

__all__ = ["part", "rounded", "truncated"]

ROUNDING = {"floor": ROUND_FLOOR, "ceil": ROUND_CEILING, "round": ROUND_HALF_UP}
OF_DAY = ("hour", "minute", "second", "millisecond")


def rounded(name: str, value: Value, kind: Type) -> Value:
    """`floor`, `ceil`, `round`, `abs` or `sqrt` of a number."""
    if name == "abs" and kind.kind == "duration":
        assert isinstance(value, int)
        return fit(abs(value), Type("int"))
    if not kind.is_number():
        raise RefusedError(kind)
    assert isinstance(value, (int, float, Decimal))
    if name == "sqrt":
        real = float(value)
        return math.nan if real < 0 else math.sqrt(real)
    if name == "abs":
        if isinstance(value, Decimal):
            return value.copy_abs()
        return fit(abs(value), kind) if isinstance(value, int) else abs(value)
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal):
        whole = value.quantize(Decimal(1), ROUNDING[name], Context(prec=100))
        made = whole.quantize(Decimal(1).scaleb(-max(kind.scale, 0)), context=Context(prec=100))
        if made.scaleb(kind.scale, Context(prec=100)).copy_abs() >= 10**38:
            raise FailedError(f"{made} needs more than 38 digits")
        return made if made else made.copy_abs()
    if not math.isfinite(value):
        return value
    if name == "round":
        # Exactly, since adding a half to a float may round.
        return float(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP, Context(prec=400)))
    return float(math.floor(value) if name == "floor" else math.ceil(value))


def part(name: str, value: int, kind: Type) -> int:
    """A part of a time that lies within Python's calendar."""
    if kind.kind == "date":
        if name in OF_DAY:
            raise RefusedError(kind)
        at = datetime(1970, 1, 1) + timedelta(days=value // kind.ticks_per_day())
    elif kind.kind == "time":
        if name not in OF_DAY:
            raise RefusedError(kind)
        at = datetime(1970, 1, 1) + timedelta(seconds=value // PER_SECOND[kind.unit])
    elif kind.kind == "timestamp":
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value // PER_SECOND[kind.unit])
        if kind.zone is not None:
            at = at.astimezone(zone_of(kind.zone))
    else:
        raise RefusedError(kind)
    if name == "millisecond":
        return value % PER_SECOND[kind.unit] * 1000 // PER_SECOND[kind.unit]
    if name == "weekday":
        return at.isoweekday()
    if name == "ordinal_day":
        return at.timetuple().tm_yday
    if name == "date":
        return (at.date() - date(1970, 1, 1)).days
    found = getattr(at, name)
    assert isinstance(found, int)
    return found


def truncated(value: int, step: int) -> int:
    """The last multiple of a step at or before a count of 64 bits."""
    return fit(value // step * step, Type("int"))
