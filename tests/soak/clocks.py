"""Streams that fall silent and windows that close by the clock, which is put forward by hand."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

import penstock as ps
from soak.leftovers import Finding
from soak.watch import Watch

SIZE = 10
PATIENCE_SECONDS = 10.0
SILENCE_SECONDS = 10
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def times(*values: int) -> pa.Table:
    return pa.table({"t": pa.array(values, pa.int64())})


def counted(rows: list[dict[str, Any]]) -> Counter[int]:
    """Rows by the start of their window."""
    found: Counter[int] = Counter()
    for row in list(rows):
        found[row["window_start"]] += row["n"]
    return found


class Stage:
    """A union of streams of which one falls silent, or a stream whose windows close by the clock."""

    def __init__(self, rng: random.Random, engine: ps.Engine, clock: ps.ManualClock, closes: bool) -> None:
        self.clock, self.rows = clock, list[dict[str, Any]]()
        names = ["one"] if closes else ["one", "quiet"]
        streams = [
            ps.stream({"t": "int64"}, time="t", name=name, idle_after="10s" if name == "quiet" else None)
            for name in names
        ]
        self.feeds = {name: ps.PushSource(64) for name in names}
        plan = streams[0] if closes else ps.union(*streams)
        if rng.random() < 0.3:
            plan = plan.map_batches(lambda batch: batch)
        window = plan.window(ps.tumbling(SIZE), close_after="10s" if closes else None)
        shares = {name: rng.random() < 0.4 for name in names}
        sources: dict[str, Any] = {
            name: engine.source(stream, self.feeds[name]) if shares[name] else self.feeds[name]
            for name, stream in zip(names, streams, strict=True)
        }
        self.query = engine.submit(window.agg(n=ps.count()), source=sources, sink=self.take)
        self.pushed = 0

    def take(self, batch: ps.Batch) -> None:
        self.rows.extend(batch.to_pylist())

    def push(self, name: str, *values: int) -> None:
        """Hands rows over, and waits until they are in a window."""
        self.feeds[name].push(times(*values))
        self.pushed += len(values)
        self.until(
            lambda: self.query.metrics()["rows_contributed"] >= self.pushed, f"{values} to be taken in"
        )

    def until(self, happens: Any, what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happens():
            if time.monotonic() > deadline:
                metrics = self.query.metrics()
                shown = {
                    name: metrics[name] for name in ("rows_in", "rows_contributed", "idle_sources", "idles")
                }
                raise Finding(f"waited for {what}: {shown}, {counted(self.rows)}, {metrics['tasks']}")
            time.sleep(0.001)

    def check(self, wanted: dict[int, int], what: str) -> None:
        self.until(lambda: counted(self.rows) == Counter(wanted), f"windows {wanted} {what}")

    def pass_by(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))
        time.sleep(0.01)


def by_the_clock(rng: random.Random, watch: Watch) -> None:
    """Silence lets windows close when it has lasted, and not before."""
    clock, closes = ps.ManualClock(NOON), rng.random() < 0.4
    with ps.Engine(
        workers=rng.choice([1, 2]), mode=rng.choice(["state", "state", "threads"]), clock=clock,
        policy=rng.choice(["adaptive", "fcfs", "rr"]), chain=rng.choice(["auto", "off"]),
        memory=rng.choice(["blocks", "blocks", "queue"]),
    ) as engine:  # fmt: skip
        watch.add(engine)
        stage = Stage(rng, engine, clock, closes)
        first = rng.randrange(1, 5)
        at, wanted = 0, dict[int, int]()
        for _ in range(rng.choice([1, 2, 3])):
            stage_by_hand(rng, stage, closes, at, first, wanted)
            at += 100
        for feed in stage.feeds.values():
            feed.close()
        watch.add(engine, stage.query)
        stage.query.wait()
        if sum(counted(stage.rows).values()) != stage.pushed:
            raise Finding(f"{stage.pushed} rows were pushed, and windows hold {counted(stage.rows)}")


def stage_by_hand(
    rng: random.Random, stage: Stage, closes: bool, at: int, first: int, wanted: dict[int, int]
) -> None:
    """Rows of a window that ends by the clock, later than those before it."""
    early = rng.choice([1.0, 5.0, 9.0])
    if closes:
        stage.push("one", *(at + n for n in range(first)))
        stage.pass_by(early)
        stage.check(wanted, "before it was silent for long enough")
        stage.pass_by(SILENCE_SECONDS)
        wanted[at] = first
        stage.check(wanted, "after silence")
        return
    stage.push("quiet", at + 1)
    stage.push("one", at + 2, at + 2 * SIZE + 5)
    # The streams wait for each other: the window of the last round's stray row is over for both.
    settle(wanted, at)
    stage.check(wanted, "while both streams speak")
    stage.pass_by(early)
    stage.check(wanted, "before one was silent for long enough")
    stage.pass_by(SILENCE_SECONDS)
    wanted[at] = 2
    stage.check(wanted, "while one is silent")


def settle(wanted: dict[int, int], at: int) -> None:
    """The stray row of the round before has its window closed by the rows of this one."""
    if at:
        wanted[at - 100 + 2 * SIZE] = 1
