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

An engine runs many of them at a time, over data that comes as it likes:

    >>> with ps.Engine(workers=2) as engine:
    ...     query = engine.submit(views, source=events, sink="collect")
    ...     len(query.result())
    100

`sum`, `min` and `max` are aggregates here: import the package under a short name rather than everything in
it.
"""

from typing import TYPE_CHECKING

from penstock import workloads
from penstock._penstock import __version__
from penstock.engine import Engine, Query, SharedSource
from penstock.exceptions import (
    ComputeError,
    DataError,
    DurationError,
    EndedError,
    EngineError,
    EngineStoppedError,
    InputError,
    LaggedError,
    LateRowsWarning,
    MemoryLimitExceeded,
    MissingTimeColumnError,
    NameTakenError,
    NullTimeError,
    PenstockError,
    PlanError,
    QueryEndedError,
    QueryFailedWarning,
    QueryStoppedError,
    RowsDiscardedWarning,
    SchemaMismatchError,
    SizeError,
    SourceEndedError,
    StreamConsumedError,
    TimeAheadError,
    TypeMismatchError,
    UnknownColumnError,
    UnsupportedTypeError,
)
from penstock.expr import (
    Aggregate,
    Expr,
    coalesce,
    col,
    count,
    count_distinct,
    first,
    last,
    lit,
    max,
    mean,
    min,
    std,
    sum,
    var,
    when,
)
from penstock.io import Batch, PushSource, Replay, Result, replay
from penstock.plan import (
    ArrivalTime,
    CoGroupedStream,
    ManualClock,
    Outputs,
    Part,
    Stream,
    Window,
    WindowedStream,
    ingestion_time,
    outputs,
    processing_time,
    session,
    sliding,
    stream,
    tumbling,
    union,
)

__all__ = [
    "Aggregate",
    "ArrivalTime",
    "Batch",
    "CoGroupedStream",
    "ComputeError",
    "DataError",
    "DurationError",
    "EndedError",
    "Engine",
    "EngineError",
    "EngineStoppedError",
    "Expr",
    "InputError",
    "LaggedError",
    "LateRowsWarning",
    "ManualClock",
    "MemoryLimitExceeded",
    "MissingTimeColumnError",
    "NameTakenError",
    "NullTimeError",
    "Outputs",
    "Part",
    "PenstockError",
    "PlanError",
    "PushSource",
    "Query",
    "QueryEndedError",
    "QueryFailedWarning",
    "QueryStoppedError",
    "Replay",
    "Result",
    "RowsDiscardedWarning",
    "SchemaMismatchError",
    "SharedSource",
    "SizeError",
    "SourceEndedError",
    "Stream",
    "StreamConsumedError",
    "TimeAheadError",
    "TypeMismatchError",
    "UnknownColumnError",
    "UnsupportedTypeError",
    "Window",
    "WindowedStream",
    "__version__",
    "coalesce",
    "col",
    "count",
    "count_distinct",
    "first",
    "ingestion_time",
    "last",
    "lit",
    "max",
    "mean",
    "min",
    "outputs",
    "processing_time",
    "replay",
    "session",
    "sliding",
    "std",
    "stream",
    "sum",
    "tumbling",
    "union",
    "var",
    "when",
    "workloads",
]

if not TYPE_CHECKING:  # a type checker is to know what is not there

    def __getattr__(name: str) -> object:
        """Imports a module that forwards to a package when it is first used, as in `penstock.options`."""
        if name not in ("functions", "options", "rejecting", "rows", "schemas"):
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"penstock.{name}")


del TYPE_CHECKING
