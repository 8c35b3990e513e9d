"""Expressions: what a pipeline computes from the columns of a row.

They are built from `col` and `lit` with Python's operators. Building one computes nothing and knows no types;
both happen when it meets a stream: types when the pipeline is built, values when it runs.

A null operand makes the result null, except that `&` and `|` follow SQL (`null & False` is False).

Functions of text are under `.str` (`penstock.expr.strings`), those of times under `.dt`
(`penstock.expr.temporal`); `when` and `coalesce` (`penstock.expr.conditional`) choose between expressions.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from penstock import _penstock
from penstock.expr.hints import missing_of_expr
from penstock.expr.literals import Value, literal
from penstock.expr.operators import Operators, native_of
from penstock.expr.strings import StringFunctions
from penstock.expr.temporal import TemporalFunctions

__all__ = ["Expr", "as_expr", "col", "lit"]


class Expr(Operators):
    """A computation on each row. Made by `col`, `lit`, `when`, `coalesce` and operators, never directly.

    Operators: `+ - * / // %`, unary `-`, `== != < <= > >=`, and for booleans `& | ^ ~`. Python values on the
    other side are literals, so `col("kind") == "view"` compares with the text "view". As `==` builds an
    expression, expressions cannot be dictionary keys or members of sets.

    `/` always gives a float64. `//` rounds down, towards minus infinity, and `%` has the sign of the divisor,
    so that `(a // b) * b + a % b` is `a`, as in Python: `-7 // 2` is -4 and `-7 % 2` is 1. Integers are
    checked: a result that does not fit and a division by zero are a `ComputeError`. Floats follow IEEE 754
    and never fail, other than in Python: divided by zero, `/` gives an infinity, or NaN for zero and NaN,
    and `//` and `%` give NaN.

    Example:
        >>> import penstock as ps
        >>> (ps.col("price") * 2 > 10) & (ps.col("kind") == "view")
        ((col("price") * 2) > 10) & (col("kind") == "view")
    """

    __slots__ = ()

    def __init__(self, native: _penstock.Expr) -> None:
        if not isinstance(native, _penstock.Expr):
            raise TypeError("an Expr is not made directly: use penstock.col(name) or penstock.lit(value)")
        self._fill(_native=native)

    def _of(self, native: _penstock.Expr) -> "Expr":
        return Expr(native)

    def _call(self, name: str, *others: object) -> "Expr":
        inputs = [self._native, *map(native_of, others)]
        return Expr(_penstock.Expr.call(name, inputs))

    def _match(self, name: str, pattern: object) -> "Expr":
        if not isinstance(pattern, Expr | str):
            raise TypeError(f"{name}() takes text or a string expression, not {type(pattern).__name__}")
        return self._call(name, pattern)

    def is_null(self) -> "Expr":
        """Tests for null. `expr == None`, which would be null for every row, is refused.

        Returns:
            A boolean expression that is never null itself.

        Example:
            >>> import penstock as ps
            >>> ps.col("price").is_null()
            col("price").is_null()
        """
        return Expr(self._native.unary("is_null"))

    def is_not_null(self) -> "Expr":
        """Tests for a value that is not null.

        Returns:
            A boolean expression that is never null itself.

        Example:
            >>> import penstock as ps
            >>> ps.col("price").is_not_null()
            col("price").is_not_null()
        """
        return Expr(self._native.unary("is_not_null"))

    def cast(self, type_name: str) -> "Expr":
        """Converts values to another type.

        Nothing wraps around and nothing becomes null on the way: a value that the type cannot represent is a
        `ComputeError`, be it too large, NaN or an infinity as an integer, or text that does not read as the
        type. What a type has no digits for is cut off: towards zero for numbers and durations, so that 1.9
        becomes 1 and -1.9 becomes -1, and towards the past for times. The exceptions are rounded to the
        nearest: anything to a float, and a float to a decimal.

        * Numbers and bool: False is 0, True is 1; every number but zero is True.
        * Timestamps, dates, times and durations to integers and back: the count in their unit. Between units:
          as above. A timestamp to a date is the day in its time zone; a date to a timestamp is its midnight.
        * To string: numbers as Python prints them or shorter (`1e16`), `true` and `false`, decimals with all
          their places, times in ISO 8601 (`2024-05-01T12:00:00.250`), with the offset if the type has a time
          zone.
        * From string: the whole text, without spaces around it. Integers `-7`, floats `1.5`, `1e9`, `nan`,
          `inf`, bools `true` and `False`, decimals `-1.50`, dates `2024-05-01`, times `12:30:15.5`,
          timestamps `2024-05-01T12:30` or `2024-05-01 12:30:15.5`. With a time zone in the type, `Z` or a
          trailing `+02:00` names the instant; without, it is the local time of the zone.
        * Binary to string is refused row by row where the bytes are not UTF-8.

        Args:
            type_name: The name of the type, as in a schema: "int64", "decimal128(10, 2)", "timestamp[ms]".

        Returns:
            The expression of that type. Whether the types go together is checked when a pipeline uses it.

        Raises:
            PlanError: There is no such type.
            TypeError: The name is not a string.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"price": [1.9, -1.9]})
            >>> made = ps.stream(table.schema).select(n=ps.col("price").cast("int64"))
            >>> pa.table(made.run(table))["n"].to_pylist()
            [1, -1]
        """
        if not isinstance(type_name, str):
            raise TypeError(
                f'cast() takes the name of a type such as "int64", not {type(type_name).__name__}'
            )
        return Expr(self._native.cast(type_name))

    def fill_null(self, value: "Expr | Value") -> "Expr":
        """Replaces nulls. The same as `coalesce(expr, value)`.

        Args:
            value: The replacement for null: a Python value, or an expression. It is computed only where it is
                needed, so that it cannot fail elsewhere.

        Returns:
            The expression, in the type in which both meet.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"a": [1, None]})
            >>> made = ps.stream(table.schema).select(a=ps.col("a").fill_null(0))
            >>> pa.table(made.run(table))["a"].to_pylist()
            [1, 0]
        """
        return self._call("coalesce", value)

    def is_in(self, values: Iterable[Value]) -> "Expr":
        """Tests whether the value equals one of several literals.

        Args:
            values: Python values, compared with `==`.

        Returns:
            A boolean expression; null where the value is null, unless there is nothing to compare it with.

        Raises:
            TypeError: The values are a string, or not Python values.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"kind": ["view", "click", None]})
            >>> kinds = ps.stream(table.schema).select(r=ps.col("kind").is_in(["view", "buy"]))
            >>> pa.table(kinds.run(table))["r"].to_pylist()
            [True, False, None]
        """
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise TypeError(f"is_in() takes a list of values, not {type(values).__name__}")
        tests = [self._with("==", value) for value in values]
        # In pairs, so that a thousand values do not nest a thousand deep.
        while len(tests) > 1:
            pairs = [one | other for one, other in zip(tests[::2], tests[1::2], strict=False)]
            tests = pairs + tests[len(tests) & ~1 :]
        return tests[0] if tests else lit(False)

    def between(self, low: "Expr | Value", high: "Expr | Value") -> "Expr":
        """Tests whether the value lies between two bounds, both included.

        Args:
            low: The least value that is accepted.
            high: The largest.

        Returns:
            The same as `(expr >= low) & (expr <= high)`.

        Example:
            >>> import penstock as ps
            >>> ps.col("age").between(18, 65)
            (col("age") >= 18) & (col("age") <= 65)
        """
        return (self >= low) & (self <= high)

    def abs(self) -> "Expr":
        """Computes the magnitude of a number or a duration.

        Returns:
            An expression of the same type. The least integer of a type has no magnitude in it, and is a
            `ComputeError`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"a": [-3, 4]})
            >>> pa.table(ps.stream(table.schema).select(a=ps.col("a").abs()).run(table))["a"].to_pylist()
            [3, 4]
        """
        return self._call("abs")

    def floor(self) -> "Expr":
        """Rounds down, to the largest whole number that is not above the value.

        Returns:
            An expression of the same type: a float stays a float, an integer is its own floor. A decimal
            keeps its places and gets a digit more before the point if it can, since -9.99 becomes -10.00.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"a": [1.5, -1.5]})
            >>> pa.table(ps.stream(table.schema).select(a=ps.col("a").floor()).run(table))["a"].to_pylist()
            [1.0, -2.0]
        """
        return self._call("floor")

    def ceil(self) -> "Expr":
        """Rounds up, to the least whole number that is not below the value.

        Returns:
            An expression of the same type, as for `floor`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"a": [1.5, -1.5]})
            >>> pa.table(ps.stream(table.schema).select(a=ps.col("a").ceil()).run(table))["a"].to_pylist()
            [2.0, -1.0]
        """
        return self._call("ceil")

    def round(self) -> "Expr":
        """Rounds to the nearest whole number; a half rounds away from zero.

        Python's own `round` goes to the even one there.

        Returns:
            An expression of the same type, as for `floor`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"a": [2.5, -2.5, 2.4]})
            >>> pa.table(ps.stream(table.schema).select(a=ps.col("a").round()).run(table))["a"].to_pylist()
            [3.0, -3.0, 2.0]
        """
        return self._call("round")

    def sqrt(self) -> "Expr":
        """Computes the square root of a number.

        Returns:
            A float64 expression. The root of a negative number is NaN.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"a": [9, -1]})
            >>> pa.table(ps.stream(table.schema).select(a=ps.col("a").sqrt()).run(table))["a"].to_pylist()
            [3.0, nan]
        """
        return self._call("sqrt")

    def alias(self, name: str) -> "Expr":
        """Gives the expression another column name.

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
            "| instead of or, ~ instead of not, x.is_in([...]) instead of x in [...], and "
            "(low < x) & (x < high) instead of low < x < high; each side of & and | needs its own parentheses"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError("an expression stands for one value per row and cannot be looped over")

    def __contains__(self, item: object) -> NoReturn:
        raise TypeError(
            "an expression has no members: instead of value in expr, compare with ==; "
            "instead of expr in values, write expr.is_in(values)"
        )

    if not TYPE_CHECKING:  # a type checker is to know what is not there

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise missing_of_expr(self, name)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an expression cannot be pickled on its own: pickle the Stream that uses it")

    def __repr__(self) -> str:
        return repr(self._native)

    # The last of the class: within it, `str` is this from here on.
    @property
    def dt(self) -> TemporalFunctions:
        """Functions of timestamps, dates and times.

        Example:
            >>> import penstock as ps
            >>> ps.col("at").dt.year()
            col("at").dt.year()
        """
        return TemporalFunctions(self)

    @property
    def str(self) -> StringFunctions:
        """Functions of text.

        Example:
            >>> import penstock as ps
            >>> ps.col("name").str.lower()
            col("name").str.lower()
        """
        return StringFunctions(self)


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
        >>> from penstock.expr.expression import as_expr
        >>> as_expr(ps.col("a")), as_expr(3)
        (col("a"), 3)
    """
    return value if isinstance(value, Expr) else lit(value)


def col(name: str) -> Expr:
    """Refers to a column of the stream by name.

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
    """Makes a constant. Rarely needed: operators take plain Python values.

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
    return Expr(literal(value))
