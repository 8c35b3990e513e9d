"""Events of a cluster, and the answers of the CM queries by SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.workloads import cm
from reference import sql
from reference.types import Value

DELAY_MS = 2000

QUERY = """
with kept as (
    select {key}, cpu, cast(floor(epoch_ms(timestamp) / 1000) as bigint) as second
    from events where {condition}
)
select (second + nth - 60) * 1000 as window_start, (second + nth) * 1000 as window_end, {key},
    sum(cast(cpu as double)) as total_cpu
from kept, range(1, 61) as ends(nth) group by all
"""
QUERIES = {
    "cm1": QUERY.format(key="category", condition="true"),
    "cm2": QUERY.format(key="job", condition="event_type = 3"),
}


def events(rows: int, seed: int) -> pa.Table:
    """They begin before 1970, and have a pause of minutes."""
    rng = np.random.default_rng(seed)
    times = rng.integers(-100_000, 100_000, rows)
    times = np.where(times > 50_000, times + 200_000, times)
    columns = {
        "timestamp": times[sql.arriving(rng, times, DELAY_MS)],
        "job": rng.integers(0, 20, rows) + 6_000_000_000,
        "task": rng.integers(0, 4000, rows),
        "machine": rng.integers(-1, 100, rows),
        "event_type": rng.integers(0, 6, rows),
        "user": rng.integers(0, 512, rows),
        "category": rng.integers(0, 4, rows),
        "priority": rng.integers(0, 12, rows),
        "cpu": rng.random(rows),
        "ram": rng.random(rows),
        "disk": rng.random(rows),
        "constraints": rng.integers(0, 2, rows),
    }
    return pa.table(columns).cast(pa.schema(cm.schema()))


def answer(query: str, events: pa.Table) -> list[dict[str, Value]]:
    """What "cm1" or "cm2" gives."""
    return sql.answer(QUERIES[query], {"events": events}, ["total_cpu"])
