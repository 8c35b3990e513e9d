"""The operators of an expression: arithmetic, comparisons and logic, as Python writes them."""

from typing import TYPE_CHECKING, ClassVar

from penstock import _penstock
from penstock.expr._frozen import Frozen
from penstock.expr.literals import Value, literal

if TYPE_CHECKING:
    from penstock.expr.expression import Expr

__all__ = ["Operators", "native_of"]


class Operators(Frozen):
    """The part of an `Expr` that Python's operators call.

    Example:
        >>> import penstock as ps
        >>> 3 - ps.col("price") * 2
        3 - (col("price") * 2)
    """

    __slots__ = ("_native",)

    _native: _penstock.Expr

    # numpy would otherwise take `np.int64(3) + expr` for itself and hand back an array of objects.
    __array_ufunc__: ClassVar[None] = None

    if TYPE_CHECKING:

        def _of(self, native: _penstock.Expr) -> "Expr": ...

    def _with(self, op: str, other: object) -> "Expr":
        return self._of(self._native.binary(op, native_of(other)))

    def _compared(self, op: str, other: object, instead: str) -> "Expr":
        if other is None:
            raise TypeError(
                f"{self!r} {op} None would be null for every row, whatever the value: "
                f"write {self!r}.{instead}()"
            )
        return self._with(op, other)

    def _ordered(self, op: str, other: object) -> "Expr":
        if other is None:
            raise TypeError(
                f"{self!r} {op} None would be null for every row, whatever the value: "
                f"write {self!r}.is_null() or {self!r}.is_not_null(), or compare it with a value"
            )
        return self._with(op, other)

    def _after(self, other: object, op: str) -> "Expr":
        return self._of(native_of(other).binary(op, self._native))

    def __add__(self, other: "Expr | Value") -> "Expr":
        return self._with("+", other)

    def __radd__(self, other: Value) -> "Expr":
        return self._after(other, "+")

    def __sub__(self, other: "Expr | Value") -> "Expr":
        return self._with("-", other)

    def __rsub__(self, other: Value) -> "Expr":
        return self._after(other, "-")

    def __mul__(self, other: "Expr | Value") -> "Expr":
        return self._with("*", other)

    def __rmul__(self, other: Value) -> "Expr":
        return self._after(other, "*")

    def __truediv__(self, other: "Expr | Value") -> "Expr":
        return self._with("/", other)

    def __rtruediv__(self, other: Value) -> "Expr":
        return self._after(other, "/")

    def __floordiv__(self, other: "Expr | Value") -> "Expr":
        """Divides and rounds down: towards minus infinity, whatever the signs."""
        return self._with("//", other)

    def __rfloordiv__(self, other: Value) -> "Expr":
        return self._after(other, "//")

    def __mod__(self, other: "Expr | Value") -> "Expr":
        """Computes the remainder of `//`. It has the sign of the divisor, or is zero."""
        return self._with("%", other)

    def __rmod__(self, other: Value) -> "Expr":
        return self._after(other, "%")

    def __eq__(self, other: "Expr | Value") -> "Expr":  # type: ignore[override]  # builds an expression
        return self._compared("==", other, "is_null")

    def __ne__(self, other: "Expr | Value") -> "Expr":  # type: ignore[override]  # builds an expression
        return self._compared("!=", other, "is_not_null")

    # With `==` building expressions, a set or a dictionary could not tell two of them apart.
    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: "Expr | Value") -> "Expr":
        return self._ordered("<", other)

    def __le__(self, other: "Expr | Value") -> "Expr":
        return self._ordered("<=", other)

    def __gt__(self, other: "Expr | Value") -> "Expr":
        return self._ordered(">", other)

    def __ge__(self, other: "Expr | Value") -> "Expr":
        return self._ordered(">=", other)

    def __and__(self, other: "Expr | Value") -> "Expr":
        return self._with("&", other)

    def __rand__(self, other: Value) -> "Expr":
        return self._after(other, "&")

    def __or__(self, other: "Expr | Value") -> "Expr":
        return self._with("|", other)

    def __ror__(self, other: Value) -> "Expr":
        return self._after(other, "|")

    def __xor__(self, other: "Expr | Value") -> "Expr":
        return self._with("^", other)

    def __rxor__(self, other: Value) -> "Expr":
        return self._after(other, "^")

    def __neg__(self) -> "Expr":
        return self._of(self._native.unary("-"))

    def __invert__(self) -> "Expr":
        return self._of(self._native.unary("~"))


def native_of(value: object) -> _penstock.Expr:
    """Returns the native form of an expression, and a literal for anything else.

    Args:
        value: An expression or a Python value.

    Returns:
        The native expression.

    Raises:
        TypeError: There is no literal for this kind of value.

    Example:
        >>> import penstock as ps
        >>> from penstock.expr.operators import native_of
        >>> native_of(ps.col("price")), native_of(3)
        (col("price"), 3)
    """
    return value._native if isinstance(value, Operators) else literal(value)
