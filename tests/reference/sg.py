"""Readings of plugs, and the answers of the SG queries by SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.workloads import sg
from reference import sql
from reference.types import Value

DELAY_MS = 2000

# Rows of the same second are in the same windows: their totals stand for them, as an hour has many windows.
VIEWS = """
with seconds as (
    select plug, household, house, cast(floor(epoch_ms(timestamp) / 1000) as bigint) as second,
        sum(cast(value as double)) as total, count(*) as n
    from readings group by all
), all_plugs as (
    select second, sum(total) as total, sum(n) as n from seconds group by all
), sg1 as (
    select (second + nth - 3600) * 1000 as window_start, (second + nth) * 1000 as window_end,
        sum(total) / sum(n) as mean_value
    from all_plugs, range(1, 3601) as ends(nth) group by all
), sg2 as (
    select (second + nth - 128) * 1000 as window_start, (second + nth) * 1000 as window_end,
        plug, household, house, sum(total) / sum(n) as mean_value
    from seconds, range(1, 129) as ends(nth) group by all
), paired as (
    select sg2.*, sg1.mean_value as overall from sg2 join sg1 on sg2.window_end = sg1.window_end
), sg3 as (
    select * exclude (overall) from paired where mean_value > overall
)
"""


def readings(rows: int, seed: int, seconds: int = 100) -> pa.Table:
    """Half of them lie before 1970. Sums of values are exact: no mean is above another by rounding alone."""
    rng = np.random.default_rng(seed)
    times = rng.integers(-1000 * seconds, 1000 * seconds, rows)
    columns = {
        "timestamp": times[sql.arriving(rng, times, DELAY_MS)],
        "value": rng.integers(0, 8000, rows) / 8,
        "property": rng.integers(0, 2, rows),
        "plug": rng.integers(0, 3, rows),
        "household": rng.integers(0, 2, rows),
        "house": rng.integers(0, 4, rows),
    }
    return pa.table(columns).cast(pa.schema(sg.schema()))


def answer(query: str, readings: pa.Table) -> list[dict[str, Value]]:
    """What "sg1", "sg2" or "sg3" gives."""
    return sql.answer(f"{VIEWS} select * from {query}", {"readings": readings}, ["mean_value"])


def near_ties(readings: pa.Table) -> int:
    """How many rows of SG2 have a mean so near to that of SG1 that rounding could decide between them."""
    condition = "abs(mean_value - overall) <= 1e-9 * overall and mean_value != overall"
    [row] = sql.answer(f"{VIEWS} select count(*) as n from paired where {condition}", {"readings": readings})
    assert isinstance(row["n"], int)
    return row["n"]
