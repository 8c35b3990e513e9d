"""Expressions: what a pipeline computes from the columns of a row.

They are built from `col` and `lit` with Python's operators. Building one computes nothing and knows no types;
both happen when it meets a stream: types when the pipeline is built, values when it runs.

A null operand makes the result null, except that `&` and `|` follow SQL (`null & False` is False).
"""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, NoReturn, TypeAlias, final

from penstock import _penstock
from penstock._frozen import Frozen

__all__ = ["Expr", "Value", "as_expr", "col", "lit"]

Value: TypeAlias = bool | int | float | str | bytes | Decimal | datetime | date | timedelta | None


@final
class Expr(Frozen):
    """A computation on each row. Made by `col`, `lit` and operators, never directly.

    Operators: `+ - * / // %`, unary `-`, `== != < <= > >=`, and for booleans `& | ^ ~`. Python values on the
        other
    side are literals, so `col("kind") == "view"` compares with the text "view". As `==` builds an expression,
    expressions cannot be dictionary keys or members of sets.

    Example:
        >>> import penstock as ps
        >>> (ps.col("price") * 2 > 10) & (ps.col("kind") == "view")
        ((col("price") * 2) > 10) & (col("kind") == "view")
    """

    __slots__ = ("_native",)

    _native: _penstock.Expr

    # numpy would otherwise take `np.int64(3) + expr` for itself and hand back an array of objects.
    __array_ufunc__: ClassVar[None] = None

    def __init__(self, native: _penstock.Expr) -> None:
        if not isinstance(native, _penstock.Expr):
            raise TypeError("an Expr is not made directly: use penstock.col(name) or penstock.lit(value)")
        self._fill(_native=native)

    def _with(self, op: str, other: object) -> "Expr":
        return Expr(self._native.binary(op, as_expr(other)._native))

    def _after(self, other: object, op: str) -> "Expr":
        return Expr(as_expr(other)._native.binary(op, self._native))

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
        return self._with("//", other)

    def __rfloordiv__(self, other: Value) -> "Expr":
        return self._after(other, "//")

    def __mod__(self, other: "Expr | Value") -> "Expr":
        return self._with("%", other)

    def __rmod__(self, other: Value) -> "Expr":
        return self._after(other, "%")

    def __eq__(self, other: "Expr | Value") -> "Expr":  # type: ignore[override]  # builds an expression
        return self._with("==", other)

    def __ne__(self, other: "Expr | Value") -> "Expr":  # type: ignore[override]  # builds an expression
        return self._with("!=", other)

    # With `==` building expressions, a set or a dictionary could not tell two of them apart.
    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: "Expr | Value") -> "Expr":
        return self._with("<", other)

    def __le__(self, other: "Expr | Value") -> "Expr":
        return self._with("<=", other)

    def __gt__(self, other: "Expr | Value") -> "Expr":
        return self._with(">", other)

    def __ge__(self, other: "Expr | Value") -> "Expr":
        return self._with(">=", other)

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
        return Expr(self._native.unary("-"))

    def __invert__(self) -> "Expr":
        return Expr(self._native.unary("~"))

    def is_null(self) -> "Expr":
        """Whether the value is null. Not the same as `expr == None`, which is null for every row.

        Returns:
            A boolean expression that is never null itself.

        Example:
            >>> import penstock as ps
            >>> ps.col("price").is_null()
            col("price").is_null()
        """
        return Expr(self._native.unary("is_null"))

    def is_not_null(self) -> "Expr":
        """Whether the value is there.

        Returns:
            A boolean expression that is never null itself.

        Example:
            >>> import penstock as ps
            >>> ps.col("price").is_not_null()
            col("price").is_not_null()
        """
        return Expr(self._native.unary("is_not_null"))

    def alias(self, name: str) -> "Expr":
        """The same values under another column name.

        Args:
            name: What the column is to be called where the expression is selected.

        Returns:
            The renamed expression.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).select((ps.col("price") * 2).alias("double")).schema.names
            ['double']
        """
        if not isinstance(name, str):
            raise TypeError(f"alias() takes a column name, not {type(name).__name__}")
        return Expr(self._native.alias(name))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression is neither true nor false before the pipeline runs: use & instead of and, "
            "| instead of or, ~ instead of not, and (low < x) & (x < high) instead of low < x < high; "
            "each side of & and | needs its own parentheses"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError("an expression stands for one value per row and cannot be looped over")

    def __contains__(self, item: object) -> NoReturn:
        raise TypeError(
            "an expression has no members: instead of in, compare with == and join the comparisons with |"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("an expression cannot be pickled on its own: pickle the Stream that uses it")

    def __repr__(self) -> str:
        return repr(self._native)


def as_expr(value: object) -> Expr:
    """Takes an expression as it is, and anything else as a literal.

    Args:
        value: An expression or a Python value.

    Returns:
        The expression.

    Raises:
        TypeError: There is no literal for this kind of value.

    Example:
        >>> import penstock as ps
        >>> as_expr(ps.col("a")), as_expr(3)
        (col("a"), 3)
    """
    return value if isinstance(value, Expr) else lit(value)


def col(name: str) -> Expr:
    """A column of the stream, by name.

    Args:
        name: The name of the column. Whether the stream has it is checked when the expression is used.

    Returns:
        The expression.

    Raises:
        TypeError: The name is not a string.

    Example:
        >>> import penstock as ps
        >>> ps.col("price") + 1
        col("price") + 1
    """
    if not isinstance(name, str):
        raise TypeError(
            f"col() takes a column name, not {type(name).__name__}; a constant is written lit({name!r})"
        )
    return Expr(_penstock.Expr.column(name))


# `Any`: besides `Value`, numpy's scalars are taken, which cannot be named here without numpy.
def lit(value: Any) -> Expr:
    """The same value for every row. Rarely needed: next to an operator, plain Python values will do.

    Args:
        value: None, bool, int, float, str, bytes, Decimal, datetime, date or timedelta, or a numpy number. A
            datetime with a time zone is the instant it stands for, in UTC.

    Returns:
        The expression. A whole number takes the type of the column it meets if it fits.

    Raises:
        TypeError: There is no literal for this kind of value.

    Example:
        >>> import penstock as ps
        >>> ps.stream({"price": "int64"}).select("price", currency=ps.lit("EUR")).schema.types
        ['int64', 'string']
    """
    if isinstance(value, Expr):
        raise TypeError(f"lit() takes a Python value; {value!r} is an expression already")
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind and kind in "biuf" and getattr(value, "shape", None) == ():
        return Expr(_penstock.Expr.literal(value.item()))
    return Expr(_penstock.Expr.literal(value))
