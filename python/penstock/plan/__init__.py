"""Pipelines: streams and the steps over them, and how a pipeline is run over data to its end.

A `Stream` inherits its steps from `columns` (which change rows one by one) and `combining` (which bring rows
together). Long-running queries belong to `penstock.engine`.
"""

from penstock.plan.combining import union
from penstock.plan.declaration import stream
from penstock.plan.outputs import Outputs, outputs
from penstock.plan.parts import Part
from penstock.plan.stream import Stream
from penstock.plan.times import ArrivalTime, ManualClock, WatermarkFunction, ingestion_time, processing_time
from penstock.plan.windowed import CoGroupedStream, WindowedStream
from penstock.plan.windows import Window, session, sliding, tumbling

__all__ = [
    "ArrivalTime",
    "CoGroupedStream",
    "ManualClock",
    "Outputs",
    "Part",
    "Stream",
    "WatermarkFunction",
    "Window",
    "WindowedStream",
    "ingestion_time",
    "outputs",
    "processing_time",
    "session",
    "sliding",
    "stream",
    "tumbling",
    "union",
]
