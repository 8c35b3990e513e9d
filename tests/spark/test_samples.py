"""What data is checked with: many windows, out of order, and some of it late, for any number of rows."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.spark.samples import SAMPLES, sample_options
from penstock.workloads import catalog

# The column with the time of each workload, its ticks per second, and the longest window of its queries.
TIMES: Mapping[str, tuple[str, int, int]] = {
    "ysb": ("event_time", 1_000, 10),
    "ysb-strings": ("event_time", 1_000, 10),
    "lrb": ("time", 1, 300),
    "nyt": ("dropoff_datetime", 1_000, 2),
    "nexmark": ("date_time", 1_000, 10),
    "cm": ("timestamp", 1_000, 60),
    "sg": ("timestamp", 1_000, 3_600),
    "me": ("timestamp", 1_000, 60),
    "ipq": ("timestamp", 1_000, 1),
}


def times(name: str, table: str, rows: int, start: int = 0) -> pa.ChunkedArray:
    """Seconds of event time of some rows, of a data set that has so many in all."""
    workload = catalog.workload(name)
    in_all = workload.rows_of(table, rows)
    options = sample_options(name, rows)
    column, ticks, _ = TIMES[name]
    made = pa.table(workload.generator(table)(in_all - start, seed=7, start=start, **options))
    return pc.divide(made.column(column).cast(pa.int64()).cast(pa.float64()), float(ticks))


def test_every_workload_has_a_sample() -> None:
    assert list(SAMPLES) == list(catalog.CATALOG) == list(TIMES)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_million_rows_have_several_windows(name: str) -> None:
    for table in catalog.workload(name).tables:
        last = catalog.workload(name).rows_of(table, 1_000_000) - 1
        begin = pc.min(times(name, table, 1_000)).as_py()
        end = pc.max(times(name, table, 1_000_000, start=last)).as_py()
        assert end - begin > 1.5 * TIMES[name][2]


@pytest.mark.parametrize("name", SAMPLES)
def test_some_rows_are_out_of_order_and_some_are_late(name: str) -> None:
    for table in catalog.workload(name).tables:
        seconds = times(name, table, 20_000).to_numpy()
        behind = pc.subtract(pc.cumulative_max(pa.array(seconds)), pa.array(seconds))
        assert 0 < pc.max(behind).as_py() <= 66
        assert pc.sum(pc.greater(behind, 0.0)).as_py() > len(seconds) / 5
        # There are but 400 persons in 20,000 rows of NEXMark.
        assert pc.sum(pc.greater(behind, 6.0)).as_py() > 0 or len(seconds) < 1_000


def test_more_rows_are_closer_together() -> None:
    assert sample_options("me", 1_000_000)["rate"] == 277
    assert sample_options("me", 10)["rate"] == 20
    assert "rate" not in sample_options("lrb", 1_000_000)
    with pytest.raises(ValueError, match="did you mean 'lrb'"):
        sample_options("lrbs", 10)
