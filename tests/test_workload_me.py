"""ME1, against SQL: over random, generated and published rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.workloads import me
from reference import me as reference
from reference import sql
from reference.compare import assert_same_rows
from reference.engine import rows_of
from reference.options import run_one

I32 = st.integers(-(2**31), 2**31 - 1)
READINGS = sql.tables(
    me.schema(), reference.DELAY_MS,
    st.integers(-100_000, 100_000), st.just(0), *[st.one_of(st.integers(0, 20_000), st.just(2**31 - 1))] * 3,
    *[I32] * 9,
)  # fmt: skip


def check(readings: pa.Table, data: Any = None, **options: Any) -> int:
    result = run_one(me.me1(), readings if data is None else data, **options)
    assert result.rows_late == 0
    rows = rows_of(result)
    assert_same_rows(reference.answer(readings), rows, ["window_end"])
    return len(rows)


@pytest.mark.parametrize("seed", [1, 2])
def test_same_as_sql(seed: int) -> None:
    assert check(reference.readings(5_000, seed)) > 200


@given(readings=READINGS)
@settings(max_examples=settings().max_examples // 5)
def test_same_as_sql_over_any_rows(readings: pa.Table) -> None:
    check(readings)


def test_same_as_sql_over_generated_rows() -> None:
    assert check(pa.table(me.generate(5_000, seed=3, rate=50, out_of_order_ms=900))) > 150


def test_same_as_sql_over_the_published_readings() -> None:
    readings = me.read(sql.published("me/DEBS2012-small.txt.gz"))
    assert len(readings) == 17_000
    assert check(readings) == 231


@pytest.mark.parametrize(("chain", "workers"), list(product(["auto", "off"], [1, 2])))
@pytest.mark.parametrize("batch_rows", [1, 613])
def test_neither_batches_nor_workers_nor_chains_matter(batch_rows: int, chain: str, workers: int) -> None:
    readings = reference.readings(1_500, seed=4)
    check(readings, readings.to_batches(batch_rows), chain=chain, workers=workers)


def test_generated_rows_are_of_the_declared_columns() -> None:
    assert pa.table(me.generate(10)).schema == pa.schema(me.schema())
    assert me.readings().schema.names == me.schema().names


def test_the_rate_of_generated_rows() -> None:
    times = pa.table(me.generate(201, rate=100))["timestamp"].cast(pa.int64())
    assert times[-1].as_py() - times[0].as_py() == 2_000
