"""Engines that nobody holds are gone with their threads, whoever of their own refers to them."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pyarrow as pa

import penstock as ps
from penstock import col
from soak import leftovers
from soak.leftovers import Held
from soak.nesting import STREAM, numbers
from soak.watch import Watch

PLACES = (
    "sink", "sink", "map", "map", "letters", "letters", "source", "watermark", "endless", "async",
    "shared async", "letters of a source", "query", "shared query", "mapped",
)  # fmt: skip
REFERS = ("engine", "engine", "query", "plan", "none")


def dropped_engine(rng: random.Random, watch: Watch) -> None:
    """An engine that nobody holds is gone, with its threads, even if its functions refer to it."""
    held: list[weakref.ref[Held]] = []
    gc.collect()
    before = leftovers.threads()
    place, refers = rng.choice(PLACES), rng.choice(REFERS)
    if place in ("async", "shared async"):
        refers = "none"  # its event loop is a thread at work, which the collector does not look into
    drop(rng, held, place, refers)
    try:
        leftovers.check_threads(before)
        if place == "mapped":
            # One that somebody still held when its reader was done is remembered until the next one comes.
            STREAM.run(iter([numbers(1)]))
        leftovers.check_gone(held, "functions of engines that were dropped")
    except leftovers.Finding as finding:
        raise leftovers.Finding(f"{place} that refers to {refers}: {finding}") from None


class Owner:
    """What a user has: an object that holds an engine and whose methods the engine calls."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.mine = Held()
        self.reach: list[Any] = []
        self.called = threading.Event()

    def function(self, batch: ps.Batch) -> Any:
        """A sink, a map, a watermark function or one for dead letters."""
        self.called.set()
        return None if self.place == "watermark" else pa.table(batch)

    def source(self) -> Iterator[pa.Table]:
        """Ends, or does not."""
        count = 0
        while self.place == "endless" or count < 5:
            count += 1
            self.called.set()
            yield numbers(3)

    async def awaited(self) -> AsyncIterator[pa.Table]:
        """Does not end."""
        while True:
            self.called.set()
            yield numbers(3)
            await asyncio.sleep(0.001)

    def table(self, rows: int) -> pa.Table:
        """For `map`."""
        self.called.set()
        return numbers(rows)


def drop(rng: random.Random, held: list[weakref.ref[Held]], place: str, refers: str) -> None:
    engine = ps.Engine(workers=rng.choice([1, 2]), mode=rng.choice(["state", "state", "threads"]))
    owner = Owner(place)
    held.append(weakref.ref(owner.mine))
    plan = STREAM.map_batches(owner.function) if place == "map" else STREAM
    plan = STREAM.filter(60 // col("v") >= 0) if place == "letters" else plan
    if place == "watermark":
        plan = ps.stream({"t": "int64", "v": "int64"}, time="t", watermark=owner.function)
    feed, function = ps.PushSource(), owner.function
    feed.push(numbers(10))
    data: Any = feed
    if place in ("source", "endless"):
        data = owner.source()
    elif place == "async":
        data = owner.awaited()
    elif place == "shared async":
        data = engine.source(STREAM, owner.awaited())
    elif place == "mapped":
        data = map(owner.table, [3] * 1_000_000)
    elif place == "letters of a source":
        bad = pa.table({"t": pa.array([None], pa.int64()), "v": pa.array([1], pa.int64())})
        feed.push(bad)
        data = engine.source(STREAM, feed, on_error=function)
    elif place in ("query", "shared query"):
        first: Any = engine.submit(STREAM, source=ps.replay(numbers(100), rounds=None, rate=10_000.0))
        data = engine.source(STREAM, first) if place == "shared query" else first
    elif rng.random() < 0.4:
        data = ps.replay(numbers(1_000), rounds=None, rate=10_000.0)
    query = engine.submit(
        plan, source=data, sink=function if place == "sink" else "discard",
        on_error=function if place == "letters" else "fail",
    )  # fmt: skip
    owner.reach.append({"engine": engine, "query": query, "plan": (engine, plan), "none": None}[refers])
    if rng.random() < 0.7:
        owner.reach.append(feed)  # which keeps the input open: the query does not end by itself
    if rng.random() < 0.5:  # gone only once the collector has looked
        ring: list[Any] = [engine, query, data if isinstance(data, ps.SharedSource) else None]
        ring.append(ring)
    if place not in ("query", "shared query"):
        owner.called.wait(rng.choice([0.0, 1.0]))
