"""Long streams of rows with unique ids, and what must come of them: counts, sums and xors of ids, by numpy.

The naive reference is too slow for these. This oracle is as independent of the engine as that one is, and
knows only the few plans that are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import penstock as ps
from penstock import col

Integers = npt.NDArray[np.int64]

KEYS, GROUPS, WINDOW, DELAY = 40, 7, 500, 60
SCHEMA = pa.schema([("id", pa.int64()), ("t", pa.int64()), ("k", pa.int64())])
STREAM = ps.stream(SCHEMA, time="t", delay=DELAY)
KNOWN = [k for k in range(KEYS) if k % 4]
TABLE = pa.table({"k": KNOWN, "group": [k % GROUPS for k in KNOWN]})
HASH = (col("id") * 2_654_435_761) % 2**31
AUDIT = {"n": ps.count(), "ids": ps.sum("id"), "hashes": ps.sum(HASH)}

PLANS: Mapping[str, ps.Stream] = {
    "kept": STREAM.filter(HASH % 100 < 70).with_columns(double=col("id") * 2).select("id", "double"),
    "windows": STREAM.filter(col("k") % 5 != 0).window(ps.tumbling(WINDOW), by="k").agg(**AUDIT),
    "joined": STREAM.lookup(TABLE, on="k").window(ps.tumbling(WINDOW * 3), by="group").agg(**AUDIT),
}


@cache
def table(rows: int, seed: int) -> pa.Table:
    """Rows with scrambled ids, out of order by less and by more than the delay."""
    rng = np.random.default_rng(seed)
    strays = np.where(rng.random(rows) < 0.05, 5 * DELAY, DELAY)
    times = np.arange(rows) // 2 - (rng.random(rows) * strays).astype(np.int64) - rows // 4
    columns = [rng.permutation(rows).astype(np.int64), times, rng.integers(0, KEYS, rows)]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)


def hashed(ids: Integers) -> Integers:
    """What `HASH` gives."""
    return ids * 2_654_435_761 % 2**31


def late(times: Integers, size: int) -> npt.NDArray[np.bool_]:
    """Which rows come after the watermark has passed the end of their window."""
    watermarks = np.maximum.accumulate(times) - DELAY
    found = np.zeros(len(times), dtype=bool)
    found[1:] = times[1:] // size < watermarks[:-1] // size
    return found


def in_order(columns: Sequence[Integers]) -> Integers:
    """Rows as columns, sorted by all of them."""
    return np.stack(columns)[:, np.lexsort(list(columns))]


def grouped(starts: Integers, keys: Integers, ids: Integers) -> Integers:
    """Window, key, count, sum of ids and sum of hashed ids of each group."""
    groups, places = np.unique(np.stack([starts, keys]), axis=1, return_inverse=True)
    totals = np.zeros((3, groups.shape[1]), dtype=np.int64)
    for total, values in zip(totals, (np.ones_like(ids), ids, hashed(ids)), strict=True):
        np.add.at(total, places.ravel(), values)
    return in_order([*groups, *totals])


@cache
def expected(name: str, rows: int, seed: int) -> tuple[Integers, dict[str, int]]:
    """What a plan makes of the table, in order, and the account of what became of the rows that went in."""
    ids, times, keys = (table(rows, seed).column(column).to_numpy() for column in ("id", "t", "k"))
    kept, lost = hashed(ids) % 100 < 70, np.zeros(rows, dtype=bool)
    if name == "kept":
        answer = in_order([ids[kept], 2 * ids[kept]])
    else:
        size = WINDOW if name == "windows" else 3 * WINDOW
        kept = keys % 5 != 0 if name == "windows" else keys % 4 != 0
        by = keys if name == "windows" else keys % GROUPS
        lost = late(times, size)
        taken = kept & ~lost
        answer = grouped(times[taken] // size * size, by[taken], ids[taken])
    account = {
        "rows_in": rows, "rows_filtered": int((~kept).sum()), "rows_late": int((kept & lost).sum()),
        "rows_contributed": int((kept & ~lost).sum()), "rows_shed": 0, "rows_out": answer.shape[1],
    }  # fmt: skip
    return answer, account


def check(name: str, rows: int, seed: int, found: Any, metrics: Mapping[str, Any]) -> None:
    """What a plan made of the table is what it must make, and each row is accounted for."""
    answer, account = expected(name, rows, seed)
    assert {key: metrics[key] for key in account} == account, name
    given = pa.table(found)
    names = (
        ["id", "double"] if name == "kept" else ["window_start", given.column_names[2], "n", "ids", "hashes"]
    )
    result = in_order([given.column(column).to_numpy() for column in names])
    if name == "kept":
        audits = [(ids.size, ids.sum(), np.bitwise_xor.reduce(hashed(ids))) for ids in (answer[0], result[0])]
        assert audits[0] == audits[1], "count, sum and xor of ids"
    assert np.array_equal(answer, result), name
