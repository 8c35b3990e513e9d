"""Functions that run pipelines, sources that are pushed to by their own functions, engines that are dropped.

What cannot work is refused, with an error of the engine's own; nothing hangs, and nothing else stops working.
"""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import penstock as ps
from penstock import col
from soak import leftovers
from soak.leftovers import Finding, Held
from soak.watch import Watch

STREAM = ps.stream({"t": "int64", "v": "int64"}, time="t")


def numbers(rows: int) -> pa.Table:
    return pa.table({"t": pa.array(range(rows), pa.int64()), "v": pa.array(range(rows), pa.int64())})


def same(batch: ps.Batch) -> pa.Table:
    return pa.table(batch)


def pipeline_in_a_function(rng: random.Random, watch: Watch) -> None:
    """A function runs a pipeline, with a function of its own or without: it works, or it is refused."""
    inner = STREAM.map_batches(same) if rng.random() < 0.7 else STREAM.filter(col("v") >= 0)
    way = rng.choice(["run", "engine", "outer engine"])
    place = rng.choice(["map", "map", "map", "sink", "letters", "source"])
    outer: list[ps.Engine] = []

    def run_inner() -> int:
        if way == "run":
            return len(inner.run(numbers(5)))
        if way == "engine":
            with ps.Engine(workers=1) as engine:
                return len(engine.submit(inner, source=numbers(5), sink="collect").result())
        return len(outer[0].submit(inner, source=numbers(5), sink="collect").result())

    def nested(batch: ps.Batch) -> pa.Table:
        if run_inner() != 5:
            raise Finding("the pipeline in a function gave another number of rows")
        return pa.table(batch)

    def source() -> Iterator[pa.Table]:
        run_inner()
        yield numbers(50)

    plan = STREAM.map_batches(nested) if place == "map" else STREAM
    plan = STREAM.filter(60 // col("v") >= 0) if place == "letters" else plan
    workers = rng.choice([1, 2])
    with ps.Engine(workers=workers) as engine:
        outer.append(engine)
        try:
            query = engine.submit(
                plan, source=source() if place == "source" else numbers(50),
                sink=nested if place == "sink" else "discard",
                on_error=nested if place == "letters" else "fail",
            )  # fmt: skip
            query.wait()
        except ps.PenstockError:
            pass  # refused
        outer.clear()
    # Whatever became of it, functions of others work.
    if len(STREAM.map_batches(same).run(numbers(20))) != 20:
        raise Finding("a function gave another number of rows")


def pushed_by_its_own_function(rng: random.Random, watch: Watch) -> None:
    """A function of a query pushes to the source of that query: it works, or it is refused."""
    source = ps.PushSource(rng.choice([1, 4]))
    pushed: list[int] = []
    place = rng.choice(["watermark", "watermark", "map", "sink"])

    def push(batch: ps.Batch) -> Any:
        if len(pushed) < 3:
            pushed.append(1)
            # Where there is no room, a sink or a map would wait for itself: that is their own doing.
            source.push(numbers(2), timeout=None if place == "watermark" else 0)
        return None if place == "watermark" else pa.table(batch)

    stream = (
        ps.stream({"t": "int64", "v": "int64"}, time="t", watermark=push) if place == "watermark" else STREAM
    )
    plan = stream.map_batches(push) if place == "map" else stream
    if rng.random() < 0.5:
        source.push(numbers(3))
    with ps.Engine(workers=1) as engine:
        try:
            query = engine.submit(plan, source=source, sink=push if place == "sink" else "discard")
            source.push(numbers(4))
            source.close()
            query.wait()
        except ps.PenstockError:
            pass  # refused


def dropped_engine(rng: random.Random, watch: Watch) -> None:
    """An engine that nobody holds is gone, with its threads, even if its functions refer to it."""
    held: list[weakref.ref[Held]] = []
    gc.collect()
    before = leftovers.threads()
    drop(rng, held)
    leftovers.check_threads(before)
    leftovers.check_gone(held, "functions of engines that were dropped")


def drop(rng: random.Random, held: list[weakref.ref[Held]]) -> None:
    engine = ps.Engine(workers=rng.choice([1, 2]), mode=rng.choice(["state", "state", "threads"]))
    refers = rng.choice(["engine", "query", "none"])
    place = rng.choice(["sink", "sink", "map", "letters", "source"])
    mine = Held()
    held.append(weakref.ref(mine))
    reach: list[Any] = [mine, engine if refers == "engine" else None]

    def function(batch: ps.Batch) -> pa.Table:
        assert reach[0] is mine
        return pa.table(batch)

    def source() -> Iterator[pa.Table]:
        for _ in range(5):
            assert reach[0] is mine
            yield numbers(3)

    plan = STREAM.map_batches(function) if place == "map" else STREAM
    plan = STREAM.filter(60 // col("v") >= 0) if place == "letters" else plan
    feed = ps.PushSource()
    data: Any = feed
    if place == "source":
        data = source()
    elif rng.random() < 0.4:
        data = ps.replay(numbers(1_000), rounds=None, rate=10_000.0)
    query = engine.submit(
        plan, source=data, sink=function if place == "sink" else "discard",
        on_error=function if place == "letters" else "fail",
    )  # fmt: skip
    if refers == "query":
        reach.append(query)
    if data is feed:
        feed.push(numbers(10))
