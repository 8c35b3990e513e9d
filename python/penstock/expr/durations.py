"""What a duration may be: "250ms", a `datetime.timedelta`, or a whole number of units of the time column.

The spelling of strings is the engine's affair (and its error is `DurationError`); here only the Python types
are sorted out.
"""

import operator
from datetime import timedelta
from typing import TypeAlias

__all__ = ["Duration", "normalise_duration"]

Duration: TypeAlias = str | int | timedelta

_MICROSECOND = timedelta(microseconds=1)


def normalise_duration(value: Duration, argument: str) -> str | int:
    """Turns a duration into what the engine reads: a string with a unit, or a whole number.

    Args:
        value: The duration as the user wrote it.
        argument: How the user knows it, for the error message.

    Returns:
        Strings and whole numbers as they are; a timedelta as a string in microseconds, without rounding.

    Raises:
        TypeError: It is something else.

    Example:
        >>> from datetime import timedelta
        >>> from penstock.expr.durations import normalise_duration
        >>> normalise_duration("250ms", "delay"), normalise_duration(timedelta(seconds=1.5), "delay")
        ('250ms', '1500000us')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        return f"{value // _MICROSECOND}us"
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        return operator.index(value)
    raise TypeError(
        f'{argument} must be a duration such as "10s" or "250ms", a datetime.timedelta, or a whole number '
        f"in units of the time column, not {type(value).__name__} {value!r}"
    )
