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

from penstock import workloads
from penstock._penstock import __version__
from penstock.aggregates import (
    Aggregate,
    count,
    count_distinct,
    first,
    last,
    max,
    mean,
    min,
    std,
    sum,
    var,
)
from penstock.batch import Batch
from penstock.combining import union
from penstock.conditional import coalesce, when
from penstock.engine import Engine
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
from penstock.expr import Expr, col, lit
from penstock.outputs import Outputs, outputs
from penstock.parts import Part
from penstock.push import PushSource
from penstock.query import Query
from penstock.replay import Replay, replay
from penstock.result import Result
from penstock.shared import SharedSource
from penstock.stream import Stream, stream
from penstock.times import ArrivalTime, ManualClock, ingestion_time, processing_time
from penstock.windowed import CoGroupedStream, WindowedStream
from penstock.windows import Window, session, sliding, tumbling

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
