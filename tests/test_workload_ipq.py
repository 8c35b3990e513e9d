"""The IPQ queries, against SQL: over random and generated rows."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.workloads import ipq
from reference import ipq as reference
from reference import sql
from reference.compare import assert_same_rows
from reference.engine import rows_of
from reference.options import run_one

NAMES: tuple[Literal["revenue", "logs"], ...] = ("revenue", "logs")
READS: dict[str, tuple[str, ...]] = dict.fromkeys(["ipq1", "ipq2", "ipq3"], ("revenue",)) | {"ipq4": NAMES}
KEYS = dict.fromkeys(READS, "key") | {"ipq3": "other_key"}
TIMES, FEW = st.integers(-3_000, 5_000), st.integers(0, 3)
REVENUE = sql.tables(
    ipq.schema("revenue"), reference.DELAY_MS, TIMES, FEW, FEW, st.integers(-(10**15), 10**15)
)
LOGS = sql.tables(ipq.schema("logs"), reference.DELAY_MS, TIMES, FEW, FEW)


def pipeline(query: str, window: int, slide: int) -> ps.Stream:
    if query == "ipq2":
        return ipq.ipq2(f"{window}ms", f"{slide}ms")
    return {"ipq1": ipq.ipq1, "ipq3": ipq.ipq3, "ipq4": ipq.ipq4}[query](f"{window}ms")


def check(
    query: str,
    tables: dict[str, pa.Table],
    window: int = 1000,
    slide: int = 500,
    batch_rows: int | None = None,
    **options: Any,
) -> int:
    data = {name: tables[name].to_batches(batch_rows) for name in READS[query]}
    result = run_one(pipeline(query, window, slide), data, **options)
    assert result.rows_late == 0
    rows = rows_of(result)
    assert_same_rows(reference.answer(query, tables, window, slide), rows, ("window_end", KEYS[query]))
    return len(rows)


@pytest.mark.parametrize("query", READS)
@pytest.mark.parametrize(("window", "slide"), [(1000, 500), (1000, 250), (10_000, 5_000)])
def test_same_as_sql(query: str, window: int, slide: int) -> None:
    assert check(query, reference.tables(4_000, seed=1), window, slide) > 80


@pytest.mark.parametrize("query", READS)
@given(revenue=REVENUE, logs=LOGS)
@settings(max_examples=settings().max_examples // 5)
def test_same_as_sql_over_any_rows(query: str, revenue: pa.Table, logs: pa.Table) -> None:
    check(query, {"revenue": revenue, "logs": logs})


@pytest.mark.parametrize("query", READS)
@pytest.mark.parametrize("variable", [False, True])
def test_same_as_sql_over_generated_rows(query: str, variable: bool) -> None:
    tables: dict[str, pa.Table] = {
        name: pa.table(
            ipq.generate(
                name, 5_000, seed=3, variable=variable, skew=200, keys=100, zipf=1.0, out_of_order_ms=900
            )
        )
        for name in NAMES
    }
    assert check(query, tables)


@pytest.mark.parametrize(("chain", "workers"), list(product(["auto", "off"], [1, 2])))
@pytest.mark.parametrize("batch_rows", [1, 613])
def test_neither_batches_nor_workers_nor_chains_matter(batch_rows: int, chain: str, workers: int) -> None:
    tables = reference.tables(1_500, seed=4)
    for query in READS:
        check(query, tables, batch_rows=batch_rows, chain=chain, workers=workers)


def test_the_usual_windows() -> None:
    tables = reference.tables(500, seed=5)
    for query, usual in (("ipq1", ipq.ipq1), ("ipq2", ipq.ipq2), ("ipq3", ipq.ipq3), ("ipq4", ipq.ipq4)):
        assert usual().explain() == pipeline(query, 1000, 500).explain()
        assert check(query, tables)


@pytest.mark.parametrize("table", NAMES)
def test_generated_rows_are_of_the_declared_columns(table: Literal["revenue", "logs"]) -> None:
    assert pa.table(ipq.generate(table, 10)).schema == pa.schema(ipq.schema(table))


def test_streams_have_the_declared_columns() -> None:
    assert ipq.revenue().schema.names == ipq.schema("revenue").names
    assert ipq.logs().schema.names == ipq.schema("logs").names


def test_options_of_generated_rows() -> None:
    made = pa.table(ipq.generate("revenue", 2_000, rate=100, keys=3))
    assert set(made["key"].to_pylist()) == {0, 1, 2}
    assert made["timestamp"].cast(pa.int64())[-1].as_py() == 19_990
    with pytest.raises(ValueError, match="source"):
        ipq.generate("logs", 10, source=8)
