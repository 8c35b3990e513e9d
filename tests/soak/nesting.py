"""Functions that run pipelines, and sources that are pushed to by their own functions.

What cannot work is refused, with an error of the engine's own; nothing hangs, and nothing else stops working.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import penstock as ps
from penstock import col
from soak.leftovers import Finding
from soak.watch import Watch

STREAM = ps.stream({"t": "int64", "v": "int64"}, time="t")


def numbers(rows: int) -> pa.Table:
    return numbers_from(0, rows)


def numbers_from(first: int, rows: int) -> pa.Table:
    values = pa.array(range(first, first + rows), pa.int64())
    return pa.table({"t": values, "v": values})


def same(batch: ps.Batch) -> pa.Table:
    return pa.table(batch)


async def count_rows(query: ps.Query) -> int:
    return sum([batch.num_rows async for batch in query.results()])


def pipeline_in_a_function(rng: random.Random, watch: Watch) -> None:
    """A function runs a pipeline, with a function of its own or without: it works, or it is refused."""
    inner = STREAM.map_batches(same) if rng.random() < 0.7 else STREAM.filter(col("v") >= 0)
    way = rng.choice(["run", "engine", "outer engine", "async", "run a query", "table"])
    place = rng.choice(["map", "map", "map", "sink", "letters", "source", "watermark"])
    outer: list[ps.Engine] = []

    def run_inner() -> int:
        if way == "run":
            return len(inner.run(numbers(5)))
        if way == "engine":
            with ps.Engine(workers=1) as engine:
                return len(engine.submit(inner, source=numbers(5), sink="collect").result())
        if way == "outer engine":
            return len(outer[0].submit(inner, source=numbers(5), sink="collect").result())
        query = outer[0].submit(inner, source=numbers(5))
        if way == "async":
            return asyncio.run(count_rows(query))
        return len(STREAM.run(query)) if way == "run a query" else pa.table(query).num_rows

    def nested(batch: ps.Batch) -> Any:
        if run_inner() != 5:
            raise Finding("the pipeline in a function gave another number of rows")
        return None if place == "watermark" else pa.table(batch)

    def source() -> Iterator[pa.Table]:
        run_inner()
        yield numbers(50)

    plan = STREAM.map_batches(nested) if place == "map" else STREAM
    plan = STREAM.filter(60 // col("v") >= 0) if place == "letters" else plan
    if place == "watermark":
        plan = ps.stream({"t": "int64", "v": "int64"}, time="t", watermark=nested)
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
        except (ps.PenstockError, pa.ArrowException, OSError):
            pass  # refused; readers of Arrow streams get the words of it
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
