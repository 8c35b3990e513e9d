"""Aggregates: what is computed over the rows of each window and key.

`sum`, `min` and `max` are named as in SQL and as in Python, and are meant to be used with the package's name:
`ps.sum("price")`. Inside this module the names mean the aggregates, never the built-in functions.

Nulls are left out; if nothing else is there the result is null, for `count` 0.
"""

from typing import final

from penstock import _penstock
from penstock.expr._frozen import Frozen
from penstock.expr.expression import Expr, col

__all__ = ["Aggregate", "count", "count_distinct", "first", "last", "max", "mean", "min", "std", "sum", "var"]


@final
class Aggregate(Frozen):
    """A value per window and key: made by `count`, `sum` and so on, taken by `WindowedStream.agg`.

    Example:
        >>> import penstock as ps
        >>> ps.sum("price")
        sum(col("price"))
    """

    __slots__ = ("_native",)

    _native: _penstock.Aggregate

    def __init__(self, native: _penstock.Aggregate) -> None:
        if not isinstance(native, _penstock.Aggregate):
            raise TypeError(
                "an Aggregate is not made directly: use penstock.count(), penstock.sum(column), ..."
            )
        self._fill(_native=native)

    def alias(self, name: str) -> "Aggregate":
        """Gives the aggregate another column name.

        Args:
            name: What its column in the result is to be called.

        Returns:
            The renamed aggregate.

        Example:
            >>> import penstock as ps
            >>> ps.count().alias("views").name
            'views'
        """
        if not isinstance(name, str):
            raise TypeError(f"alias() takes a column name, not {type(name).__name__}")
        return Aggregate(self._native.alias(name))

    @property
    def name(self) -> str:
        """What its column in the result is called.

        Example:
            >>> import penstock as ps
            >>> ps.sum("price").name, ps.count().name
            ('price_sum', 'count')
        """
        return self._native.output_name()

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("an aggregate cannot be pickled on its own: pickle the Stream that uses it")

    def __repr__(self) -> str:
        return repr(self._native)


def _aggregate(kind: str, column: object) -> Aggregate:
    if isinstance(column, str):
        column = col(column)
    if not isinstance(column, Expr):
        raise TypeError(
            f"penstock.{kind}() takes a column name or an expression, not {type(column).__name__}; "
            f"for Python's own function of that name see the module builtins"
        )
    return Aggregate(_penstock.Aggregate(kind, column._native, None))


def count(column: str | Expr | None = None) -> Aggregate:
    """Counts rows, or the rows in which a value is not null.

    Args:
        column: A column name or an expression whose nulls are not counted. Without it all rows are.

    Returns:
        An aggregate of type int64, named "count" or "<column>_count".

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"at": "int64", "price": "int64"}, time="at")
        >>> counts = prices.window(ps.tumbling(10)).agg(ps.count(), ps.count("price"))
        >>> counts.run(pa.table({"at": [1, 2], "price": [5, None]})).to_pylist()
        [{'window_start': 0, 'window_end': 10, 'count': 2, 'price_count': 1}]
    """
    if column is None:
        return Aggregate(_penstock.Aggregate("count", None, None))
    return _aggregate("count", column)


def sum(column: str | Expr) -> Aggregate:
    """Sums up a column.

    Args:
        column: A column name or an expression: numbers, decimals or durations.

    Returns:
        An aggregate named "<column>_sum": int64 or uint64 for whole numbers (a total that does not fit is a
        `ComputeError`), float64 for floats, decimal128(38, s) for decimals, durations as they are.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"at": "int64", "price": "int64"}, time="at")
        >>> total = prices.window(ps.tumbling(10)).agg(ps.sum("price"))
        >>> total.run(pa.table({"at": [1, 2], "price": [5, 6]})).to_pylist()
        [{'window_start': 0, 'window_end': 10, 'price_sum': 11}]
    """
    return _aggregate("sum", column)


def min(column: str | Expr) -> Aggregate:
    """Takes the smallest value.

    Args:
        column: A column name or an expression of any type. Text and bytes are ordered byte by byte; NaN is
            larger than every number.

    Returns:
        An aggregate of the column's type, named "<column>_min".

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> names = ps.stream({"at": "int64", "name": "string"}, time="at")
        >>> first = names.window(ps.tumbling(10)).agg(first=ps.min("name"))
        >>> first.run(pa.table({"at": [1, 2], "name": ["b", "a"]})).to_pylist()
        [{'window_start': 0, 'window_end': 10, 'first': 'a'}]
    """
    return _aggregate("min", column)


def max(column: str | Expr) -> Aggregate:
    """Takes the largest value.

    Args:
        column: A column name or an expression of any type. Text and bytes are ordered byte by byte; NaN is
            larger than every number.

    Returns:
        An aggregate of the column's type, named "<column>_max".

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"at": "int64", "price": "int64"}, time="at")
        >>> highest = prices.window(ps.tumbling(10)).agg(highest=ps.max(ps.col("price") * 2))
        >>> highest.run(pa.table({"at": [1, 2], "price": [5, 6]})).to_pylist()
        [{'window_start': 0, 'window_end': 10, 'highest': 12}]
    """
    return _aggregate("max", column)


def mean(column: str | Expr) -> Aggregate:
    """Computes the arithmetic mean.

    Args:
        column: A column name or an expression: numbers or decimals.

    Returns:
        An aggregate of type float64, named "<column>_mean".

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"at": "int64", "price": "int64"}, time="at")
        >>> average = prices.window(ps.tumbling(10)).agg(ps.mean("price"))
        >>> average.run(pa.table({"at": [1, 2], "price": [5, 6]})).to_pylist()
        [{'window_start': 0, 'window_end': 10, 'price_mean': 5.5}]
    """
    return _aggregate("mean", column)


def count_distinct(column: str | Expr) -> Aggregate:
    """Counts distinct values, without nulls. The count is exact; each value is kept once.

    Args:
        column: A column name or an expression, of any type. NaN is one value, and -0.0 equals 0.0.

    Returns:
        An aggregate of type int64, named "<column>_count_distinct".

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> cars = ps.stream({"at": "int64", "car": "string"}, time="at").window(ps.tumbling(10))
        >>> different = cars.agg(cars=ps.count_distinct("car"))
        >>> different.run(pa.table({"at": [1, 2, 3], "car": ["a", "b", "a"]})).to_pylist()[0]["cars"]
        2
    """
    return _aggregate("count_distinct", column)


def var(column: str | Expr) -> Aggregate:
    """Computes the sample variance: squared distances from the mean, divided by their number minus one.

    Args:
        column: A column name or an expression: a number or a decimal.

    Returns:
        An aggregate of type float64, named "<column>_var"; null for fewer than two values.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"at": "int64", "price": "int64"}, time="at").window(ps.tumbling(10))
        >>> rows = prices.agg(var=ps.var("price")).run(pa.table({"at": [1, 2], "price": [2, 4]}))
        >>> rows.to_pylist()[0]["var"]
        2.0
    """
    return _aggregate("var", column)


def std(column: str | Expr) -> Aggregate:
    """Computes the sample standard deviation: the square root of `var`.

    Args:
        column: A column name or an expression: a number or a decimal.

    Returns:
        An aggregate of type float64, named "<column>_std"; null for fewer than two values.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"at": "int64", "price": "int64"}, time="at").window(ps.tumbling(10))
        >>> rows = prices.agg(std=ps.std("price")).run(pa.table({"at": [1, 2], "price": [2, 6]}))
        >>> rows.to_pylist()[0]["std"]
        2.8284271247461903
    """
    return _aggregate("std", column)


def first(column: str | Expr) -> Aggregate:
    """Takes the value at the earliest time, by the time column and not by arrival.

    The results of a window, of a join or of a co-group all have the time at which their window ends. So they
    have a first one only in longer windows, which hold the results of several; there it is the smallest value
    of the first of these. In others it is a `PlanError`: write `min`, or `top_k(1, column, smallest=True)`
    for the row that is first by another column.

    Args:
        column: A column name or an expression, of any type. Nulls are left out. Where several values have
            the earliest time, it is the smallest of them: so it does not depend on the order of arrival.

    Returns:
        An aggregate of the type of the column, named "<column>_first".

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"at": "int64", "price": "int64"}, time="at", delay=5).window(ps.tumbling(10))
        >>> rows = prices.agg(first=ps.first("price")).run(pa.table({"at": [3, 1], "price": [7, 8]}))
        >>> rows.to_pylist()[0]["first"]
        8
    """
    return _aggregate("first", column)


def last(column: str | Expr) -> Aggregate:
    """Takes the value at the latest time, by the time column and not by arrival.

    The results of a window, of a join or of a co-group all have the time at which their window ends. So they
    have a last one only in longer windows, which hold the results of several; there it is the largest value
    of the last of these. In others it is a `PlanError`: write `max`, or `top_k(1, column)` for the row that
    is last by another column.

    Args:
        column: A column name or an expression, of any type. Nulls are left out. Where several values have
            the latest time, it is the largest of them: so it does not depend on the order of arrival.

    Returns:
        An aggregate of the type of the column, named "<column>_last".

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"at": "int64", "price": "int64"}, time="at", delay=5).window(ps.tumbling(10))
        >>> rows = prices.agg(last=ps.last("price")).run(pa.table({"at": [3, 1], "price": [7, 8]}))
        >>> rows.to_pylist()[0]["last"]
        7
    """
    return _aggregate("last", column)
