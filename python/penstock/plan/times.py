"""Event time that is not a column of the data: times of arrival, watermark functions, a clock for tests."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, final

from penstock import _penstock
from penstock.expr._frozen import Frozen
from penstock.io.batch import Batch

__all__ = ["ArrivalTime", "ManualClock", "WatermarkFunction", "ingestion_time", "processing_time"]

WatermarkFunction: TypeAlias = Callable[[Batch], "int | datetime | None"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ArrivalTime:
    """The time of arrival as event time. Made by `ingestion_time` or `processing_time`, taken by `stream`.

    Attributes:
        kind: "ingestion" or "processing".
        column: The column that is added for it, a timestamp in UTC.

    Example:
        >>> import penstock as ps
        >>> ps.ingestion_time("arrived").column
        'arrived'
    """

    kind: str
    column: str

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise TypeError(f"the time of arrival takes a column name, not {type(self.column).__name__}")


def ingestion_time(column: str = "ingestion_time") -> ArrivalTime:
    """Uses the time at which rows were handed to the engine as event time.

    Windows over it close by the clock, whether more rows come or not. If the clock is set back, event time
    does not advance until the clock has caught up.

    Args:
        column: The name of the column that is added for it: a timestamp with microseconds, in UTC.

    Returns:
        What `stream` takes as `time=`.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> clicks = ps.stream({"page": "string"}, time=ps.ingestion_time("at"))
        >>> clicks.schema.types
        ['string', 'timestamp[us, tz=UTC]']
        >>> counts = clicks.window(ps.tumbling("1d")).agg(clicks=ps.count())
        >>> sum(row["clicks"] for row in counts.run(pa.table({"page": ["a", "b"]})).to_pylist())
        2
    """
    return ArrivalTime("ingestion", column)


def processing_time(column: str = "processing_time") -> ArrivalTime:
    """Uses the time at which rows were first processed as event time: see `ingestion_time`.

    Args:
        column: The name of the column that is added for it.

    Returns:
        What `stream` takes as `time=`.

    Example:
        >>> import penstock as ps
        >>> ps.stream({"page": "string"}, time=ps.processing_time()).time
        'processing_time'
    """
    return ArrivalTime("processing", column)


@final
class ManualClock(Frozen):
    """A clock that advances only when it is told to: for tests of behaviour over time.

    An engine uses it for idle sources, windows that close by the clock, and times of arrival. Everything
    else, such as the rate of a replay, uses the time of the system.

    Args:
        start: The initial time. A datetime without a time zone is in UTC.

    Example:
        >>> from datetime import datetime
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> from datetime import timedelta
        >>> clock, feed = ps.ManualClock(datetime(2026, 1, 1)), ps.PushSource()
        >>> clicks = ps.stream({"page": "string"}, time=ps.ingestion_time())
        >>> counts = clicks.window(ps.tumbling("10s")).agg(clicks=ps.count())
        >>> with ps.Engine(workers=1, clock=clock) as engine:
        ...     query = engine.submit(counts, source=feed)
        ...     taken = feed.push(pa.table({"page": ["a", "b"]}))
        ...     while query.metrics()["rows_in"] < 2:
        ...         pass
        ...     clock.advance(timedelta(seconds=10))
        ...     next(query.results()).to_pylist()[0]["clicks"]
        2
    """

    __slots__ = ("_native",)

    _native: _penstock.ManualClock

    def __init__(self, start: datetime = _EPOCH) -> None:
        self._fill(_native=_penstock.ManualClock(_microseconds(start)))

    def advance(self, by: timedelta) -> None:
        """Advances time.

        Args:
            by: How much.

        Raises:
            ValueError: Time goes forwards only.

        Example:
            >>> from datetime import timedelta
            >>> import penstock as ps
            >>> ps.ManualClock().advance(timedelta(seconds=5))
        """
        if by < timedelta(0):
            raise ValueError(f"time goes forwards only, not by {by}; set() moves the clock on the wall")
        self._native.advance(by // _MICROSECOND)

    def set(self, now: datetime) -> None:
        """Sets the wall clock, forwards or back, without advancing time.

        Args:
            now: What it shows.

        Example:
            >>> from datetime import datetime
            >>> import penstock as ps
            >>> ps.ManualClock().set(datetime(2026, 1, 1))
        """
        self._native.set_wall(_microseconds(now))

    def __repr__(self) -> str:
        return "penstock.ManualClock()"


def _microseconds(moment: datetime) -> int:
    if not isinstance(moment, datetime):
        raise TypeError(f"a clock shows a datetime, not {type(moment).__name__}")
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


_TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Watermarks:
    """A watermark function, as the engine calls it.

    Args:
        function: The function.
        kind: The type of the time column.
    """

    __slots__ = ("_function", "_kind")

    def __init__(self, function: WatermarkFunction, kind: str) -> None:
        self._function = function
        self._kind = kind

    def __call__(self, batch: _penstock.Batch) -> int | None:
        """Calls the function; a datetime becomes a number of ticks."""
        mark = self._function(Batch(batch))
        if mark is None:
            return None
        if isinstance(mark, datetime) and self._kind.startswith("timestamp["):
            unit = self._kind.removeprefix("timestamp[").split(",")[0].rstrip("]")
            return _microseconds(mark) * _TICKS_PER_SECOND[unit] // 10**6
        if not isinstance(mark, bool) and hasattr(mark, "__index__"):
            return operator.index(mark)
        raise TypeError(
            f"watermark= gives a whole number in units of the time column, a datetime if that is a "
            f"timestamp, or None, not {type(mark).__name__} {mark!r}"
        )
