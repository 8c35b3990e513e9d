"""Functions that call the engine they run on, and submissions beside functions that take long."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import penstock as ps
from penstock import col
from soak.leftovers import Finding
from soak.nesting import STREAM, numbers
from soak.watch import Watch


def functions_that_call(rng: random.Random, watch: Watch) -> None:
    """Whatever a function asks its engine for, it gets an answer, or an error."""
    with ps.Engine(workers=rng.choice([1, 2]), policy=rng.choice(["adaptive", "fcfs", "rr"])) as engine:
        queries: list[ps.Query] = []
        other = ps.PushSource(64)
        calls: list[Callable[[], object]] = [
            engine.metrics,
            lambda: [query.metrics() for query in queries],
            lambda: engine.queries,
            lambda: [query.status for query in queries],
            lambda: other.push(numbers(1), timeout=0),
            lambda: engine.submit(STREAM.filter(col("v") > 1), source=numbers(3), sink="discard"),
            lambda: engine.source(STREAM, numbers(3)).close(),
            lambda: repr(engine),
        ]
        chosen = [rng.choice(calls) for _ in range(3)]
        place = rng.choice(["map", "sink", "letters", "watermark"])

        def call(batch: ps.Batch) -> Any:
            for one in chosen:
                with contextlib.suppress(ps.PenstockError):  # refused
                    one()
            return None if place == "watermark" else pa.table(batch)

        stream = (
            ps.stream({"t": "int64", "v": "int64"}, time="t", watermark=call)
            if place == "watermark"
            else STREAM
        )
        plan = stream.map_batches(call) if place == "map" else stream
        plan = stream.filter(60 // col("v") >= 0) if place == "letters" else plan
        data = [numbers(5) for _ in range(4)]
        watch.add(engine)
        queries.append(engine.submit(STREAM, source=other, sink="discard"))
        queries.append(
            engine.submit(
                plan, source=data, sink=call if place == "sink" else "discard",
                on_error=call if place == "letters" else "fail",
            )
        )  # fmt: skip
        watch.add(engine, queries[1])
        queries[1].wait()
        other.close()
        queries[0].wait()


def submitted_beside(rng: random.Random, watch: Watch) -> None:
    """While one thread submits to a shared source, whoever asks the engine for something gets it."""
    with ps.Engine(workers=1, mode=rng.choice(["state", "state", "threads"])) as engine:
        watch.add(engine)
        entered, leave = threading.Event(), threading.Event()

        def slow(batch: ps.Batch) -> pa.Table:
            entered.set()
            leave.wait(20)
            return pa.table(batch)

        feed = ps.PushSource()
        shared = engine.source(STREAM, feed)
        first = engine.submit(STREAM, source=shared, sink="discard")
        busy = engine.submit(STREAM.map_batches(slow), source=numbers(10), sink="discard")
        entered.wait()
        made: list[ps.Query] = []
        submitter = threading.Thread(
            target=lambda: made.append(engine.submit(STREAM, source=shared, sink="discard")), daemon=True
        )
        submitter.start()
        submitter.join(rng.random() * 0.05)
        answers: list[object] = []
        asks: list[Callable[[], object]] = [
            engine.metrics,
            lambda: engine.queries,
            first.metrics,
            lambda: engine.submit(STREAM, source=numbers(1), sink="discard"),
            lambda: engine.source(STREAM, numbers(1)),
        ]
        chosen = rng.choice(asks)
        asker = threading.Thread(target=lambda: answers.append(chosen()), daemon=True)
        asker.start()
        asker.join(2.0)
        waited = asker.is_alive()
        leave.set()
        asker.join(10)
        submitter.join(10)
        feed.close()
        busy.wait()
        first.wait()
        for query in made:
            query.wait()
        if waited:
            raise Finding("while a query is submitted to a shared source, nobody else is answered")
