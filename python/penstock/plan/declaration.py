"""The beginning of a pipeline: the declaration of a stream, its columns and its time."""

from penstock import _penstock
from penstock.exceptions import MissingTimeColumnError, PlanError
from penstock.expr.durations import Duration, normalise_duration
from penstock.expr.expression import Expr
from penstock.io.schemas import SchemaLike, read_schema
from penstock.plan.stream import Stream
from penstock.plan.times import ArrivalTime, WatermarkFunction, Watermarks

__all__ = ["stream"]


def stream(
    schema: SchemaLike,
    *,
    time: str | ArrivalTime | None = None,
    delay: Duration = 0,
    watermark: str | WatermarkFunction | None = None,
    idle_after: Duration | None = None,
    max_ahead: Duration | None = None,
    name: str | None = None,
) -> Stream:
    """Begins a pipeline: declares the columns that its data will have.

    Args:
        schema: The columns: an Arrow schema of any library (`pyarrow.Schema`, `polars.Schema`, anything with
            `__arrow_c_schema__`); a mapping of names to types, such as
            `{"event_time": "timestamp[ms]", "ad_id": "int64"}`; or a dataclass, a TypedDict, a NamedTuple or
            a pydantic model, read as `penstock.io.schemas.schema_of_class` says.
        time: The column that holds the time of each row: a timestamp, a date or whole numbers. Only windows
            need it. Or the time at which rows arrive: see `ingestion_time` and `processing_time`.
        delay: How far rows may be out of order: "2s", a timedelta, or a whole number in units of the time
            column. The watermark is the largest time so far minus this; a row whose window ends at or before
            the watermark is late, and is left out and counted.
        watermark: A column of watermarks, of the type of the time column: the watermark is the largest of its
            values so far, minus the delay, instead of the largest time. A row is judged by the watermarks of
            the rows before it. Nulls are ignored. Or a function that is called with each `Batch` as it
            arrives, and returns the watermark after it: a whole number in units of the time column, a
            datetime, or None to keep the watermark. It runs on the thread that supplies the batch, once for
            each batch and in order, when there is room for it; its exceptions are raised there. An empty
            batch may advance the watermark as well.
        idle_after: After this time without rows, such as "10s", the stream is idle: windows after a union or
            a join follow the other streams until it has rows again. Rows that then belong to closed windows
            are late.
        max_ahead: How far ahead of the watermark a time may be, such as "1h", or a whole number in units of
            the time column; more than the delay. A row beyond that, such as one of the year 2200, is
            rejected, as `on_error=` says, and does not move the watermark. It is judged by the rows before it
            that were taken; before the first of them there is no watermark, and any time is taken. Choose it
            longer than the longest pause of the stream: rows after a longer pause are rejected, too. It
            bounds a column of watermarks as well: a row with a watermark beyond it is rejected. With a
            function it bounds the times only, by the watermarks of earlier batches: the result of the
            function is not checked, and the function sees the rejected rows.
        name: The name of its data, where a pipeline reads several streams. Streams of the same name are one,
            and have to be declared alike.

    Returns:
        The pipeline, which so far returns its input.

    Raises:
        UnknownColumnError: The schema has no such time column.
        UnsupportedTypeError: A column has a type that the engine does not process.
        TypeMismatchError: The watermarks are not of the type of the times.
        DurationError: The delay is not a duration, or not one that goes with the type of the time column.
        MissingTimeColumnError: There is a delay, a watermark, `idle_after` or `max_ahead` but no time column.
        TypeError: An argument is of the wrong kind.

    Example:
        >>> import penstock as ps
        >>> events = ps.stream({"at": "timestamp[ms]", "ad_id": "int64"}, time="at", delay="2s")
        >>> events.schema.names
        ['at', 'ad_id']
    """
    if time is not None and not isinstance(time, str | ArrivalTime):
        hint = ""
        if isinstance(time, Expr):
            hint = (
                "; a time that has to be computed comes from a query of its own: begin another one with "
                'stream(query.schema, time="...") and source=query'
            )
        raise TypeError(f"time must be the name of a column, not {type(time).__name__}{hint}")
    size = normalise_duration(delay, "delay")
    if watermark is not None and not isinstance(watermark, str) and not callable(watermark):
        raise TypeError(f"watermark must be a column name or a function, not {type(watermark).__name__}")
    columns = read_schema(schema)
    marks: str | tuple[str, object] | None = watermark if isinstance(watermark, str) else None
    if callable(watermark):
        if size != 0:
            raise PlanError("a function says by itself how far the watermark stays behind: leave delay= out")
        kinds = dict(zip(columns.names, columns.types, strict=True))
        named = getattr(watermark, "__qualname__", None) or type(watermark).__name__
        marks = (named, Watermarks(watermark, kinds.get(str(time), "int64")))
    if time is None and size != 0:
        raise MissingTimeColumnError(
            f'delay={delay!r} says how late rows may come, but no column says what is late: add time="..."'
        )
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string, not {type(name).__name__}")
    if name == "":
        raise PlanError("name is empty; leave it out if there is one stream only")
    plan = _penstock.Plan.stream(
        columns,
        name=name,
        time=time.column if isinstance(time, ArrivalTime) else time,
        delay=size,
        arrival=time.kind if isinstance(time, ArrivalTime) else None,
        watermark=marks,
        idle_after=None if idle_after is None else normalise_duration(idle_after, "idle_after"),
        max_ahead=None if max_ahead is None else normalise_duration(max_ahead, "max_ahead"),
    )
    return Stream(plan)
