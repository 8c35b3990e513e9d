"""Sensor readings that come out of order, too late, or not at all: averages per sensor and minute.

Shows event time, `delay=`, what becomes of late rows, and nulls. Needs pyarrow for making the data.
Run it with `python examples/sensor_windows.py`.
"""

import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta

import pyarrow as pa

import penstock as ps

NOON = datetime(2026, 3, 1, 12, 0)

SCHEMA = pa.schema({"at": pa.timestamp("ms"), "sensor": pa.int32(), "celsius": pa.float64()})

# Seconds after noon, sensor, temperature; in the order of arrival. A null is a reading that failed.
ARRIVALS: list[list[tuple[int, int, float | None]]] = [
    [(0, 1, 20.0), (5, 2, 30.0), (30, 1, 21.0), (20, 1, None)],
    [(65, 1, 22.0), (58, 2, 31.0), (70, 2, 32.0)],  # 58 s comes after 65 s: out of order, but in time
    [(150, 1, 23.0), (10, 2, 99.0), (155, 2, None)],  # 10 s comes when the watermark stands at 2:20: too late
]


def batches() -> Iterator[pa.RecordBatch]:
    """The readings, batch by batch, as they would come from a network."""
    for arrivals in ARRIVALS:
        rows = [
            {"at": NOON + timedelta(seconds=second), "sensor": sensor, "celsius": celsius}
            for second, sensor, celsius in arrivals
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def main() -> None:
    readings = ps.stream(SCHEMA, time="at", delay="10s")
    minutes = readings.window(ps.tumbling("1m"), by="sensor").agg(
        readings=ps.count(),
        valid=ps.count("celsius"),
        mean=ps.mean("celsius"),
        highest=ps.max("celsius"),
    )

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = minutes.run(batches())
    for warning in caught:
        print(f"{warning.category.__name__}: {warning.message}")
    print(f"late: {result.rows_late} of {result.rows_in} rows, by {result.late_by} at most")

    rows = sorted(result.to_pylist(), key=lambda row: (row["window_start"], row["sensor"]))
    for row in rows:
        share = f"{row['valid']} of {row['readings']}"
        print(f"{row['window_start']:%H:%M}  sensor {row['sensor']}  {share} valid, mean {row['mean']}")

    found = [(f"{row['window_start']:%H:%M}", *list(row.values())[2:]) for row in rows]
    assert found == [
        ("12:00", 1, 3, 2, 20.5, 21.0),
        ("12:00", 2, 2, 2, 30.5, 31.0),
        ("12:01", 1, 1, 1, 22.0, 22.0),
        ("12:01", 2, 1, 1, 32.0, 32.0),
        ("12:02", 1, 1, 1, 23.0, 23.0),
        ("12:02", 2, 1, 0, None, None),
    ]
    assert result.rows_late == 1
    assert [warning.category for warning in caught] == [ps.LateRowsWarning]

    # With a longer delay every window waits longer, and the late reading counts.
    patient = ps.stream(SCHEMA, time="at", delay=timedelta(minutes=3)).window(ps.tumbling("1m"), by="sensor")
    assert patient.agg(ps.count()).run(batches()).rows_late == 0


if __name__ == "__main__":
    main()
