"""Literals: Python values as constant expressions."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from penstock import _penstock

__all__ = ["Value", "literal"]

Value: TypeAlias = bool | int | float | str | bytes | Decimal | datetime | date | timedelta | None


# `Any`: besides `Value`, numpy's scalars are taken, which cannot be named here without numpy.
def literal(value: Any) -> _penstock.Expr:
    """Builds the native literal of a value.

    Args:
        value: A Python value, or a numpy number.

    Returns:
        The literal.

    Raises:
        TypeError: There is no literal for this kind of value.

    Example:
        >>> from penstock.expr.literals import literal
        >>> literal("EUR")
        "EUR"
    """
    if callable(value) and not isinstance(value, type) and getattr(value, "dtype", None) is None:
        raise TypeError(
            'an expression is built of columns and values, as in col("price") > 3, not of a function; '
            "for code of your own there is Stream.map_batches(function)"
        )
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind and kind in "biuf" and getattr(value, "shape", None) == ():
        return _penstock.Expr.literal(value.item())
    return _penstock.Expr.literal(value)
