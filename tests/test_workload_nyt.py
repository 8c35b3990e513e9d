"""The NYT query, against SQL."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.workloads import nyt
from reference import nyt as reference
from reference.compare import assert_same_rows
from reference.engine import rows_of
from reference.options import run_one
from reference.sizes import SMALLER

ROWS = 200_000 // SMALLER
KEYS = ("window_start", "pickup_cell")
VARIANTS: dict[str, tuple[ps.Window | None, int, int]] = {
    "tumbling": (None, 2000, 2000),
    "sliding": (ps.sliding("2s", "1s"), 2000, 1000),
}


def check(trips: pa.Table, variant: str, data: Any = None, **options: Any) -> None:
    window, size, slide = VARIANTS[variant]
    expected = reference.answer(trips, size, slide)
    result = run_one(nyt.query(window=window), trips if data is None else data, **options)
    assert result.rows_late == 0
    assert_same_rows(expected, rows_of(result), KEYS)


def test_the_generator_is_of_the_declared_columns() -> None:
    assert reference.trips(10, seed=1).schema == pa.schema(nyt.schema())


def test_the_generator_makes_what_the_query_must_tell_apart() -> None:
    trips = reference.trips(20_000, seed=1)
    expected = reference.answer(trips)
    counted = sum(row["trips"] for row in expected if isinstance(row["trips"], int))
    assert 2_000 < counted < 10_000
    assert any(isinstance(row["window_start"], int) and row["window_start"] < 0 for row in expected)
    cells = {row["pickup_cell"] for row in expected}
    assert any(isinstance(cell, int) and cell <= 600 for cell in cells), "the first row of the grid"
    assert any(isinstance(cell, int) and cell > 599 * 600 for cell in cells), "the last one"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_same_as_sql(variant: str, seed: int) -> None:
    check(reference.trips(ROWS, seed), variant)


@pytest.mark.slow
@pytest.mark.skipif(SMALLER > 1, reason="once is enough")
def test_same_as_sql_over_a_million_rows() -> None:
    check(reference.trips(1_000_000, seed=3, per_second=20_000), "tumbling")


@pytest.mark.parametrize(("chain", "workers"), list(product(["auto", "off"], [1, 2])))
@pytest.mark.parametrize("batch_rows", [1, 613, 10_000])
def test_neither_batches_nor_workers_nor_chains_matter(batch_rows: int, chain: str, workers: int) -> None:
    trips = reference.trips(3_000, seed=4)
    for variant in VARIANTS:
        check(trips, variant, trips.to_batches(batch_rows), chain=chain, workers=workers)


@pytest.mark.parametrize(
    ("latitude", "longitude", "cell"),
    [
        (41.474937, -74.913583, 1),
        (41.474937, -74.913583 + reference.DEGREES_EAST, 2),
        (41.474937 - reference.DEGREES_SOUTH, -74.913583, 601),
        (41.474937, -74.913583 + 599 * reference.DEGREES_EAST, 600),
        (41.474937 - 599 * reference.DEGREES_SOUTH, -74.913583 + 599 * reference.DEGREES_EAST, 360_000),
        (41.474937 + 0.6 * reference.DEGREES_SOUTH, -74.913583, None),
        (41.474937, -74.913583 - 0.6 * reference.DEGREES_EAST, None),
        (41.474937 - 600 * reference.DEGREES_SOUTH, -74.913583, None),
        (41.474937, -74.913583 + 600 * reference.DEGREES_EAST, None),
        (float("nan"), -74.913583, None),
        (41.474937, 1e300, None),
    ],
)
def test_cells_by_hand(latitude: float, longitude: float, cell: int | None) -> None:
    """The place counts as either end of a trip whose other end lies on the grid."""
    place = {"latitude": latitude, "longitude": longitude}
    first = {"latitude": 41.474937, "longitude": -74.913583}
    cells = []
    for pickup, dropoff in ((place, first), (first, place)):
        trip: dict[str, Any] = dict.fromkeys(nyt.schema().names)
        trip |= {"vendor_id": "VTS", "trip_distance": 2.0, "dropoff_datetime": 0}
        trip |= {f"pickup_{name}": value for name, value in pickup.items()}
        trip |= {f"dropoff_{name}": value for name, value in dropoff.items()}
        result = nyt.query().run(pa.Table.from_pylist([trip], schema=pa.schema(nyt.schema())))
        cells.append([row["pickup_cell"] for row in result.to_pylist()])
    assert cells == ([[cell], [1]] if cell is not None else [[], []])
