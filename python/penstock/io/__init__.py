"""Rows on their way in and out: Arrow data, Python objects and iterables as sources; batches and results.

What a pipeline accepts as data is opened in `sources`; what an engine gives back is a `Batch` or a `Result`.
"""

from penstock.io.batch import Batch
from penstock.io.protocols import ArrowArray, ArrowData, ArrowSchema, ArrowStream, Record
from penstock.io.push import PushSource
from penstock.io.rejecting import OnError
from penstock.io.replay import Replay, replay
from penstock.io.result import Result
from penstock.io.rows import Rows
from penstock.io.schemas import SchemaLike, schema_of_class

__all__ = [
    "ArrowArray",
    "ArrowData",
    "ArrowSchema",
    "ArrowStream",
    "Batch",
    "OnError",
    "PushSource",
    "Record",
    "Replay",
    "Result",
    "Rows",
    "SchemaLike",
    "replay",
    "schema_of_class",
]
