"""The errors and warnings of Penstock.

Everything the engine raises on its own account is a `PenstockError`. There are six families, by who can put
it right:

* `PlanError`: the pipeline, or an option to run it with, is wrong. Raised before any row is read.
* `DataError`: the input does not fit the pipeline. Raised while it runs.
* `ComputeError`: a row on which an expression has no answer. Raised while it runs.
* `MemoryLimitExceeded`: the pipeline does not fit its budget. Raised as it starts, or while it runs.
* `EndedError`: what was to be used has ended: an engine, a query, or a source.
* `EngineError`: the engine cannot be used like this, or Penstock is wrong; the message says which.

An argument of the wrong Python type is a plain `TypeError`. When the operating system refuses memory or a
thread, that is a plain `MemoryError` or `OSError`. An exception raised by your own iterator or sink comes
back as itself. All classes can be pickled with their fields, so they survive the way back from another
process.
"""

from collections.abc import Sequence

__all__ = [
    "ComputeError",
    "DataError",
    "DurationError",
    "EndedError",
    "EngineError",
    "EngineStoppedError",
    "InputError",
    "LaggedError",
    "LateRowsWarning",
    "MemoryLimitExceeded",
    "MissingTimeColumnError",
    "NameTakenError",
    "NullTimeError",
    "PenstockError",
    "PlanError",
    "QueryEndedError",
    "QueryFailedWarning",
    "QueryStoppedError",
    "RowsDiscardedWarning",
    "SchemaMismatchError",
    "SizeError",
    "SourceEndedError",
    "StreamConsumedError",
    "TimeAheadError",
    "TypeMismatchError",
    "UnknownColumnError",
    "UnsupportedTypeError",
]


class PenstockError(Exception):
    """Base of all errors of the engine. Catch it to catch them all.

    Example:
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"price": "float64"}).select("prize")
        ... except ps.PenstockError as error:
        ...     print(type(error).__name__)
        UnknownColumnError
    """


class PlanError(PenstockError, ValueError):
    """A pipeline that cannot be built, or run that way. Change the call that raised it; no row is read yet.

    Example:
        >>> import penstock as ps
        >>> prices = ps.stream({"shop": "string", "price": "float64"})
        >>> try:
        ...     prices.select("shop", shop=ps.col("price"))
        ... except ps.PlanError as error:
        ...     print("shop" in str(error))
        True
    """


class UnknownColumnError(PlanError):
    """A column that the stream does not have at this point. Check the spelling against `available`.

    Attributes:
        column: The name that was asked for.
        suggestion: The closest name there is, or None if none is close.
        available: All names there are.

    Example:
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"shop": "string", "price": "float64"}).filter(ps.col("prise") > 3)
        ... except ps.UnknownColumnError as error:
        ...     print(error.column, error.suggestion, error.available)
        prise price ['shop', 'price']
    """

    column: str
    suggestion: str | None
    available: list[str]

    def __init__(
        self, message: str, column: str, suggestion: str | None = None, available: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.column = column
        self.suggestion = suggestion
        self.available = list(available)

    def __reduce__(self) -> tuple[object, ...]:
        fields = (str(self), self.column, self.suggestion, self.available)
        return type(self), fields, self.__dict__


class TypeMismatchError(PlanError):
    """An expression whose types do not go together. Compare or combine columns of kindred types.

    Example:
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"shop": "string", "price": "float64"}).filter(ps.col("shop") > ps.col("price"))
        ... except ps.TypeMismatchError as error:
        ...     print("string" in str(error), "float64" in str(error))
        True True
    """


class MissingTimeColumnError(PlanError):
    """A window over a stream without a time column. Name the column: `ps.stream(schema, time="...")`.

    It also comes up when the time column was left out of a `select`, and after `agg`, whose rows have none.

    Example:
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"price": "float64"}).window(ps.tumbling("10s"))
        ... except ps.MissingTimeColumnError as error:
        ...     print("no time column")
        no time column
    """


class UnsupportedTypeError(PlanError):
    """A column type that the engine does not process. Leave the column out of the schema, or cast it first.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> try:
        ...     ps.stream(pa.schema({"tags": pa.list_(pa.string())}))
        ... except ps.UnsupportedTypeError as error:
        ...     print("tags" in str(error))
        True
    """


class DurationError(PlanError):
    """A duration that cannot be used. Write "10s", a timedelta, or a whole number of units of time.

    Example:
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"at": "timestamp[ms]"}, time="at", delay="two seconds")
        ... except ps.DurationError as error:
        ...     print("two seconds" in str(error))
        True
    """


class SizeError(PlanError):
    """An amount of memory that cannot be used. Write "256MiB", "1.5GB", or a whole number of bytes.

    Example:
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"price": "float64"}).run([], budget="64M")
        ... except ps.SizeError as error:
        ...     print('did you mean "MB"?' in str(error))
        True
    """


class NameTakenError(PlanError):
    """A name that another query or source of the engine has. Choose another one, or none at all.

    A name is free again when the query has ended.

    Attributes:
        name: The name.

    Example:
        >>> import penstock as ps
        >>> prices = ps.stream({"price": "float64"})
        >>> with ps.Engine(workers=1) as engine:
        ...     feed = ps.PushSource()
        ...     query = engine.submit(prices, source=feed, name="prices")
        ...     try:
        ...         engine.submit(prices, source=[], name="prices")
        ...     except ps.NameTakenError as error:
        ...         print(error.name)
        prices
    """

    name: str

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.name), self.__dict__


class DataError(PenstockError, ValueError):
    """Input that does not fit the pipeline. Change the data, or the schema the pipeline was declared with.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"price": "float64"}).run(pa.table({"cost": [1.0]}))
        ... except ps.DataError as error:
        ...     print(type(error).__name__)
        SchemaMismatchError
    """


class SchemaMismatchError(DataError):
    """A batch that does not fit the declared schema: a missing column, another type, an unexpected null.

    Cast the data, or declare the stream with the schema the data really has.

    Attributes:
        column: The column in question.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"price": "float64"}).run(pa.table({"price": ["cheap"]}))
        ... except ps.SchemaMismatchError as error:
        ...     print(error.column)
        price
    """

    column: str

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.column), self.__dict__


class NullTimeError(DataError):
    """A row without a time: no window can take it. Drop or fill such rows before they enter the pipeline.

    Attributes:
        row: The number of the row in the whole input, counted from 0.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"at": "int64"}, time="at").run(pa.table({"at": [5, None]}))
        ... except ps.NullTimeError as error:
        ...     print(error.row)
        1
    """

    row: int

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.row), self.__dict__


class TimeAheadError(DataError):
    """A row whose time is further ahead of the watermark than `max_ahead=` of its stream allows.

    Attributes:
        row: The number of the row in the whole input, counted from 0.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"at": "int64"}, time="at", max_ahead=100).run(pa.table({"at": [5, 1000]}))
        ... except ps.TimeAheadError as error:
        ...     print(error.row)
        1
    """

    row: int

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.row), self.__dict__


class StreamConsumedError(DataError):
    """A reader that was read before, and can be read only once. Open it again, or keep a table instead.

    Example:
        >>> import penstock as ps
        >>> batches = (batch for batch in [])
        >>> len(ps.stream({"price": "float64"}).run(batches))
        0
        >>> try:
        ...     ps.stream({"price": "float64"}).run(batches)
        ... except ps.StreamConsumedError:
        ...     print("read before")
        read before
    """


class InputError(DataError):
    """The Arrow stream that was handed in failed while it was read. The message is the stream's own.

    Example:
        >>> import penstock as ps
        >>> issubclass(ps.InputError, ps.DataError)
        True
    """


class ComputeError(PenstockError, ArithmeticError):
    """A row that an operator has no answer for: overflow, division by zero, a cast that does not fit.

    Filter such rows out first, compute in float64, or leave them out with `on_error=`: see `Stream.run`.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> ratio = ps.stream({"a": "int64", "b": "int64"}).select(ratio=ps.col("a") // ps.col("b"))
        >>> try:
        ...     ratio.run(pa.table({"a": [6, 7], "b": [3, 0]}))
        ... except ps.ComputeError:
        ...     print("no answer for some row")
        no answer for some row
    """


class MemoryLimitExceeded(PenstockError, MemoryError):  # noqa: N818 - it names a limit, as the budget's words do
    """A pipeline that needs more memory than its budget. Raise `budget=`, or make the pipeline hold less.

    It is raised as a run starts, when there is no room for the first rows and the lookup tables, and during a
    run, when the windows that are open at a time hold too many keys. The rows on their way from operator to
    operator never raise it, whatever their number, nor do the rows of the result.

    Attributes:
        needed_bytes: How many bytes were asked for.
        used_bytes: How many were in use when they were asked for.
        budget_bytes: How many there may be.
        operator: The operator whose state has grown, or None as a run starts.
        state_bytes: The bytes of that state, or None as a run starts.

    Example:
        >>> import penstock as ps
        >>> try:
        ...     ps.stream({"price": "float64"}).run([], budget="1KiB")
        ... except ps.MemoryLimitExceeded as error:
        ...     print(error.budget_bytes, error.operator)
        1024 None
    """

    needed_bytes: int
    used_bytes: int
    budget_bytes: int
    operator: str | None
    state_bytes: int | None

    def __init__(
        self,
        message: str,
        needed_bytes: int,
        used_bytes: int,
        budget_bytes: int,
        operator: str | None = None,
        state_bytes: int | None = None,
    ) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes
        self.used_bytes = used_bytes
        self.budget_bytes = budget_bytes
        self.operator = operator
        self.state_bytes = state_bytes

    def __reduce__(self) -> tuple[object, ...]:
        fields = (str(self), self.needed_bytes, self.used_bytes, self.budget_bytes)
        return type(self), (*fields, self.operator, self.state_bytes), self.__dict__


class EndedError(PenstockError, RuntimeError):
    """What was to be used has ended. Start another one.

    Example:
        >>> import penstock as ps
        >>> issubclass(ps.QueryEndedError, ps.EndedError)
        True
    """


class EngineStoppedError(EndedError):
    """An engine that was stopped takes no more queries.

    Example:
        >>> import penstock as ps
        >>> with ps.Engine(workers=1) as engine:
        ...     pass
        >>> try:
        ...     engine.submit(ps.stream({"price": "float64"}), source=[])
        ... except ps.EngineStoppedError as error:
        ...     print(error)
        the engine has been stopped; start another one
    """


class QueryEndedError(EndedError):
    """Rows were pushed, but the query has ended and takes no more. If it failed, `__cause__` says why.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> source = ps.PushSource()
        >>> with ps.Engine(workers=1) as engine:
        ...     query = engine.submit(ps.stream({"price": "int64"}), source=source, name="prices")
        >>> try:
        ...     source.push(pa.table({"price": [1]}))
        ... except ps.QueryEndedError as error:
        ...     print(error)
        the query "prices" has ended: it takes no more rows
    """


class QueryStoppedError(EndedError):
    """A result was asked for, but the query was stopped before it had one.

    Example:
        >>> import penstock as ps
        >>> with ps.Engine(workers=1) as engine:
        ...     feed = ps.PushSource()
        ...     query = engine.submit(ps.stream({"price": "int64"}), source=feed, sink="collect")
        >>> try:
        ...     query.result()
        ... except ps.QueryStoppedError as error:
        ...     print(error)
        the query was stopped
    """


class SourceEndedError(EndedError):
    """A source that has ended: it was closed, or the shared source of a query has failed or was stopped.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> source = ps.PushSource()
        >>> source.close()
        >>> try:
        ...     source.push(pa.table({"price": [1]}))
        ... except ps.SourceEndedError as error:
        ...     print(error)
        this source was closed; it takes no more rows
    """


class LaggedError(PenstockError, RuntimeError):
    """A query that held its shared source up, and was submitted with `on_lag="fail"`.

    Attributes:
        rows: How many rows waited for it.

    Example:
        >>> import penstock as ps
        >>> issubclass(ps.LaggedError, ps.PenstockError)
        True
    """

    rows: int

    def __init__(self, message: str, rows: int) -> None:
        super().__init__(message)
        self.rows = rows

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.rows), self.__dict__


class EngineError(PenstockError, RuntimeError):
    """The engine cannot be used like this (for one: in a forked child), or it has a bug, and says so.

    Please report a bug, with the message and the output of `Stream.explain()`.

    Example:
        >>> import penstock as ps
        >>> issubclass(ps.EngineError, RuntimeError)
        True
    """


class QueryFailedWarning(UserWarning):
    """A query or a shared source had failed, and its error had not been read when its engine was stopped.

    Call `Query.wait`, read its results or look at `Query.error` to know; `SharedSource.error` of a shared
    source that no query reads. The failure of one that queries read is the cause of their own error.

    Example:
        >>> import warnings
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     with ps.Engine(workers=1) as engine:
        ...         data = pa.table({"cost": [1]})
        ...         query = engine.submit(ps.stream({"price": "int64"}), source=data, name="prices")
        ...         while query.status == "running":
        ...             pass
        >>> str(caught[0].message).startswith('the query "prices" failed')
        True
    """


class RowsDiscardedWarning(UserWarning):
    """The block of an engine was left while queries ran, and rows that waited were discarded.

    Wait for the queries inside of the block, or let the engine do that: `Engine(on_exit="drain")`. Rows that
    waited to be processed count, results that a function had not taken or that were collected, and rows in
    open windows: each once, or for each window of a join or a top-k that it is in. For sessions, the number
    of open sessions is reported instead of the number of their rows. Unread results are not lost.

    The number is exact if the engine is idle, otherwise it is slightly out of date.

    Example:
        >>> import warnings
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     with ps.Engine(workers=1) as engine:
        ...         feed = ps.PushSource()
        ...         source = engine.source({"price": "int64"}, feed, hold=True)
        ...         query = engine.submit(source.stream, source=source, name="prices", sink="discard")
        ...         taken = feed.push(pa.table({"price": [1, 2]}))
        >>> print(str(caught[0].message)[:45])
        leaving the engine has discarded 2 rows of "s
    """


class LateRowsWarning(UserWarning):
    """Rows came after their window had closed and were left out. Raise `delay=` if they should count.

    `Stream.run` issues it at the line that called it. A query issues it once: at the call that waits for it,
    takes its result, reads its last batch or stops it; `Engine.stop` and the end of its block do so for the
    other queries. How many rows there were is in `Result.rows_late` and in `Query.metrics`.

    Example:
        >>> import warnings
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> counts = ps.stream({"at": "int64"}, time="at").window(ps.tumbling(10)).agg(ps.count())
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", ps.LateRowsWarning)
        ...     result = counts.run(pa.table({"at": [5, 25, 7]}))
        >>> result.rows_late
        1
    """
