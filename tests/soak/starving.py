"""Nobody starves: whoever has rows gets a share of the workers, whatever else runs."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock import col
from soak.leftovers import Finding
from soak.watch import Watch

STREAM = ps.stream({"t": "int64", "k": "int64", "v": "int64"}, time="t")
PLANS = {
    "filter": STREAM.filter(col("v") % 7 == 0),
    "window": STREAM.window(ps.tumbling(10_000), by="k").agg(n=ps.count()),
    "chain": STREAM.filter(col("v") % 3 != 0).with_columns(w=col("v") * 2).filter(col("w") > 10),
}
LETTERS = STREAM.filter(60 // (col("v") % 1_000) >= 0)
"""Rejects one row of a thousand."""
FUNCTION = STREAM.map_batches(lambda batch: batch)
SMALLEST_SHARE = 0.05
"""Of what would be a query's by rights, had it been shared out evenly."""


def table(rows: int) -> pa.Table:
    numbers = np.arange(rows)
    return pa.table({"t": numbers, "k": numbers % 13, "v": numbers})


def draw_engine(rng: random.Random, workers: tuple[int, ...] = (1, 1, 2)) -> ps.Engine:
    options: dict[str, Any] = {"policy": rng.choice(["adaptive", "fcfs", "rr"])}
    if rng.random() < 0.3:
        options["chain"] = "off"
    return ps.Engine(workers=rng.choice(workers), **options)


def submit_any(rng: random.Random, engine: ps.Engine, source: Any, sink: Any) -> ps.Query:
    """A query of any kind: also one that rejects rows, and one with a function."""
    name = rng.choice([*PLANS, "letters", "letters", "function"])
    if name == "letters":
        return engine.submit(LETTERS, source=source, sink=sink, on_error=lambda batch: None)
    plan = FUNCTION if name == "function" else PLANS[name]
    return engine.submit(plan, source=source, sink=sink, strategy=rng.choice(["auto", "merge", "exchange"]))


def check_counted(query: ps.Query, rows: int) -> None:
    """Rows that were pushed wait somewhere until they have come in: those of the batch at hand, too."""
    # First what waits: rows that come in meanwhile count twice rather than not at all.
    pending = sum(int(task["pending_rows"]) for task in query.metrics()["tasks"])
    came = query.metrics()["rows_in"]
    if pending + came < rows:
        raise Finding(f"of {rows:,} rows that were pushed {came:,} came in, and only {pending:,} are pending")


def busy_seconds(query: ps.Query) -> float:
    return sum(float(task["seconds"]) for task in query.metrics()["tasks"])


def beside_replays(rng: random.Random, watch: Watch) -> None:
    """One large push beside replays that never end: it gets its share, and comes to its end."""
    with draw_engine(rng) as engine:
        others = [
            engine.submit(
                PLANS[rng.choice(list(PLANS))], source=ps.replay(table(50_000), rounds=None), sink="discard"
            )
            for _ in range(rng.choice([1, 2, 3, 5]))
        ]
        while any(query.metrics()["rows_in"] == 0 for query in others):
            time.sleep(0.001)
        source = ps.PushSource()
        shares = rng.random() < 0.25
        given: Any = engine.source(STREAM, source) if shares else source
        query = submit_any(rng, engine, given, "discard")
        watch.add(engine, query, *others)
        rows = rng.choice([500_000, 2_000_000])
        before = [busy_seconds(other) for other in others]
        source.push(table(rows))
        if rng.random() < 0.3:
            source.close()
        while not query.wait(0.01):
            if not shares:
                check_counted(query, rows)
            if query.metrics()["rows_in"] == rows:
                source.close()
            mine = busy_seconds(query)
            theirs = sum(busy_seconds(other) for other in others) - sum(before)
            fair = (mine + theirs) / (len(others) + 1)
            if theirs > 3.0 and mine < SMALLEST_SHARE * fair:
                raise Finding(
                    f"a query with {rows:,} rows to do got {mine:.4f} s of the workers and took "
                    f"{query.metrics()['rows_in']:,} rows, while {len(others)} others got {theirs:.1f} s"
                )


def alike(rng: random.Random, watch: Watch) -> None:
    """Queries that are alike come on alike."""
    with draw_engine(rng, (1, 2)) as engine:
        plan = PLANS[rng.choice(["filter", "chain"])]
        queries = [
            engine.submit(plan, source=ps.replay(table(50_000), rounds=None), sink="discard")
            for _ in range(rng.choice([2, 4]))
        ]
        watch.add(engine, *queries)
        while sum(map(busy_seconds, queries)) < 0.2:
            time.sleep(0.02)
        before = list(map(busy_seconds, queries))
        while sum(map(busy_seconds, queries)) - sum(before) < 1.0:
            time.sleep(0.05)
        shares = [after - least for after, least in zip(map(busy_seconds, queries), before, strict=True)]
        if min(shares) < SMALLEST_SHARE * sum(shares) / len(shares):
            raise Finding(f"queries that are alike got {[round(share, 4) for share in shares]} s")


def many_small(rng: random.Random, watch: Watch) -> None:
    """Many small queries beside one that never ends: all of them come to their end."""
    with draw_engine(rng, (1, 2, 4)) as engine:
        endless = engine.submit(
            PLANS[rng.choice(list(PLANS))], source=ps.replay(table(20_000), rounds=None), sink="discard"
        )
        watch.add(engine, endless)
        queries = []
        for _ in range(rng.randrange(5, 40)):
            rows = rng.choice([1, 100, 5_000])
            data: Any = table(rows)
            if rng.random() < 0.5:
                data = data.to_batches(max_chunksize=max(1, rows // 7))
            query = submit_any(rng, engine, data, "collect")
            watch.add(engine, query)
            queries.append((query, rows))
        for query, rows in queries:
            query.wait()
            if query.metrics()["rows_in"] != rows:
                raise Finding(f"{query.metrics()['rows_in']} rows came in of {rows}")
