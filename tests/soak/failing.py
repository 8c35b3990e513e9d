"""What has failed is freed: the query, its error, and the locals of the frames that it has passed."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pyarrow as pa

import penstock as ps
from penstock import col
from soak import leftovers
from soak.graphs import PoisonError
from soak.leftovers import Finding, Held
from soak.nesting import STREAM, numbers
from soak.watch import Watch

PLACES = (
    "map", "sink", "source", "letters", "watermark", "async",
    "shared", "shared letters", "shared watermark", "shared map",
)  # fmt: skip
WAYS = ("wait", "result", "results", "error", "run", "nothing")


def failure_freed(rng: random.Random, watch: Watch) -> None:
    """A query that fails is freed with its error, and so are the locals of the frames it has passed."""
    held: list[weakref.ref[Held]] = []
    for _ in range(rng.choice([1, 3])):
        place, way = rng.choice(PLACES), rng.choice(WAYS)
        count, query = len(held), None
        if rng.random() < 0.2:
            place = "after the end"
            query = fail_after_the_end(rng, watch, held)
        else:
            fail_once(rng, watch, held, place, way)
        if rng.random() < 0.5:
            query = None
        leftovers.check_gone(held[count:], f"locals of functions that failed ({place}, {way})")
        assert query is None or query.status != "running"


class Failing:
    """Functions and sources that fail, and keep something large in the frame."""

    def __init__(self, held: list[weakref.ref[Held]]) -> None:
        self.held = held
        self.reach: list[Any] = []
        """What the frames refer to: perhaps their own query."""

    def fail(self) -> None:
        local, reach = Held(1 << 16), self.reach
        self.held.append(weakref.ref(local))
        assert reach is self.reach
        raise PoisonError("on purpose")

    def function(self, batch: ps.Batch) -> Any:
        self.fail()

    def source(self) -> Iterator[pa.Table]:
        yield numbers(10)
        self.fail()

    async def awaited(self) -> AsyncIterator[pa.Table]:
        yield numbers(10)
        await asyncio.sleep(0)
        self.fail()


def fail_once(rng: random.Random, watch: Watch, held: list[weakref.ref[Held]], place: str, way: str) -> None:
    made = Failing(held)
    plan = STREAM.map_batches(made.function) if place.endswith("map") else STREAM.filter(col("v") >= 0)
    stream, data = STREAM, numbers(100)
    on_error: Any = "fail"
    source_error: Any = "fail"
    if place in ("source", "shared"):
        data = made.source()
    elif place == "async":
        data = made.awaited()
    elif place == "letters":
        plan, on_error = STREAM.filter(60 // col("v") > 0), made.function
    elif place == "shared letters":
        source_error = made.function
        data = pa.table({"t": pa.array([1, None, 3], pa.int64()), "v": pa.array([1, 2, 3], pa.int64())})
    elif place.endswith("watermark"):
        stream = plan = ps.stream({"t": "int64", "v": "int64"}, time="t", watermark=made.function)
    if way == "run" and place != "sink" and not place.startswith("shared"):
        try:
            plan.run(data, on_error=on_error)
        except PoisonError:
            return
        raise Finding("a run did not fail")
    with ps.Engine(workers=rng.choice([1, 2])) as engine:
        watch.add(engine)
        sink: Any = made.function if place == "sink" else "collect" if way == "result" else None
        try:
            given = data
            if place.startswith("shared"):
                given = engine.source(stream, data, on_error=source_error)
            query = engine.submit(plan, source=given, sink=sink, on_error=on_error)
            if rng.random() < 0.5:
                made.reach.append(rng.choice([query, engine]))
            hear(query, place, way, given if isinstance(given, ps.SharedSource) else None)
        except (PoisonError, ps.SourceEndedError):
            pass
        watch.forget()


def hear(query: ps.Query, place: str, way: str, shared: ps.SharedSource | None) -> None:
    """Comes to hear of the failure, in one of the ways there are."""
    if way == "result" and place != "sink":
        query.result()
    elif way == "results" and place != "sink":
        for _ in query.results():
            pass
    elif way == "wait" or place == "sink":
        take_rest(query, place)
        query.wait()
    else:
        take_rest(query, place, quietly=True)
        if way == "error" and not isinstance(query.error, PoisonError | ps.SourceEndedError):
            if place == "shared letters" and query.status == "finished":
                # It had read everything before the function was called: the source alone fails.
                assert shared is not None
                while shared.status == "running":
                    time.sleep(0.001)
                if isinstance(shared.error, PoisonError):
                    return
                raise Finding(f"the error of a source whose function failed is {shared.error!r}")
            raise Finding(f"the error of a failed query is {query.error!r}")


def take_rest(query: ps.Query, place: str, quietly: bool = False) -> None:
    """Reads what waits to be read, so that the query comes to its failure."""
    try:
        for _ in query.results() if place != "sink" else ():
            pass
        while query.status == "running":
            time.sleep(0.001)
    except (PoisonError, ps.PlanError, ps.SourceEndedError):
        if not quietly:
            raise


def fail_after_the_end(rng: random.Random, watch: Watch, held: list[weakref.ref[Held]]) -> ps.Query:
    """An iterator raises when its query was stopped, drained or has failed: nobody takes that error."""
    made, entered, go, raised = Failing(held), threading.Event(), threading.Event(), threading.Event()
    end, shares, refers = (
        rng.choice(["stop", "drain", "leave", "fail"]),
        rng.random() < 0.4,
        rng.random() < 0.5,
    )

    def source() -> Iterator[pa.Table]:
        yield numbers(10)
        entered.set()
        go.wait(20)
        try:
            made.fail()
        finally:
            raised.set()

    engine = ps.Engine(workers=1)
    with engine:
        watch.add(engine)
        given: Any = engine.source(STREAM, source()) if shares else source()
        plan = STREAM.filter(60 // col("v") > 0) if end == "fail" else STREAM
        query = engine.submit(plan, source=given, sink="discard")
        if refers:
            made.reach.append(query)
        entered.wait(20)
        if end == "fail":
            while query.status == "running":
                time.sleep(0.001)
        elif end != "leave":
            query.stop(drain=end == "drain")
        watch.forget()
    go.set()
    raised.wait(20)
    return query
