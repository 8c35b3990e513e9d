"""Penstock: a stream processing engine for one machine. Arrow in, Arrow out.

A pipeline is declared with a schema, built step by step, and run over data:

    >>> import penstock as ps
    >>> from penstock import col
    >>> events = ps.workloads.ysb.generate(30_000)
    >>> views = (
    ...     ps.stream(events.schema, time="event_time", delay="2s")
    ...     .filter(col("event_type") == 0)
    ...     .lookup(ps.workloads.ysb.campaigns(), on="ad_id")
    ...     .window(ps.tumbling("10s"), by="campaign_id")
    ...     .agg(views=ps.count())
    ... )
    >>> result = views.run(events)
    >>> result.rows_in, result.rows_late, len(result)
    (30000, 0, 100)

`sum`, `min` and `max` are aggregates here: import the package under a short name rather than everything in
it.
"""

from penstock import workloads
from penstock._penstock import __version__
from penstock.aggregates import Aggregate, count, max, mean, min, sum
from penstock.exceptions import (
    ComputeError,
    DataError,
    DurationError,
    EngineError,
    InputError,
    LateRowsWarning,
    MemoryLimitExceeded,
    MissingTimeColumnError,
    NullTimeError,
    PenstockError,
    PlanError,
    SchemaMismatchError,
    SizeError,
    StreamConsumedError,
    TypeMismatchError,
    UnknownColumnError,
    UnsupportedTypeError,
)
from penstock.expr import Expr, col, lit
from penstock.result import Result
from penstock.stream import Stream, WindowedStream, stream
from penstock.windows import Window, tumbling

__all__ = [
    "Aggregate",
    "ComputeError",
    "DataError",
    "DurationError",
    "EngineError",
    "Expr",
    "InputError",
    "LateRowsWarning",
    "MemoryLimitExceeded",
    "MissingTimeColumnError",
    "NullTimeError",
    "PenstockError",
    "PlanError",
    "Result",
    "SchemaMismatchError",
    "SizeError",
    "Stream",
    "StreamConsumedError",
    "TypeMismatchError",
    "UnknownColumnError",
    "UnsupportedTypeError",
    "Window",
    "WindowedStream",
    "__version__",
    "col",
    "count",
    "lit",
    "max",
    "mean",
    "min",
    "stream",
    "sum",
    "tumbling",
    "workloads",
]
