"""What `Expr.cast` promises, value by value.

`cast` raises `RefusedError` for types that do not go together, `FailedError` where the engine must raise a
`ComputeError`, and `UnspecifiedError` for what the documentation leaves open.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal
from zoneinfo import ZoneInfo

from reference.arithmetic import FailedError, RefusedError, UnspecifiedError, fit, rounded
from reference.types import FLOAT32, PER_SECOND, Type, Value

__all__ = ["cast"]

EXACT = Context(prec=1000)
EPOCH = date(1970, 1, 1)
NUMBERS = ("int", "float", "decimal", "bool")
READABLE = ("int", "float", "decimal", "bool", "timestamp", "date", "time")


def check(kind: Type, to: Type) -> None:
    """Raises `RefusedError` unless values of one type can be cast to the other."""
    pair = (kind.kind, to.kind)
    both = set(pair)
    fine = (
        (kind.kind in NUMBERS and to.kind in NUMBERS)
        or (kind.kind == "int" and to.is_temporal())
        or (to.kind == "int" and kind.is_temporal())
        or (kind.kind == "string" and to.kind in READABLE)
        or (to.kind == "string" and kind.kind in READABLE)
        or both <= {"string", "binary"}
        or (len(both) == 1 and kind.kind in ("date", "duration", "time"))
        or (pair == ("timestamp", "timestamp") and (kind.zone is None) == (to.zone is None))
        or pair == ("timestamp", "date")
        or (pair == ("date", "timestamp") and to.zone is None)
    )
    if not fine:
        raise RefusedError(kind, to)


def cast(value: Value, kind: Type, to: Type) -> Value:
    """The value as another type; it is not null."""
    check(kind, to)
    if kind == to:
        return value
    if to.kind == "binary":
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, bytes):
        return as_text(value)
    if to.kind == "string":
        return written(value, kind)
    if isinstance(value, str):
        return read(value, to)
    if kind.is_temporal() and to.is_temporal():
        assert isinstance(value, int)
        return in_unit(value, kind, to)
    if to.is_temporal():
        assert isinstance(value, int)
        return counted(value, to)
    return number(value, to)


def as_text(value: bytes) -> str:
    """Bytes as text, if they are."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise FailedError("not UTF-8") from None


def number(value: Value, to: Type) -> Value:
    """A number as another kind of number."""
    assert isinstance(value, (int, float, Decimal))
    if to.kind == "bool":
        return bool(value)
    if to.kind == "int":
        if isinstance(value, float) and not math.isfinite(value):
            raise FailedError("not finite")
        return fit(int(value), to)
    if to.kind == "float":
        if to == FLOAT32 and not isinstance(value, float) and abs(float(value)) > 2**53:
            raise UnspecifiedError("an integer that is rounded twice on its way to float32")
        real = float(value)
        if math.isfinite(real) and math.isinf(rounded(real, to)):
            raise FailedError("beyond float32")
        return rounded(real, to)
    rounding = ROUND_HALF_EVEN if isinstance(value, float) else ROUND_DOWN
    if isinstance(value, float) and not math.isfinite(value):
        raise FailedError("not finite")
    return digits(Decimal(value), to, rounding)


def digits(value: Decimal, to: Type, rounding: str) -> Decimal:
    """A decimal with the places of the type, if it has room for the digits."""
    made = value.quantize(Decimal(1).scaleb(-to.scale), rounding, EXACT)
    if made.scaleb(to.scale, EXACT).copy_abs() >= 10**to.precision:
        raise FailedError(f"{value} does not fit {to}")
    # Arrow knows no negative zero.
    return made if made else made.copy_abs()


def limits(kind: Type) -> Type:
    """The integer type that a temporal type is stored as."""
    return Type("int", 32 if kind.bits == 32 else 64)


def counted(value: int, to: Type) -> int:
    """An integer as a count of units."""
    fit(value, limits(to))
    if to.kind == "time" and not 0 <= value < to.ticks_per_day():
        raise FailedError("beyond the day")
    if to.kind == "date" and to.unit == "ms":
        return fit(value - value % to.ticks_per_day(), limits(to))
    return value


def in_unit(value: int, kind: Type, to: Type) -> int:
    """A time in another unit."""
    if kind.kind == "timestamp" and to.kind == "date" and kind.zone:
        per_second = PER_SECOND[kind.unit]
        value += offset(kind.zone, value // per_second) * per_second
    have, want = kind.ticks_per_day(), to.ticks_per_day()
    if to.kind == "date":
        made = value // have * want
    elif want >= have:
        made = value * (want // have)
    else:
        made = value // (have // want)
        if kind.kind == "duration" and value < 0:
            made = -(-value // (have // want))
    return fit(made, limits(to))


def zone_of(name: str) -> tzinfo:
    """A zone by name, or by its offset."""
    if name[0] in "+-":
        return timezone(timedelta(hours=int(name[:3]), minutes=int(name[0] + name[4:])))
    return UTC if name == "UTC" else ZoneInfo(name)


def offset(name: str, seconds: int) -> int:
    """How far the clocks of a zone are ahead of UTC."""
    try:
        at = datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
        ahead = at.astimezone(zone_of(name)).utcoffset()
    except OverflowError:
        raise UnspecifiedError("beyond Python's calendar") from None
    assert ahead is not None
    return int(ahead.total_seconds())


def fraction(ticks: int, unit: str) -> str:
    """The fraction of a second, if it is not zero."""
    count = len(str(PER_SECOND[unit])) - 1
    return f".{ticks:0{count}}" if ticks else ""


def written(value: Value, kind: Type) -> str:
    """A value as text."""
    if kind.kind == "bool":
        return "true" if value else "false"
    if kind.kind == "float":
        raise UnspecifiedError("how a float is printed")
    if kind.kind == "decimal":
        assert isinstance(value, Decimal)
        return f"{value.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT):f}"
    assert isinstance(value, int)
    if kind.kind == "int":
        return str(value)
    if kind.kind == "time":
        seconds, rest = divmod(value, PER_SECOND[kind.unit])
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return clock + fraction(rest, kind.unit)
    days, rest = divmod(value, kind.ticks_per_day())
    try:
        day = EPOCH + timedelta(days=days)
        if kind.kind == "date":
            return day.isoformat()
        seconds, ticks = divmod(rest, PER_SECOND[kind.unit])
        at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=seconds)
        ending = fraction(ticks, kind.unit)
        if kind.zone is None:
            return at.replace(tzinfo=None).isoformat() + ending
        if kind.zone == "UTC":
            return at.replace(tzinfo=None).isoformat() + ending + "Z"
        local = at.astimezone(zone_of(kind.zone))
    except OverflowError:
        raise UnspecifiedError("beyond Python's calendar") from None
    shown = local.isoformat()
    return shown[:19] + ending + shown[19:]


CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"


def read(text: str, to: Type) -> Value:
    """What a text says."""
    if not text.isascii():
        raise FailedError(text)
    if to.kind == "int" and re.fullmatch(r"[+-]?\d+", text):
        if text.startswith("-") and not to.signed:
            raise UnspecifiedError("minus zero as an unsigned number")
        return fit(int(text), to)
    if to.kind == "float" and re.fullmatch(
        r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", text, re.IGNORECASE
    ):
        value = rounded(float(text), to)
        if math.isinf(value) and "inf" not in text.lower():
            raise FailedError(text)
        return value
    if to.kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if to.kind == "decimal" and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", text):
        return digits(Decimal(text), to, ROUND_DOWN)
    if to.kind == "time" and (found := re.fullmatch(CLOCK, text)):
        return of_day(found.groups(), to.unit)
    if to.kind == "date" and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return day_of(text) * to.ticks_per_day()
    if to.kind == "timestamp":
        return instant(text, to)
    raise FailedError(text)


def day_of(text: str) -> int:
    """The day since the epoch."""
    try:
        return (date.fromisoformat(text) - EPOCH).days
    except ValueError:
        raise FailedError(text) from None


def of_day(parts: tuple[str | None, ...], unit: str) -> int:
    """A time of day in units."""
    hour, minute, second = (int(part or 0) for part in parts[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise FailedError("no such time")
    nanos = int((parts[3] or "0").ljust(9, "0"))
    return (hour * 3600 + minute * 60 + second) * PER_SECOND[unit] + nanos * PER_SECOND[unit] // 10**9


def instant(text: str, to: Type) -> int:
    """A timestamp in units."""
    found = re.fullmatch(rf"(\d{{4}}-\d\d-\d\d)(?:[T ]{CLOCK}(Z|[+-]\d\d:\d\d)?)?", text)
    if not found:
        raise FailedError(text)
    day, *clock, ending = found.groups()
    per_second = PER_SECOND[to.unit]
    ticks = day_of(day) * 86_400 * per_second + of_day(tuple(clock), to.unit)
    if to.zone is None:
        if ending:
            raise FailedError("an offset without a zone")
        return fit(ticks, limits(to))
    seconds, rest = divmod(ticks, per_second)
    if ending == "Z":
        ahead = 0
    elif ending:
        hours, minutes = int(ending[1:3]), int(ending[4:])
        if hours > 23 or minutes > 59:
            raise FailedError(text)
        ahead = (hours * 3600 + minutes * 60) * (-1 if ending[0] == "-" else 1)
    else:
        ahead = local_offset(to.zone, seconds)
    return fit((seconds - ahead) * per_second + rest, limits(to))


def local_offset(name: str, local: int) -> int:
    """How far the clocks are ahead of UTC when they show `local`, the first of two times."""
    try:
        at = datetime(1970, 1, 1) + timedelta(seconds=local)
        ahead = at.replace(tzinfo=zone_of(name), fold=0).utcoffset()
        assert ahead is not None
        back = (at - ahead).replace(tzinfo=UTC).astimezone(zone_of(name))
    except OverflowError:
        raise UnspecifiedError("beyond Python's calendar") from None
    if back.replace(tzinfo=None) != at:
        raise FailedError("the clocks skip it")
    return int(ahead.total_seconds())
