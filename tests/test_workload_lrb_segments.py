"""LRB1 and LRB2, the short queries over segments, against SQL."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.workloads import lrb
from reference import lrb_segments as reference
from reference import sql
from reference.compare import assert_same_rows
from reference.engine import rows_of
from reference.options import run_one

QUERIES: dict[str, Callable[[], ps.Stream]] = {"lrb1": lrb.lrb1, "lrb2": lrb.lrb2}
KEYS = ("window_end", "xway", "dir", "seg")
BIT = st.integers(0, 1)
REPORTS = sql.tables(
    lrb.schema(), reference.DELAY,
    st.integers(-100, 300), st.sampled_from([0, 0, 0, 2]), st.integers(0, 3),
    st.sampled_from([0, 39, 40, 41, 80]), BIT, BIT, BIT, BIT, *[st.just(0)] * 7, most=20,
)  # fmt: skip


def check(query: str, reports: pa.Table, data: Any = None, **options: Any) -> int:
    result = run_one(QUERIES[query](), reports if data is None else data, **options)
    assert result.rows_late == 0
    rows = rows_of(result)
    assert_same_rows(reference.answer(query, reports), rows, KEYS)
    return len(rows)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_same_as_sql(query: str, seed: int) -> None:
    assert check(query, reference.reports(3_000, seed)) > 1_000


@pytest.mark.parametrize("query", QUERIES)
@given(reports=REPORTS)
@settings(max_examples=settings().max_examples // 5)
def test_same_as_sql_over_any_rows(query: str, reports: pa.Table) -> None:
    check(query, reports)


@pytest.mark.parametrize("query", QUERIES)
def test_same_as_sql_over_generated_rows(query: str) -> None:
    made = lrb.generate(3_000, seed=3, minutes=15, accident_every=60, queries_every=10, out_of_order_s=1)
    assert check(query, pa.table(made)) > 300


@pytest.mark.parametrize(("query", "rows"), [("lrb1", 70_916), ("lrb2", 86_248)])
def test_same_as_sql_over_the_published_reports(query: str, rows: int) -> None:
    reports = lrb.read(sql.published("lrb/lrb-data-small-ht.txt.gz"))
    assert len(reports) == 16_384
    assert check(query, reports) == rows


@pytest.mark.parametrize(("chain", "workers"), list(product(["auto", "off"], [1, 2])))
@pytest.mark.parametrize("batch_rows", [1, 613])
def test_neither_batches_nor_workers_nor_chains_matter(batch_rows: int, chain: str, workers: int) -> None:
    reports = reference.reports(600, seed=4)
    for query in QUERIES:
        check(query, reports, reports.to_batches(batch_rows), chain=chain, workers=workers)


def report(**cells: int) -> dict[str, int]:
    return dict.fromkeys(lrb.schema().names, 0) | cells


def rows(query: ps.Stream, *reports: dict[str, int]) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(list(reports), schema=pa.schema(lrb.schema()))
    return sorted(rows_of(query.run(table)), key=lambda row: (row["seg"], row["window_end"]))


def test_forty_miles_per_hour_are_not_slow() -> None:
    found = rows(lrb.lrb1(), report(seg=1, speed=39), report(seg=2, speed=40), report(seg=3, speed=41))
    assert [(row["window_start"], row["window_end"]) for row in found] == [
        (n - 300, n) for n in range(1, 301)
    ]
    assert {(row["seg"], row["mean_speed"]) for row in found} == {(1, 39.0)}


def test_a_vehicle_that_reports_twice_counts_once_in_each_segment() -> None:
    found = rows(
        lrb.lrb2(), report(vid=1), report(vid=1, seg=1), report(vid=1, time=5), report(vid=2, time=5)
    )
    counts = {(row["seg"], row["window_end"]): row["vehicles"] for row in found}
    assert counts == {
        **{(0, end): 1 for end in range(1, 6)},
        **{(0, end): 2 for end in range(6, 36)},
        **{(1, end): 1 for end in range(1, 31)},
    }
    assert all(row["window_end"] - row["window_start"] == 30 for row in found)
