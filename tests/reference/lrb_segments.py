"""The answers of LRB1 and LRB2 by SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.workloads import lrb
from reference import sql
from reference.types import Value

DELAY = 2

QUERIES = {
    "lrb1": """
        select cast(time + nth - 300 as bigint) as window_start, cast(time + nth as bigint) as window_end,
            xway, dir, seg, avg(speed) as mean_speed
        from reports, range(1, 301) as ends(nth) where type = 0
        group by all having avg(speed) < 40
    """,
    "lrb2": """
        select cast(time + nth - 30 as bigint) as window_start, cast(time + nth as bigint) as window_end,
            xway, dir, seg, count(distinct vid) as vehicles
        from reports, range(1, 31) as ends(nth) where type = 0
        group by all
    """,
}
APPROXIMATE = {"lrb1": ["mean_speed"], "lrb2": []}


def reports(rows: int, seed: int) -> pa.Table:
    """Few vehicles on few segments, so that many report twice from the same one; some rows are no reports."""
    rng = np.random.default_rng(seed)
    times = rng.integers(-50, 400, rows)
    columns = {name: np.full(rows, -1) for name in lrb.schema().names}
    columns |= {
        "time": times[sql.arriving(rng, times, DELAY)],
        "type": rng.choice([0, 0, 0, 2, 3], rows),
        "vid": rng.integers(0, 40, rows),
        "speed": rng.integers(0, 80, rows),
        "xway": rng.integers(0, 2, rows),
        "lane": rng.integers(0, 5, rows),
        "dir": rng.integers(0, 2, rows),
        "seg": rng.integers(0, 4, rows),
    }
    return pa.table(columns).cast(pa.schema(lrb.schema()))


def answer(query: str, reports: pa.Table) -> list[dict[str, Value]]:
    """What "lrb1" or "lrb2" gives."""
    return sql.answer(QUERIES[query], {"reports": reports}, APPROXIMATE[query])
