"""Taxi trips, and the answer of the NYT query by SQL."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from reference.aggregates import Approximate
from reference.engine import rows_of
from reference.types import Value

DELAY_MS = 2000
NORTH, WEST = 41.474937, -74.913583
DEGREES_SOUTH, DEGREES_EAST = 250 / 111_194.93, 250 / 83_312.3009533086
"""What a cell measures."""


def trips(rows: int, seed: int, per_second: int = 1000) -> pa.Table:
    """Trips from before 1970 on, out of order by up to the delay.

    Of the places, some lie on the edges and centres of cells all over the grid, some far outside, some are
    unknown. Of the distances, some are exactly a mile. Of the times, some are those at which windows begin.
    """
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(-20_000, -20_000 + rows * 1000 // per_second, rows))
    ends = np.where(rng.random(rows) < 0.02, ends // 2000 * 2000, ends)
    ends = ends[np.argsort(ends + rng.integers(0, DELAY_MS + 1, rows), kind="stable")]
    took = rng.integers(60, 3600, rows)
    distance = np.where(rng.random(rows) < 0.05, 1.0, np.round(rng.exponential(2.5, rows), 2))

    def degrees(first: float, step: float, typical: float, other: float) -> pa.Array:
        place = first + step * (typical + rng.normal(0, 6, rows))
        kind = rng.random(rows)
        edges = first + step * (rng.choice([-1, 0, 1, 300, 598, 599, 600], rows) + rng.choice([0, 0.5], rows))
        place = np.where(kind < 0.10, edges, place)
        place = np.where((kind >= 0.10) & (kind < 0.13), rng.choice([0.0, np.nan, other], rows), place)
        return pa.array(place, mask=kind > 0.99)

    def words(choices: list[str]) -> pa.Array:
        return pa.array(np.array(choices, dtype=object)[rng.integers(0, len(choices), rows)], pa.string())

    amounts = ("fare_amount", "surcharge", "mta_tax", "tip_amount", "tolls_amount", "total_amount")
    return pa.table(
        {
            "medallion": words([f"medallion {n}" for n in range(500)]),
            "hack_license": words([f"license {n}" for n in range(700)]),
            "vendor_id": words(["VTS", "CMT"]),
            "pickup_datetime": pa.array(ends - took * 1000, pa.timestamp("ms")),
            "dropoff_datetime": pa.array(ends, pa.timestamp("ms")),
            "trip_time_in_secs": took,
            "trip_distance": distance,
            "pickup_longitude": degrees(WEST, DEGREES_EAST, 305, 1e300),
            "pickup_latitude": degrees(NORTH, -DEGREES_SOUTH, 322, -90.0),
            "dropoff_longitude": degrees(WEST, DEGREES_EAST, 308, -180.0),
            "dropoff_latitude": degrees(NORTH, -DEGREES_SOUTH, 318, 1e300),
            "payment_type": words(["CSH", "CRD"]),
            **{name: np.round(rng.exponential(5.0, rows), 2) for name in amounts},
        }
    )


# Numbers with an exponent are DOUBLE in this dialect; without one they would be decimals.
ANSWER = """
with placed as (
    select
        epoch_ms(dropoff_datetime) as ms, vendor_id, trip_distance,
        floor((4.1474937e1 - pickup_latitude) * 1.1119493e5 / 2.5e2 + 5e-1) + 1 as pickup_row,
        floor((pickup_longitude + 7.4913583e1) * 8.33123009533086e4 / 2.5e2 + 5e-1) + 1 as pickup_column,
        floor((4.1474937e1 - dropoff_latitude) * 1.1119493e5 / 2.5e2 + 5e-1) + 1 as dropoff_row,
        floor((dropoff_longitude + 7.4913583e1) * 8.33123009533086e4 / 2.5e2 + 5e-1) + 1 as dropoff_column
    from trips
), kept as (
    select *, try_cast((pickup_row - 1) * 600 + pickup_column as bigint) as pickup_cell
    from placed
    where vendor_id = 'VTS' and trip_distance > 1
        and pickup_row between 1 and 600 and pickup_column between 1 and 600
        and dropoff_row between 1 and 600 and dropoff_column between 1 and 600
), ends as (
    select *, unnest(range(1, $size // $slide + 1)) as nth from kept
), windowed as (
    select *, cast((floor(ms / $slide) + nth) * $slide as bigint) as window_end from ends
)
select
    window_end - $size as window_start, window_end, pickup_cell,
    count(*) as trips, avg(trip_distance) as mean_distance
from windowed group by window_end, pickup_cell
"""


def answer(trips: pa.Table, size: int = 2000, slide: int = 2000) -> list[dict[str, Value]]:
    """What the query gives for windows of so many milliseconds; the slide divides the size."""
    with duckdb.connect() as connection:
        connection.register("trips", trips)
        rows = rows_of(connection.sql(ANSWER, params={"size": size, "slide": slide}).to_arrow_table())
    for row in rows:
        mean = row["mean_distance"]
        assert isinstance(mean, float)
        row["mean_distance"] = Approximate(mean, abs(mean))
    return rows
