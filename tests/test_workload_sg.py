"""The SG queries, against SQL: over random, generated and published rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.workloads import sg
from reference import sg as reference
from reference import sql
from reference.compare import assert_same_rows
from reference.engine import rows_of
from reference.options import run_one

QUERIES: dict[str, Callable[[], ps.Stream]] = {"sg1": sg.sg1, "sg2": sg.sg2, "sg3": sg.sg3}
PLUG = ("window_end", "plug", "household", "house")
KEYS = {"sg1": ("window_end",), "sg2": PLUG, "sg3": PLUG}
# Times that are near to each other, or hours apart.
TIMES = st.one_of(st.integers(-60_000, 60_000), st.integers(0, 4_000_000))
READINGS = sql.tables(
    sg.schema(), reference.DELAY_MS,
    TIMES, st.integers(0, 40).map(lambda eighths: eighths / 8), *[st.integers(0, 1)] * 4, most=12,
)  # fmt: skip


def check(query: str, readings: pa.Table, data: Any = None, **options: Any) -> int:
    result = run_one(QUERIES[query](), readings if data is None else data, **options)
    assert result.rows_late == 0
    rows = rows_of(result)
    assert_same_rows(reference.answer(query, readings), rows, KEYS[query])
    return len(rows)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("rows", "seconds"), [(3_000, 100), (300, 3_000)])
def test_same_as_sql(query: str, rows: int, seconds: int) -> None:
    assert check(query, reference.readings(rows, 1, seconds)) > 1_000


@pytest.mark.parametrize("query", QUERIES)
@given(readings=READINGS)
@settings(max_examples=settings().max_examples // 10)
def test_same_as_sql_over_any_rows(query: str, readings: pa.Table) -> None:
    check(query, readings)


@pytest.mark.parametrize("query", QUERIES)
def test_same_as_sql_over_generated_rows(query: str) -> None:
    readings = pa.table(sg.generate(5_000, seed=3, rate=40, out_of_order_ms=900, houses=1))
    assert reference.near_ties(readings) == 0
    assert check(query, readings)


@pytest.mark.parametrize(("query", "rows"), [("sg1", 3_683), ("sg2", 98_176), ("sg3", 16_059)])
def test_same_as_sql_over_the_published_readings(query: str, rows: int) -> None:
    readings = sg.read(sql.published("sg/smartgrid-data.txt.gz"))
    assert len(readings) == 33_628
    assert reference.near_ties(readings) == 0
    assert check(query, readings) == rows


@pytest.mark.parametrize(("chain", "workers"), list(product(["auto", "off"], [1, 2])))
@pytest.mark.parametrize("batch_rows", [1, 613])
def test_neither_batches_nor_workers_nor_chains_matter(batch_rows: int, chain: str, workers: int) -> None:
    readings = reference.readings(1_500, seed=4, seconds=20)
    for query in QUERIES:
        check(query, readings, readings.to_batches(batch_rows), chain=chain, workers=workers)


def test_generated_rows_are_of_the_declared_columns() -> None:
    assert pa.table(sg.generate(10)).schema == pa.schema(sg.schema())
    assert sg.readings().schema.names == sg.schema().names


def test_options_of_generated_rows() -> None:
    made = pa.table(sg.generate(2_000, rate=10, houses=3))
    assert set(made["house"].to_pylist()) == {0, 1, 2}
    assert made["timestamp"].cast(pa.int64())[-1].as_py() == 1_377_986_400_000 + 199_900


def test_the_readings_are_read_once() -> None:
    assert sum(" stream " in line for line in sg.sg3().explain().splitlines()) == 1


def plugs(*readings: tuple[int, float, int]) -> pa.Table:
    """Readings of a second, a value and a plug."""
    blank = dict.fromkeys(sg.schema().names, 0)
    rows = [blank | {"timestamp": at * 1000, "value": value, "plug": plug} for at, value, plug in readings]
    return pa.Table.from_pylist(rows, schema=pa.schema(sg.schema()))


def above(readings: pa.Table, end: int) -> dict[Any, tuple[Any, ...]]:
    """What SG3 gives for the windows that end at a second, by plug: the start of the window, and the mean."""
    rows = rows_of(sg.sg3().run(readings))
    return {
        row["plug"]: (row["window_start"], row["mean_value"])
        for row in rows
        if row["window_end"] == end * 1000
    }


def test_windows_that_end_at_the_same_time_are_compared() -> None:
    readings = plugs((0, 8.0, 1), (199, 2.0, 1), (200, 3.0, 2), (3_700, 1.0, 1))
    assert above(readings, 1) == {}, "one mean is not above itself"
    assert above(readings, 128) == {}
    assert above(readings, 129) == {}, "the value of plug 1 is over, and still in the hour"
    assert above(readings, 201) == {}, "the mean of the hour is above both"
    assert above(readings, 3_700) == {}, "both plugs are over"
    assert above(readings, 3_701) == {}, "2, 3 and 1 are in the hour, and 1 is below"
    readings = plugs((0, 8.0, 1), (3_599, 6.0, 2), (3_600, 7.0, 3))
    assert above(readings, 3_600) == {}, "the hour holds 8 and 6"
    assert above(readings, 3_601) == {3: (3_473_000, 7.0)}, "and now 6 and 7, as 8 is over"


def test_a_mean_that_equals_the_other_is_not_above_it() -> None:
    assert above(plugs((0, 1.0, 1), (0, 1.0, 2), (0, 3.0, 3), (0, -1.0, 4)), 1) == {3: (-127_000, 3.0)}
