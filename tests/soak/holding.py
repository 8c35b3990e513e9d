"""Memory: everything that the engine keeps is within the budget."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock import col
from soak import leftovers
from soak.graphs import PoisonError
from soak.leftovers import Finding
from soak.watch import Watch

SLACK = 96 * 2**20
"""What a process may have beyond the budget: the allocator's own, and what other scenes have left to it."""
LONGEST_SECONDS = 6.0
KEY_BYTES = 32
"""What a key of a window takes at least, with its aggregates."""


def results_unread(rng: random.Random, watch: Watch) -> None:
    """Results that nobody reads, and letters that nobody takes, wait within the budget."""
    budget, go = rng.choice([16, 32]) * 2**20, threading.Event()
    names = [f"c{n}" for n in range(rng.choice([4, 12, 12]))]
    table = pa.table({name: np.arange(20_000) for name in names})
    stream = ps.stream(dict.fromkeys(names, "int64"))
    kind = rng.choice(["rows", "rows", "outputs", "letters", "letters of a function"])

    def refuse(batch: ps.Batch) -> pa.Table:
        made = pa.table(batch)
        if (made["c0"].to_numpy() == 7).any():
            raise PoisonError("seven")
        return made.slice(0, 0)

    def stall(batch: ps.Batch) -> None:
        go.wait(60)

    more = stream.with_columns(more=col("c0") + 1)
    plans: dict[str, ps.Stream | ps.Outputs] = {
        "rows": more,
        "outputs": ps.outputs(a=more, b=stream),
        "letters": stream.filter(60 // (col("c0") - 7) > 60),
        "letters of a function": stream.map_batches(refuse),
    }
    how: dict[str, Any] = {"on_error": stall, "sink": "discard"} if kind.startswith("letters") else {}
    before = leftovers.resident_bytes()
    with ps.Engine(workers=2, budget=budget) as engine:
        watch.add(engine)
        queries = [
            engine.submit(plans[kind], source=ps.replay(table, rounds=None), **how)
            for _ in range(rng.choice([4, 10]))
        ]
        still, last, deadline = 0, -1, time.monotonic() + LONGEST_SECONDS
        while still < 10 and time.monotonic() < deadline:
            time.sleep(0.02)
            watch.beat()
            moved = sum(query.metrics()["rows_in"] for query in queries)
            still, last = (still + 1 if moved == last else 0), moved
            taken = leftovers.resident_bytes() - before
            memory = engine.metrics()["memory"]
            # Each output may hold a batch beyond what there is room for.
            beyond = len(queries) * (2 if kind == "outputs" else 1) * budget // 64
            if taken > budget + SLACK or memory["used_bytes"] > budget + beyond:
                go.set()
                raise Finding(
                    f"{kind} of {len(queries)} queries that nobody takes are {taken >> 20} MiB with a budget "
                    f"of {budget >> 20} MiB, of which they say they use {memory['used_bytes'] >> 20} MiB"
                )
        go.set()


def state_is_charged(rng: random.Random, watch: Watch) -> None:
    """What windows hold is charged until it comes out, whoever has it: a lane, or who puts parts together."""
    rows, per_window = rng.choice([(400_000, 400_000), (800_000, 200_000)])
    table = pa.table({"t": np.arange(rows) // per_window, "k": np.arange(rows), "v": np.arange(rows)})
    stream = ps.stream({"t": "int64", "k": "int64", "v": "int64"}, time="t")
    plan = stream.window(ps.tumbling(1), by="k").agg(n=ps.count(), total=ps.sum("v"))
    least = per_window * KEY_BYTES // 2
    with ps.Engine(workers=rng.choice([2, 2, 4])) as engine:
        query = engine.submit(plan, source=ps.replay(table), sink="discard", strategy="merge")
        watch.add(engine, query)
        most = 0
        while query.status == "running":
            state = engine.metrics()["memory"]["state_bytes"]
            metrics = query.metrics()
            most = max(most, state)
            # Nothing has come out of the first window, and everything of it has come in.
            if metrics["rows_out"] == 0 and most > 2 * least and state < least:
                raise Finding(
                    f"{metrics['rows_in']:,} keys came in, none came out, and of {most >> 10} KiB of state "
                    f"{state >> 10} KiB are charged: {metrics['tasks']}"
                )
        query.wait()


def lanes_within_budget(rng: random.Random, watch: Watch) -> None:
    """On several workers, windows need a few times what they need on one, and no more."""
    count, rows = rng.choice([(5_000, 300_000), (20_000, 600_000)])
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
