"""Readings of a plant, and the answer of ME1 by SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.workloads import me
from reference import sql
from reference.types import Value

DELAY_MS = 2000
PHASES = ("mf01", "mf02", "mf03")

ANSWER = """
with placed as (select *, cast(floor(epoch_ms(timestamp) / 1000) as bigint) as second from readings)
select (second + nth - 60) * 1000 as window_start, (second + nth) * 1000 as window_end,
    avg(mf01) as mean_mf01, avg(mf02) as mean_mf02, avg(mf03) as mean_mf03
from placed, range(1, 61) as ends(nth) group by window_start, window_end
"""


def readings(rows: int, seed: int) -> pa.Table:
    """They begin before 1970, and have a pause of minutes."""
    rng = np.random.default_rng(seed)
    times = rng.integers(-60_000, 60_000, rows)
    times = np.where(times > 20_000, times + 200_000, times)
    columns = {name: rng.integers(0, 20_000, rows) for name in me.schema().names}
    columns["timestamp"] = times[sql.arriving(rng, times, DELAY_MS)]
    return pa.table(columns).cast(pa.schema(me.schema()))


def answer(readings: pa.Table) -> list[dict[str, Value]]:
    """What ME1 gives."""
    return sql.answer(ANSWER, {"readings": readings}, [f"mean_{phase}" for phase in PHASES])
