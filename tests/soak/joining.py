"""Queries that come to a shared source later, and leave it: each reads all rows from its first one on."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import penstock as ps
from penstock import col
from soak.checks import check_balance
from soak.leftovers import Finding
from soak.nesting import STREAM, numbers_from
from soak.watch import Watch

SIZE = 50
PLANS = {
    "rows": STREAM,
    "evens": STREAM.filter(col("v") % 2 == 0),
    "mapped": STREAM.map_batches(lambda batch: batch),
    "windows": STREAM.window(ps.tumbling(SIZE)).agg(v=ps.count()),
}


@dataclass
class Reader:
    """A query that came to the source at some time, and what became of it."""

    plan: str
    query: ps.Query
    on_lag: str
    left: str = ""


def joined_later(rng: random.Random, watch: Watch) -> None:
    """Rows are numbered, so that what a query has read must be all numbers from some one on."""
    count, rows = rng.choice([20, 100]), rng.choice([1, 7, 500])
    end = rng.choice(["feed", "close", "close early"])
    with ps.Engine(
        workers=rng.choice([1, 2]), mode=rng.choice(["state", "state", "threads"]),
        policy=rng.choice(["adaptive", "fcfs", "rr"]), chain=rng.choice(["auto", "off"]),
        block_rows=rng.choice([None, 7, 64]),
    ) as engine:  # fmt: skip
        feed = ps.PushSource(rng.choice([1, 4, 64]))
        source = engine.source(STREAM, feed)
        readers = [submit(rng, engine, source)]
        watch.add(engine, readers[0].query)
        accepted: list[int] = []

        def push() -> None:
            try:
                for number in range(count):
                    feed.push(numbers_from(number * rows, rows))
                    accepted.append(number)
                    time.sleep(0.0002)
            except ps.PenstockError:
                pass  # closed

        pusher = threading.Thread(target=push, daemon=True)
        pusher.start()
        for _ in range(rng.choice([1, 3, 6])):
            time.sleep(rng.random() * 0.01)
            try:
                reader = submit(rng, engine, source)
            except ps.SourceEndedError:
                break  # it has failed to come in time
            watch.add(engine, reader.query)
            readers.append(reader)
            if rng.random() < 0.3:
                leaver = rng.choice(readers[1:])
                leaver.left = leaver.left or rng.choice(["drain", "stop"])
                leaver.query.stop(drain=leaver.left == "drain")
        if end != "close early":
            pusher.join()
        if end == "feed":
            feed.close()
        else:
            source.close()
        for reader in readers:
            if reader.left != "stop":
                check(reader, len(accepted) * rows, rows, source)
        pusher.join()


def submit(rng: random.Random, engine: ps.Engine, source: ps.SharedSource) -> Reader:
    plan = rng.choice(list(PLANS))
    on_lag: Any = rng.choice(["wait", "wait", "shed"])
    return Reader(plan, engine.submit(PLANS[plan], source=source, sink="collect", on_lag=on_lag), on_lag)


def check(reader: Reader, pushed: int, rows: int, source: ps.SharedSource) -> None:
    """The account balances, and what was read has no gaps."""
    result = reader.query.result()
    metrics = reader.query.metrics()
    check_balance(metrics)
    if metrics["rows_in"] > source.metrics()["rows_in"]:
        raise Finding(f"{metrics['rows_in']} rows came in of {source.metrics()['rows_in']}")
    values = [row["v"] for row in result.to_pylist()]
    if metrics["rows_shed"] or reader.plan == "windows":
        check_windows(reader, result.to_pylist(), metrics)
        return
    step = 2 if reader.plan == "evens" else 1
    if not values:
        return
    if values != list(range(values[0], values[-1] + 1, step)):
        wanted = Counter(range(values[0], values[-1] + 1, step))
        lost, more = wanted - Counter(values), Counter(values) - wanted
        raise Finding(
            f"a query that came later lacks {dict(lost)}, has {dict(more)} too many, or in disorder"
        )
    if reader.plan != "evens" and metrics["rows_in"] != len(values):
        raise Finding(f"{metrics['rows_in']} rows came in, and {len(values)} went out")
    if not reader.left and reader.plan == "rows" and values[-1] != source.metrics()["rows_in"] - 1:
        raise Finding(f"a query ended at row {values[-1]} of {source.metrics()['rows_in']}")


def check_windows(reader: Reader, found: list[dict[str, Any]], metrics: dict[str, Any]) -> None:
    """Windows hold what came in; where nothing was shed, all but the first and the last are full."""
    if reader.plan != "windows":
        return
    if sum(row["v"] for row in found) != metrics["rows_contributed"]:
        raise Finding(f"windows hold {found}, and {metrics['rows_contributed']} rows contributed")
    inner = sorted((row["window_start"], row["v"]) for row in found)[1:-1]
    wrong = [one for one in inner if one[1] != SIZE]
    if not metrics["rows_shed"] and wrong:
        raise Finding(f"windows of a query that came later have holes: {wrong[:5]}")
