"""A drain cuts the input off: it ends while a producer keeps pushing, and takes no more than was there."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from soak.leftovers import Finding
from soak.starving import PLANS, STREAM
from soak.watch import Watch


class Producer:
    """Pushes the same batch as fast as it is taken."""

    def __init__(self, source: ps.PushSource, rows: int) -> None:
        numbers = np.arange(rows)
        self.rows, self.accepted, self.stopped = rows, 0, False
        self.batch = pa.record_batch({"t": numbers, "k": numbers % 13, "v": numbers})
        self.source = source
        self.thread = threading.Thread(target=self.work, name="producer", daemon=True)
        self.thread.start()

    def work(self) -> None:
        try:
            while not self.stopped:
                if self.source.push(self.batch, timeout=0.05):
                    self.accepted += 1
        except ps.PenstockError:
            pass  # the query has ended, or the source was closed

    def stop(self) -> None:
        """Ends it."""
        self.stopped = True
        self.thread.join()


def end_while_fed(
    producer: Producer, capacity: int, end: threading.Thread, what: str, query: ps.Query
) -> None:
    """Starts the end, and sees it come before much more was taken."""
    before = producer.accepted
    end.start()
    # The thread may come late to the call; one that does not cut the input off goes on for ever.
    most = before + 4 * capacity + 20_000
    while end.is_alive() or query.status == "running":
        if producer.accepted > most:
            raise Finding(
                f"{what}: {producer.accepted - before:,} batches were taken since, with room for {capacity}"
            )
        end.join(0.01)
        time.sleep(0.001)
    rows_in = query.metrics()["rows_in"]
    # One more may have been taken, and not have been counted yet.
    if rows_in > (producer.accepted + 1) * producer.rows:
        raise Finding(f"{what}: {rows_in} rows came in, and {producer.accepted * producer.rows} were pushed")


def draw_plan(rng: random.Random) -> ps.Stream:
    """One that keeps up with the producer, or one that does not."""
    if rng.random() < 0.5:
        return PLANS[rng.choice(list(PLANS))]

    def slow(batch: ps.Batch) -> pa.Table:
        time.sleep(0.001)
        return pa.table(batch)

    return STREAM.map_batches(slow)


def begin(rng: random.Random) -> tuple[ps.Engine, ps.PushSource, Producer, int]:
    capacity = rng.choice([1, 4, 64])
    engine = ps.Engine(workers=rng.choice([1, 2]), policy=rng.choice(["adaptive", "fcfs", "rr"]))
    source = ps.PushSource(capacity)
    return engine, source, Producer(source, rng.choice([1, 10, 1_000])), capacity


def drained_while_fed(rng: random.Random, watch: Watch) -> None:
    """`Query.stop(drain=True)`."""
    engine, source, producer, capacity = begin(rng)
    with engine:
        query = engine.submit(draw_plan(rng), source=source, sink="discard")
        watch.add(engine, query)
        try:
            while producer.accepted < 3:
                time.sleep(0.001)
            time.sleep(rng.random() * 0.02)
            drain = threading.Thread(target=query.stop, kwargs={"drain": True}, daemon=True)
            end_while_fed(producer, capacity, drain, "a query was drained", query)
        finally:
            producer.stop()


def closed_while_fed(rng: random.Random, watch: Watch) -> None:
    """`SharedSource.close()`, and a query that leaves a shared source which goes on."""
    engine, feed, producer, capacity = begin(rng)
    with engine:
        source = engine.source(STREAM, feed)
        queries = [
            engine.submit(draw_plan(rng), source=source, sink="discard") for _ in range(rng.choice([1, 2]))
        ]
        watch.add(engine, *queries)
        try:
            while producer.accepted < 3:
                time.sleep(0.001)
            time.sleep(rng.random() * 0.02)
            if len(queries) > 1 and rng.random() < 0.5:
                queries.pop().stop(drain=rng.random() < 0.5)
            close = threading.Thread(target=source.close, daemon=True)
            end_while_fed(producer, capacity, close, "a shared source was closed", queries[0])
        finally:
            producer.stop()


def drained_while_given(rng: random.Random, watch: Watch) -> None:
    """A drain, or the close of a shared source, while an iterable gives: what it has given is processed."""
    rows, go = rng.choice([1, 100]), threading.Event()
    given: list[int] = []
    batch = pa.record_batch({name: np.arange(rows) for name in "tkv"})

    def source() -> Iterator[pa.RecordBatch]:
        while True:
            given.append(rows)
            yield batch

    async def awaited() -> AsyncIterator[pa.RecordBatch]:
        while True:
            given.append(rows)
            yield batch

    def stall(batch: ps.Batch) -> None:
        go.wait(20)

    # With little memory: half a million batches of one row would fit the default budget.
    with ps.Engine(
        workers=rng.choice([1, 2]), mode=rng.choice(["state", "threads"]), budget="4MiB",
    ) as engine:  # fmt: skip
        watch.add(engine)
        is_awaited = rng.random() < 0.3
        data: Any = awaited() if is_awaited else source()
        shared = engine.source(STREAM, data) if rng.random() < 0.3 else None
        query = engine.submit(STREAM, source=data if shared is None else shared, sink=stall)
        # It waits with a batch at hand, and asks for no other.
        still, last = 0, -1
        while still < 25:
            time.sleep(0.01)
            watch.beat()
            still, last = (still + 1 if len(given) == last else 0), len(given)
        # What it had given a while ago; on a busy machine it may have gone on since.
        least = last * rows
        ending: Any = shared.close if shared is not None else partial(query.stop, drain=True)
        end = threading.Thread(target=ending, daemon=True)
        end.start()
        time.sleep(rng.random() * 0.02)
        go.set()
        watch.add(engine, query)
        end.join()
        query.wait()
        taken = (shared or query).metrics()["rows_in"]
        # A batch that an asynchronous one has ready, and nobody has taken, may be left.
        left = rows if is_awaited else 0
        if not least - left <= taken <= sum(given):
            raise Finding(f"{least} rows were given, {sum(given)} in the end, and {taken} came in")
