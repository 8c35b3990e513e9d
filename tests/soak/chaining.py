"""Queries that read queries: whatever the end, each row that the first took in goes through all of them."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import penstock as ps
from penstock import col
from soak.leftovers import Finding
from soak.nesting import STREAM, numbers_from
from soak.watch import Watch

ENDS = ("finish", "exit", "exit", "exit early", "drain first", "drain last", "stop last", "leave")


@dataclass
class Chain:
    """Queries one behind the other, the last of them perhaps several that share what the one before gives."""

    queries: list[ps.Query] = field(default_factory=list)
    readers: list[tuple[ps.Query, list[int] | None]] = field(default_factory=list)
    """The last ones, with what they have given to a function, if they have one."""
    shared: ps.SharedSource | None = None

    def values(self) -> list[list[int]]:
        """What has come out of each reader; they have ended."""
        found = []
        for query, taken in self.readers:
            if taken is None:
                query.wait()
                found.append([row["v"] for row in query.result().to_pylist()])
            else:
                query.wait()
                found.append(taken)
        return found


def build(rng: random.Random, engine: ps.Engine, feed: Any) -> Chain:
    """Two or three queries, linked in one of the ways there are."""
    chain = Chain()
    source: Any = feed
    plans = [
        STREAM, STREAM.filter(col("v") >= 0), STREAM.with_columns(v=col("v") + 0),
        STREAM.map_batches(lambda batch: batch),
    ]  # fmt: skip
    for _ in range(rng.choice([1, 1, 2])):
        query = engine.submit(rng.choice(plans), source=source)
        chain.queries.append(query)
        source = query if rng.random() < 0.6 else query.results()
    count = 1
    if rng.random() < 0.35:
        source = chain.shared = engine.source(STREAM, source, hold=True)
        count = rng.choice([1, 2])
    for _ in range(count):
        taken: list[int] | None = [] if rng.random() < 0.4 else None
        sink: Any = "collect" if taken is None else taker(taken, rng.choice([0.0, 0.0, 0.002]))
        reader = engine.submit(rng.choice(plans), source=source, sink=sink)
        chain.readers.append((reader, taken))
    if chain.shared is not None:
        chain.shared.start()
    return chain


def taker(taken: list[int], pause: float) -> Any:
    """A function that keeps values."""

    def take(batch: ps.Batch) -> None:
        time.sleep(pause)
        taken.extend(row["v"] for row in batch.to_pylist())

    return take


def chained(rng: random.Random, watch: Watch) -> None:
    """Draws a chain, an end, and what the last ones must have come to."""
    end = rng.choice(ENDS)
    engine = ps.Engine(
        workers=rng.choice([1, 2]), mode=rng.choice(["state", "state", "threads"]),
        policy=rng.choice(["adaptive", "fcfs", "rr"]), on_exit="drain" if end.startswith("exit") else "stop",
    )  # fmt: skip
    watch.add(engine)
    feed = ps.PushSource(rng.choice([1, 4, 64]))
    accepted: list[int] = []
    count, rows = rng.choice([1, 5, 40]), rng.choice([1, 3, 200])

    def push() -> None:
        try:
            for number in range(count):
                feed.push(numbers_from(number * rows, rows))
                accepted.append(number)
        except ps.PenstockError:
            pass  # cut off

    with engine:
        chain = build(rng, engine, feed)
        watch.add(engine, *chain.queries, *(query for query, _ in chain.readers))
        pusher = threading.Thread(target=push, daemon=True)
        pusher.start()
        if end == "exit early":
            time.sleep(rng.random() * 0.01)
        else:
            pusher.join()
        if end == "finish":
            feed.close()
        elif end == "drain first":
            chain.queries[0].stop(drain=True)
        elif end in ("drain last", "stop last"):
            return leave_the_rest(end, engine, chain, feed, count * rows, watch)
        elif end == "leave":
            return None
        if not end.startswith("exit"):
            check(chain, accepted, rows, end)
    pusher.join()
    check(chain, accepted, rows, end)
    return None


def check(chain: Chain, accepted: list[int], rows: int, end: str) -> None:
    """Everything that was accepted has come out at the last ones."""
    expected = Counter(range(len(accepted) * rows))
    for number, values in enumerate(chain.values()):
        if Counter(values) != expected:
            missing = (expected - Counter(values)).total()
            more = (Counter(values) - expected).total()
            linked = "a shared source" if chain.shared is not None else "a query"
            raise Finding(
                f"chained over {linked}, {end}: of {expected.total()} rows that the first query took in, "
                f"reader {number} lacks {missing}, and has {more} that it should not"
            )


def leave_the_rest(
    end: str, engine: ps.Engine, chain: Chain, feed: ps.PushSource, pushed: int, watch: Watch
) -> None:
    """The last ones leave; what they have not taken can still be read from the one before."""
    before = chain.queries[-1]
    for query, _ in chain.readers:
        query.stop(drain=end == "drain last")
    if chain.shared is not None:
        chain.shared.close()
        while chain.shared.status == "running":
            time.sleep(0.001)
    took: Any = chain.shared if chain.shared is not None else chain.readers[0][0]
    if end == "drain last":
        feed.close()
        rest = sum(batch.num_rows for batch in before.results())
        taken = took.metrics()["rows_in"]
        if taken + rest != pushed:
            raise Finding(
                f"{pushed} rows came out of a query; who read them was drained and took {taken}, and {rest} "
                "were left"
            )
    elif before.status != "running":
        raise Finding(f"a query whose reader was stopped is {before.status}")
