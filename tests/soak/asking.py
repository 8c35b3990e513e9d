"""A watermark function is asked about each batch once, in order, however long the batch has to wait."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pyarrow as pa

import penstock as ps
from soak.leftovers import Finding
from soak.watch import Watch


def asked_once(rng: random.Random, watch: Watch) -> None:
    """Batches wait for a source that is held, for results that nobody reads, or for a slow sink."""
    seen: list[int] = []

    def said(batch: ps.Batch) -> int:
        seen.append(pa.table(batch)["t"][0].as_py())
        return seen[-1] - 5

    # Nothing else may hold batches up for long: each is a window of its own, in small blocks.
    stream = ps.stream({"t": "int64", "v": "int64"}, time="t", watermark=said)
    plan = stream if rng.random() < 0.5 else stream.window(ps.tumbling(1)).agg(n=ps.count())
    count, rows = rng.choice([5, 30]), rng.choice([1, 2_000])
    batches = [
        pa.record_batch({"t": pa.array([n] * rows, pa.int64()), "v": pa.array(range(rows), pa.int64())})
        for n in range(count)
    ]
    capacity, pulled = rng.choice([1, 2, 4]), rng.random() < 0.3
    with ps.Engine(workers=rng.choice([1, 2]), block_rows=rng.choice([None, 64])) as engine:
        source = ps.PushSource(capacity)
        data: Any = iter(batches) if pulled else source
        way = rng.choice(["held", "unread", "slow"])
        given: Any = engine.source(stream, data, hold=True) if way == "held" else data
        sink: Any = {"held": "discard", "unread": None, "slow": lambda batch: time.sleep(0.02)}[way]
        query = engine.submit(plan, source=given, sink=sink)
        watch.add(engine)

        def push() -> None:
            for batch in batches:
                source.push(batch)
            source.close()

        pusher = threading.Thread(target=push, daemon=True)
        if not pulled:
            pusher.start()
        time.sleep(0.3)
        if way == "held":
            given.start()
        watch.add(engine, query)
        if way == "unread":
            for _ in query.results():
                pass
        query.wait()
    if seen != list(range(count)):
        raise Finding(f"the watermark function was asked about {len(seen)} batches of {count}: {seen[:60]}")
