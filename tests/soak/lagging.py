"""Queries that do not keep up with a shared source: it waits, they fail, or they shed, as they were told."""

from __future__ import annotations

import random
import threading
import time
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock import col
from soak.checks import check_balance
from soak.leftovers import Finding
from soak.watch import Watch

FAST = ps.stream({"t": "int64", "v": "int64"}, time="t", name="fast")
PUSHED = ps.stream({"t": "int64", "v": "int64"}, time="t", name="pushed")
MOST_BATCHES = 1_000
PATIENCE_SECONDS = 10.0


def numbers(first: int, rows: int) -> pa.RecordBatch:
    values = np.arange(first, first + rows)
    return pa.record_batch({"t": values, "v": values})


def lagging(rng: random.Random, watch: Watch) -> None:
    """One query stands still until its log is full, another one goes on."""
    on_lag: Any = rng.choice(["shed", "shed", "fail", "wait"])
    rows, go, taken = rng.choice([1_000, 4_000, 10_000]), threading.Event(), list[int]()
    mapped = rng.random() < 0.3

    def stall(batch: ps.Batch) -> Any:
        # A query that is inside of a function acts when that returns.
        go.wait(0.1 if mapped else 60)
        taken.extend(pa.table(batch)["v"].to_pylist())
        return pa.table(batch)

    with ps.Engine(
        workers=2, mode=rng.choice(["state", "state", "threads"]), budget=rng.choice(["4MiB", "8MiB"]),
        policy=rng.choice(["adaptive", "fcfs", "rr"]), chain=rng.choice(["auto", "off"]),
        block_rows=rng.choice([None, None, 16, 256]),
    ) as engine:  # fmt: skip
        feed = ps.PushSource(4)
        source = engine.source(FAST, feed, hold=True)
        plan = FAST.map_batches(stall) if mapped else FAST.filter(col("v") % 3 != 1)
        slow = engine.submit(plan, source=source, sink="discard" if mapped else stall, on_lag=on_lag)
        window = FAST.window(ps.tumbling(100)).agg(n=ps.count())
        # Functions of an engine take turns: a query without one is not held up by the one that stalls.
        other = engine.submit(window, source=source, sink="discard", on_lag="wait")
        source.start()
        pushed = push_until(feed, slow, source, rows, on_lag, watch)
        go.set()
        watch.add(engine, slow, other)
        feed.close()
        other.wait()
        if other.metrics()["rows_in"] != pushed or other.metrics()["rows_shed"]:
            raise Finding(f"of {pushed} rows, {other.metrics()['rows_in']} came in beside a query that lags")
        check_slow(slow, on_lag, pushed, taken)


def push_until(
    feed: ps.PushSource, slow: ps.Query, source: ps.SharedSource, rows: int, on_lag: str, watch: Watch
) -> int:
    """Pushes until the query lags, and a little further; the rows pushed."""
    pushed, more = 0, 0
    for _ in range(MOST_BATCHES):
        if not feed.push(numbers(pushed, rows), timeout=PATIENCE_SECONDS if on_lag != "wait" else 0.3):
            if on_lag == "wait":
                return pushed
            raise Finding(
                f"a source waits for a query with on_lag={on_lag!r}: {pushed} rows, blocked by "
                f"{source.metrics()['blocked_by']}, {slow.status}"
            )
        pushed += rows
        watch.beat()
        lags = slow.status != "running" or slow.metrics()["rows_shed"] > 0
        more += lags
        if more > 20:
            return pushed
    return pushed


def check_slow(slow: ps.Query, on_lag: str, pushed: int, taken: list[int]) -> None:
    try:
        slow.wait()
    except ps.LaggedError as error:
        if on_lag != "fail":
            raise Finding(f"a query with on_lag={on_lag!r} lags") from error
        return
    metrics = slow.metrics()
    check_balance(metrics)
    if metrics["rows_in"] != pushed:
        raise Finding(f"{metrics['rows_in']} rows came in, with those that were shed, of {pushed}")
    if on_lag != "shed" and metrics["rows_shed"]:
        raise Finding(f"a query with on_lag={on_lag!r} has shed {metrics['rows_shed']} rows")
    if len(set(taken)) != len(taken) or len(taken) != metrics["rows_contributed"]:
        raise Finding(f"{len(taken)} rows were taken, and {metrics['rows_contributed']} contributed")


def idle_while_shedding(rng: random.Random, watch: Watch) -> None:
    """A shared source falls silent while a query that reads it beside another stream lags behind it."""
    clock, go, out = ps.ManualClock(), threading.Event(), list[dict[str, Any]]()
    quiet = ps.stream(
        {"t": "int64", "v": "int64"}, time="t", name="quiet", idle_after=rng.choice(["1s", "10s"])
    )
    on_lag: Any = rng.choice(["shed", "shed", "wait"])

    def stall(batch: ps.Batch) -> None:
        go.wait(60)
        out.extend(row for row in batch.to_pylist() if row["last"] >= 10**9)

    with ps.Engine(
        workers=rng.choice([1, 2]), mode=rng.choice(["state", "state", "threads"]), budget="8MiB",
        policy=rng.choice(["adaptive", "fcfs", "rr"]), chain=rng.choice(["auto", "off"]), clock=clock,
    ) as engine:  # fmt: skip
        feeds = {"quiet": ps.PushSource(4), "pushed": ps.PushSource(4)}
        source = engine.source(quiet, feeds["quiet"], hold=True)
        plan = quiet.union(PUSHED).window(ps.tumbling(10)).agg(n=ps.count(), last=ps.max("v"))
        sources: dict[str, Any] = {"quiet": source, "pushed": feeds["pushed"]}
        query = engine.submit(plan, source=sources, sink=stall, on_lag=on_lag)
        other = engine.submit(quiet, source=source, sink="discard")
        watch.add(engine)
        source.start()
        feeds["pushed"].push(numbers(10**9, 30))  # its windows wait for the other stream
        pushed = 0
        for _ in range(rng.choice([1, 50, 1_000])):
            if not feeds["quiet"].push(numbers(pushed, 1_000), timeout=0.2) or query.metrics()["rows_shed"]:
                break
            pushed += 1_000
        # From here on it is silent; what it has read is read by all, or shed.
        deadline = time.monotonic() + PATIENCE_SECONDS
        go.set()
        while not out and time.monotonic() < deadline:
            clock.advance(timedelta(seconds=rng.choice([1, 10])))
            time.sleep(0.01)
        if not out:
            raise Finding(
                f"nobody went on without a silent source, on_lag={on_lag!r}: {pushed} rows, "
                f"{query.metrics()['rows_shed']} shed, {query.metrics()['idle_sources']} idle"
            )
        for feed in feeds.values():
            feed.close()
        query.wait()
        other.wait()
