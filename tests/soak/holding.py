"""Memory: what has failed is freed, and everything that the engine keeps is within the budget."""

from __future__ import annotations

import random
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock import col
from soak import leftovers
from soak.graphs import PoisonError
from soak.leftovers import Finding, Held
from soak.watch import Watch

STREAM = ps.stream({"t": "int64", "v": "int64"}, time="t")
SLACK = 96 * 2**20
"""What a process may have beyond the budget: the allocator's own, and what other scenes have left to it."""


def numbers(rows: int) -> pa.Table:
    return pa.table({"t": np.arange(rows), "v": np.arange(rows)})


def failure_freed(rng: random.Random, watch: Watch) -> None:
    """A query that fails is freed with its error, and so are the locals of the frames it has passed."""
    held: list[weakref.ref[Held]] = []
    for _ in range(rng.choice([1, 3])):
        fail_once(rng, watch, held)
    leftovers.check_gone(held, "locals of functions that failed")


def fail_once(rng: random.Random, watch: Watch, held: list[weakref.ref[Held]]) -> None:
    def fail() -> None:
        local = Held(1 << 16)
        held.append(weakref.ref(local))
        raise PoisonError("on purpose")

    def failing(batch: ps.Batch) -> Any:
        fail()

    def source() -> Iterator[pa.Table]:
        yield numbers(10)
        fail()

    place = rng.choice(["map", "sink", "source", "letters", "watermark"])
    way = rng.choice(["wait", "result", "results", "error", "run", "nothing"])
    plan = STREAM.map_batches(failing) if place == "map" else STREAM.filter(col("v") >= 0)
    data: Any = source() if place == "source" else numbers(100)
    on_error: Any = "fail"
    if place == "letters":
        plan, on_error = STREAM.filter(60 // col("v") > 0), failing
    if place == "watermark":
        plan = ps.stream({"t": "int64", "v": "int64"}, time="t", watermark=failing)
    if way == "run" and place != "sink":
        try:
            plan.run(data, on_error=on_error)
        except PoisonError:
            return
        raise Finding("a run did not fail")
    with ps.Engine(workers=rng.choice([1, 2])) as engine:
        watch.add(engine)
        sink: Any = failing if place == "sink" else "collect" if way == "result" else None
        try:
            query = engine.submit(plan, source=data, sink=sink, on_error=on_error)
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
                if way == "error" and not isinstance(query.error, PoisonError):
                    raise Finding(f"the error of a failed query is {query.error!r}")
        except PoisonError:
            pass
        watch.forget()


def take_rest(query: ps.Query, place: str, quietly: bool = False) -> None:
    """Reads what waits to be read, so that the query comes to its failure."""
    try:
        for _ in query.results() if place != "sink" else ():
            pass
        while query.status == "running":
            time.sleep(0.001)
    except (PoisonError, ps.PlanError):
        if not quietly:
            raise


def results_unread(rng: random.Random, watch: Watch) -> None:
    """Results that nobody reads wait within the budget."""
    budget = rng.choice([16, 32]) * 2**20
    names = [f"c{n}" for n in range(rng.choice([2, 12]))]
    table = pa.table({name: np.arange(20_000) for name in names})
    stream = ps.stream(dict.fromkeys(names, "int64"))
    before = leftovers.resident_bytes()
    with ps.Engine(workers=2, budget=budget) as engine:
        watch.add(engine)
        plan = stream.with_columns(more=col("c0") + 1)
        queries = [
            engine.submit(plan, source=ps.replay(table, rounds=None)) for _ in range(rng.choice([4, 10]))
        ]
        still, last = 0, -1
        while still < 10:
            time.sleep(0.02)
            watch.beat()
            out = sum(query.metrics()["rows_out"] for query in queries)
            still, last = (still + 1 if out == last else 0), out
            more = leftovers.resident_bytes() - before
            memory = engine.metrics()["memory"]
            if more > budget + SLACK or memory["used_bytes"] > budget * 1.1:
                raise Finding(
                    f"{len(queries)} queries that nobody reads take {more >> 20} MiB with a budget of "
                    f"{budget >> 20} MiB, of which they say they use {memory['used_bytes'] >> 20} MiB"
                )


def lanes_within_budget(rng: random.Random, watch: Watch) -> None:
    """On several workers, windows need a few times what they need on one, and no more."""
    keys, rows = rng.choice([(5_000, 300_000), (20_000, 600_000)]), 0
    count, rows = keys
    drawn = np.random.default_rng(rng.randrange(2**32))
    per_tick = rng.choice([10, 30])
    table = pa.table(
        {"t": np.arange(rows) // per_tick, "k": drawn.integers(0, count, rows), "v": np.arange(rows)}
    )
    stream = ps.stream({"t": "int64", "k": "int64", "v": "int64"}, time="t")
    window = rng.choice([ps.sliding(1_000, 100), ps.sliding(1_000, 250), ps.tumbling(1_000)])
    plan = stream.window(window, by="k").agg(n=ps.count(), total=ps.sum("v"))

    def run(workers: int, budget: int, **how: Any) -> tuple[int, int]:
        with ps.Engine(workers=workers, budget=budget) as engine:
            query = engine.submit(plan, source=ps.replay(table), sink="discard", **how)
            watch.add(engine, query)
            query.wait()
            found = query.metrics()["rows_out"], engine.metrics()["memory"]["peak_used_bytes"]
            watch.forget()
            return found

    out, peak = run(1, 1 << 30)
    workers = rng.choice([2, 2, 4])
    budget = 2 * workers * peak + (4 << 20)
    try:
        again, _ = run(workers, budget, strategy=rng.choice(["merge", "auto"]))
    except ps.MemoryLimitExceeded as error:
        raise Finding(
            f"what needs {peak >> 20} MiB on one worker does not fit {budget >> 20} MiB on {workers}: {error}"
        ) from error
    if again != out:
        raise Finding(f"{again} results on {workers} workers, {out} on one")
