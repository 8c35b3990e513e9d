"""The CM queries, against SQL: over random, generated and published rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.workloads import cm
from reference import cm as reference
from reference import sql
from reference.compare import assert_same_rows
from reference.engine import rows_of
from reference.options import run_one

QUERIES: dict[str, Callable[[], ps.Stream]] = {"cm1": cm.cm1, "cm2": cm.cm2}
KEYS = {"cm1": ("window_end", "category"), "cm2": ("window_end", "job")}
EVENTS = sql.tables(
    cm.schema(), reference.DELAY_MS,
    st.integers(-100_000, 100_000), st.integers(0, 3), *[st.just(0)] * 2, st.integers(2, 4), st.just(0),
    st.integers(0, 2), st.just(0), st.floats(0, 1, width=32), *[st.just(0)] * 3,
)  # fmt: skip


def check(query: str, events: pa.Table, data: Any = None, **options: Any) -> int:
    result = run_one(QUERIES[query](), events if data is None else data, **options)
    assert result.rows_late == 0
    rows = rows_of(result)
    assert_same_rows(reference.answer(query, events), rows, KEYS[query])
    return len(rows)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_same_as_sql(query: str, seed: int) -> None:
    assert check(query, reference.events(5_000, seed)) > 300


@pytest.mark.parametrize("query", QUERIES)
@given(events=EVENTS)
@settings(max_examples=settings().max_examples // 5)
def test_same_as_sql_over_any_rows(query: str, events: pa.Table) -> None:
    check(query, events)


@pytest.mark.parametrize("query", QUERIES)
def test_same_as_sql_over_generated_rows(query: str) -> None:
    assert check(query, pa.table(cm.generate(5_000, seed=3, rate=50, out_of_order_ms=900, fail_share=0.1)))


@pytest.mark.parametrize(("query", "rows"), [("cm1", 2701), ("cm2", 3407)])
def test_same_as_sql_over_the_published_trace(query: str, rows: int) -> None:
    events = cm.read(sql.published("cm/google-cluster-data.txt.gz"))
    assert len(events) == 16_385
    assert check(query, events) == rows


@pytest.mark.parametrize(("chain", "workers"), list(product(["auto", "off"], [1, 2])))
@pytest.mark.parametrize("batch_rows", [1, 613])
def test_neither_batches_nor_workers_nor_chains_matter(batch_rows: int, chain: str, workers: int) -> None:
    events = reference.events(1_500, seed=4)
    for query in QUERIES:
        check(query, events, events.to_batches(batch_rows), chain=chain, workers=workers)


def test_generated_rows_are_of_the_declared_columns() -> None:
    assert pa.table(cm.generate(10)).schema == pa.schema(cm.schema())
    assert cm.events().schema.names == cm.schema().names


def test_options_of_generated_rows() -> None:
    made = pa.table(cm.generate(2_000, rate=10, jobs=5, zipf=0.0, fail_share=1.0))
    assert set(made["event_type"].to_pylist()) == {cm.FAIL}
    assert len(set(made["job"].to_pylist())) == 5
    assert made["timestamp"].cast(pa.int64())[-1].as_py() == 199_900


def test_an_event_counts_for_a_minute() -> None:
    """And in no window that ends when it happens."""
    row = dict.fromkeys(cm.schema().names, 0) | {"timestamp": 5_000, "event_type": cm.FAIL, "cpu": 0.5}
    event = pa.Table.from_pylist([row], schema=pa.schema(cm.schema()))
    for query in QUERIES.values():
        rows = rows_of(query().run(event))
        assert sorted(row["window_end"] for row in rows) == list(range(6_000, 66_000, 1_000))  # type: ignore[type-var]
        assert {row["total_cpu"] for row in rows} == {0.5}
