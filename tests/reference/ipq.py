"""Revenue and logs, and the answers of the IPQ queries by SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.workloads import ipq
from reference import sql
from reference.types import Value

DELAY_MS = 2000

SUMS = """
select (slot + nth) * $slide - $window as window_start, (slot + nth) * $slide as window_end, key,
    cast(sum(revenue) as bigint) as total_revenue
from (select *, cast(floor(epoch_ms(timestamp) / $slide) as bigint) as slot from revenue),
    range(1, $window // $slide + 1) as ends(nth)
group by all
"""
SLOT = "cast(floor(epoch_ms(timestamp) / $window) as bigint)"
QUERIES = {
    "ipq1": SUMS.replace("$slide", "$window"),
    "ipq2": SUMS,
    "ipq3": f"""
        select {SLOT} * $window as window_start, window_start + $window as window_end, other_key,
            count(*) as events
        from revenue group by all
    """,
    "ipq4": f"""
        select slot * $window as window_start, (slot + 1) * $window as window_end, key, count(*) as pairs
        from (select key, {SLOT} as slot from revenue) join (select key, {SLOT} as slot from logs)
            using (key, slot)
        group by all
    """,
}


def tables(rows: int, seed: int) -> dict[str, pa.Table]:
    """The tables "revenue" and "logs": they begin before 1970, and some keys are in one of them only."""
    rng = np.random.default_rng(seed)

    def times() -> sql.Numbers:
        made = rng.integers(-5_000, 15_000, rows)
        return made[sql.arriving(rng, made, DELAY_MS)]

    revenue = {
        "timestamp": times(),
        "key": rng.integers(0, 60, rows),
        "other_key": rng.integers(0, 100, rows),
        "revenue": rng.integers(-5, 500, rows),
    }
    logs = {"timestamp": times(), "key": rng.integers(30, 90, rows), "value": rng.integers(0, 1000, rows)}
    return {
        "revenue": pa.table(revenue).cast(pa.schema(ipq.schema("revenue"))),
        "logs": pa.table(logs).cast(pa.schema(ipq.schema("logs"))),
    }


def answer(
    query: str, tables: dict[str, pa.Table], window: int = 1000, slide: int = 500
) -> list[dict[str, Value]]:
    """What "ipq1" to "ipq4" give, for windows of so many milliseconds; the slide divides them."""
    text = QUERIES[query].replace("$window", str(window)).replace("$slide", str(slide))
    return sql.answer(text, tables)
