"""Expressions that choose between others, row by row.

What is not chosen in a row is not computed there as far as errors go: `when(x != 0).then(10 // x)` never
divides by zero.
"""

from typing import Any

from penstock import _penstock
from penstock.expr._frozen import Frozen
from penstock.expr.expression import Expr, as_expr

__all__ = ["Then", "When", "coalesce", "when"]

_Branches = tuple[tuple[_penstock.Expr, _penstock.Expr], ...]


class When(Frozen):
    """A condition that waits for its value. Made by `when`.

    Example:
        >>> import penstock as ps
        >>> ps.when(ps.col("a") > 1)
        when(col("a") > 1)
    """

    __slots__ = ("_branches", "_condition")

    _branches: _Branches
    _condition: Expr

    def __init__(self, branches: _Branches, condition: Expr) -> None:
        self._fill(_branches=branches, _condition=condition)

    # `Any`: besides `Value`, numpy's scalars are taken.
    def then(self, value: Any) -> "Then":
        """Sets the value for rows in which the condition holds.

        Args:
            value: An expression or a Python value. A string is text, not the name of a column.

        Returns:
            An expression that is null in all other rows, unless `when` or `otherwise` follows.

        Example:
            >>> import penstock as ps
            >>> ps.when(ps.col("a") > 1).then("large")
            when(col("a") > 1).then("large")
        """
        branch = (self._condition._native, as_expr(value)._native)
        return Then((*self._branches, branch))

    def __repr__(self) -> str:
        before = f"{Then(self._branches)!r}." if self._branches else ""
        return f"{before}when({self._condition!r})"


class Then(Expr):
    """Conditions with their values: an expression that can be extended.

    Example:
        >>> import penstock as ps
        >>> then = ps.when(ps.col("a") > 1).then(ps.col("b"))
        >>> isinstance(then, ps.Expr)
        True
    """

    __slots__ = ("_branches",)

    _branches: _Branches

    def __init__(self, branches: _Branches) -> None:
        super().__init__(_penstock.Expr.when(list(branches), None))
        self._fill(_branches=branches)

    def when(self, condition: Expr) -> When:
        """Adds a condition for the rows in which no earlier one holds.

        Args:
            condition: A boolean expression.

        Returns:
            The condition; `then` gives it a value.

        Raises:
            TypeError: The condition is no expression. A bool is none: it would be the same for all rows.

        Example:
            >>> import penstock as ps
            >>> ps.when(ps.col("a") > 9).then(2).when(ps.col("a") > 1).then(1)
            when(col("a") > 9).then(2).when(col("a") > 1).then(1)
        """
        return When(self._branches, _as_condition(condition))

    # `Any`: besides `Value`, numpy's scalars are taken.
    def otherwise(self, value: Any) -> Expr:
        """Sets the value for rows in which no condition holds.

        Args:
            value: An expression or a Python value. Without this call it is null.

        Returns:
            The whole expression, in the type in which all values meet, by the rules of arithmetic.

        Example:
            >>> import penstock as ps
            >>> ps.when(ps.col("a") > 1).then(2).otherwise(3)
            when(col("a") > 1).then(2).otherwise(3)
        """
        return Expr(_penstock.Expr.when(list(self._branches), as_expr(value)._native))


def _as_condition(condition: object) -> Expr:
    if isinstance(condition, Expr):
        return condition
    text = f"when() takes a condition such as col('a') > 1, not {type(condition).__name__} {condition!r}"
    if isinstance(condition, bool):
        text += (
            ": Python decides `x is None` before the pipeline runs; write x.is_null() or x.is_not_null(), or "
            f"lit({condition}) if that is meant"
        )
    raise TypeError(text)


def when(condition: Expr) -> When:
    """Begins a choice: `when(condition).then(value)`, any number of times, perhaps with `.otherwise(value)`.

    A row takes the value beside the first condition that holds. A condition that is null does not hold.
    Values that a row does not take cannot fail in it, and neither can the conditions behind the one that
    holds.

    Args:
        condition: A boolean expression.

    Returns:
        The condition; `then` gives it a value.

    Raises:
        TypeError: The condition is no expression. A bool is none: it would be the same for all rows.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> share = ps.when(ps.col("n") != 0).then(10 // ps.col("n")).otherwise(-1)
        >>> table = pa.table({"n": [5, 0]})
        >>> pa.table(ps.stream(table.schema).select(share=share).run(table))["share"].to_pylist()
        [2, -1]
    """
    return When((), _as_condition(condition))


# `Any`: besides `Value`, numpy's scalars are taken.
def coalesce(first: Any, *others: Any) -> Expr:
    """Returns the first value that is not null.

    Args:
        first: An expression or a Python value. A string is text, not the name of a column.
        *others: The value if all before are null. It cannot fail in other rows.

    Returns:
        The expression, in the type in which all values meet, by the rules of arithmetic.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> table = pa.table({"a": [1, None, None], "b": [7, 8, None]})
        >>> first = ps.coalesce(ps.col("a"), ps.col("b"), 0)
        >>> pa.table(ps.stream(table.schema).select(first=first).run(table))["first"].to_pylist()
        [1, 8, 0]
    """
    inputs = [as_expr(value)._native for value in (first, *others)]
    return Expr(_penstock.Expr.call("coalesce", inputs))
