"""Small streams, and what to do with them, for tests of engines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import penstock as ps

HANG_SECONDS = 60.0
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
STREAM = ps.stream(SCHEMA, time="t")
COUNTS = STREAM.window(ps.tumbling(10), by="k").agg(n=ps.count())


def batch(*times: int, key: int = 1) -> pa.RecordBatch:
    return pa.record_batch([pa.array(times, pa.int64()), pa.array([key] * len(times), pa.int64())], SCHEMA)


def rows(batches: Any) -> list[dict[str, Any]]:
    return [row for one in batches for row in one.to_pylist()]


def push_for_ever(source: ps.PushSource) -> None:
    while source.push(batch(1)):
        pass


def soon(condition: Callable[[], bool]) -> bool:
    """Whether it comes true before anybody would call it a hang."""
    limit = time.monotonic() + HANG_SECONDS
    while not (came := condition()) and time.monotonic() < limit:
        time.sleep(0.005)
    return came


def comes_to(query: ps.Query, counter: str, least: int) -> bool:
    """Whether a counter of the query comes to that before anybody would call it a hang."""
    return soon(lambda: query.metrics()[counter] >= least)
