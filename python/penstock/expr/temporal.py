"""Functions of times: the methods under `.dt` of an expression. Null stays null.

A timestamp with a time zone is read on the clocks of that zone: a name of the IANA database such as
`Europe/Berlin`, `UTC`, or an offset such as `+02:00`. One without is read as it is.
"""

from typing import TYPE_CHECKING, final

from penstock.expr._frozen import Frozen
from penstock.expr.durations import Duration, normalise_duration

if TYPE_CHECKING:
    from penstock.expr.expression import Expr

__all__ = ["TemporalFunctions"]


@final
class TemporalFunctions(Frozen):
    """Functions of a timestamp, date or time expression, as `expr.dt`. The parts are int64.

    Times before 1970 are no exception: one millisecond before it is the 31st of December 1969, 23:59:59.

    Example:
        >>> import penstock as ps
        >>> ps.col("at").dt.truncate("1h").dt.hour()
        col("at").dt.truncate("1h").dt.hour()
    """

    __slots__ = ("_expr",)

    _expr: "Expr"

    def __init__(self, expr: "Expr") -> None:
        self._fill(_expr=expr)

    def year(self) -> "Expr":
        """Returns the year of a timestamp or a date, in the Gregorian calendar.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 1)]})
            >>> pa.table(ps.stream(table.schema).select(r=ps.col("at").dt.year()).run(table))["r"].to_pylist()
            [2024]
        """
        return self._expr._call("dt.year")

    def month(self) -> "Expr":
        """Returns the month of a timestamp or a date, from 1 to 12.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 1)]})
            >>> made = ps.stream(table.schema).select(r=ps.col("at").dt.month())
            >>> pa.table(made.run(table))["r"].to_pylist()
            [5]
        """
        return self._expr._call("dt.month")

    def day(self) -> "Expr":
        """Returns the day of the month of a timestamp or a date, from 1 to 31.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 17)]})
            >>> pa.table(ps.stream(table.schema).select(r=ps.col("at").dt.day()).run(table))["r"].to_pylist()
            [17]
        """
        return self._expr._call("dt.day")

    def hour(self) -> "Expr":
        """Returns the hour of a timestamp or a time, from 0 to 23.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 1, 23, 30)]})
            >>> pa.table(ps.stream(table.schema).select(r=ps.col("at").dt.hour()).run(table))["r"].to_pylist()
            [23]
        """
        return self._expr._call("dt.hour")

    def minute(self) -> "Expr":
        """Returns the minute of a timestamp or a time, from 0 to 59.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 1, 23, 30)]})
            >>> made = ps.stream(table.schema).select(r=ps.col("at").dt.minute())
            >>> pa.table(made.run(table))["r"].to_pylist()
            [30]
        """
        return self._expr._call("dt.minute")

    def second(self) -> "Expr":
        """Returns the second of a timestamp or a time, from 0 to 59.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 1, 23, 30, 15)]})
            >>> made = ps.stream(table.schema).select(r=ps.col("at").dt.second())
            >>> pa.table(made.run(table))["r"].to_pylist()
            [15]
        """
        return self._expr._call("dt.second")

    def millisecond(self) -> "Expr":
        """Returns the milliseconds of a timestamp or a time, from 0 to 999.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 1, 0, 0, 0, 250_999)]})
            >>> made = ps.stream(table.schema).select(r=ps.col("at").dt.millisecond())
            >>> pa.table(made.run(table))["r"].to_pylist()
            [250]
        """
        return self._expr._call("dt.millisecond")

    def weekday(self) -> "Expr":
        """Returns the ISO 8601 day of the week of a timestamp or a date: Monday is 1, Sunday is 7.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 1)]})
            >>> made = ps.stream(table.schema).select(r=ps.col("at").dt.weekday())
            >>> pa.table(made.run(table))["r"].to_pylist()
            [3]
        """
        return self._expr._call("dt.weekday")

    def ordinal_day(self) -> "Expr":
        """Returns the day of the year of a timestamp or a date, from 1 to 366.

        Returns:
            An int64 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 12, 31)]})
            >>> made = ps.stream(table.schema).select(r=ps.col("at").dt.ordinal_day())
            >>> pa.table(made.run(table))["r"].to_pylist()
            [366]
        """
        return self._expr._call("dt.ordinal_day")

    def date(self) -> "Expr":
        """Returns the date of a timestamp in its time zone. The same as `cast("date32")`.

        Returns:
            A date32 expression.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(1969, 12, 31, 23, 30)]})
            >>> pa.table(ps.stream(table.schema).select(r=ps.col("at").dt.date()).run(table))["r"].to_pylist()
            [datetime.date(1969, 12, 31)]
        """
        return self._expr._call("dt.date")

    def truncate(self, every: Duration) -> "Expr":
        """Rounds a timestamp or date down to a multiple of a duration, counted from 1970-01-01.

        Steps begin where tumbling windows of the same size begin: in UTC, whatever the time zone, and weeks
        on Thursdays. A time so early that its step begins before all times there are is a `ComputeError`.

        Args:
            every: The duration: "15m", "1h", "1d", a timedelta, or a whole number of units of the column. It
                must be a whole number of them.

        Returns:
            An expression of the same type.

        Raises:
            TypeError: It is not a duration.

        Example:
            >>> from datetime import datetime
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> table = pa.table({"at": [datetime(2024, 5, 1, 12, 44)]})
            >>> made = ps.stream(table.schema).select(r=ps.col("at").dt.truncate("15m"))
            >>> pa.table(made.run(table))["r"].to_pylist()
            [datetime.datetime(2024, 5, 1, 12, 30)]
        """
        return self._expr._call("dt.truncate", normalise_duration(every, "every"))
