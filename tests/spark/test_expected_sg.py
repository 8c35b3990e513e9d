"""SG by hand: a plug is not above a mean that is its own."""

from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.spark import compare, expected
from penstock.spark.comparison import as_frame
from penstock.workloads import catalog, sg

EPOCH = datetime(1970, 1, 1)


def readings(values: list[tuple[int, int, float]]) -> pa.Table:
    """Readings by second, plug and value."""
    columns = {
        "timestamp": [EPOCH + timedelta(seconds=second) for second, _, _ in values],
        "value": [value for _, _, value in values],
        "property": [1] * len(values),
        "plug": [plug for _, plug, _ in values],
        "household": [0] * len(values),
        "house": [0] * len(values),
    }
    return pa.table(columns, schema=pa.schema(sg.schema()))


def answer(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """What Spark says, after the engine has said the same."""
    right = expected(spark, "sg", "sg3", {"readings": as_frame(spark, rows)}).cache()
    asked = catalog.workload("sg").query("sg3")
    comparison = compare(right, asked.build(7, "1h").run(rows), asked.keys, tolerance=1e-9)
    assert comparison.ok, comparison.report()
    return right


@pytest.mark.parametrize(
    "values",
    [
        [(second, 0, 0.1 * second) for second in range(100)],
        [(second, second % 7, 5.001) for second in range(100)],
    ],
    ids=["one plug", "all the same"],
)
def test_nothing_is_above_its_own_mean(spark: SparkSession, values: list[tuple[int, int, float]]) -> None:
    found = answer(spark, readings(values))
    # Until second 128 no reading has left the windows of the plug.
    assert found.where("window_end <= timestamp_ntz '1970-01-01 00:02:08'").count() == 0


def test_windows_are_compared_where_they_end(spark: SparkSession) -> None:
    # 10 is the mean itself, 4 is below the mean of 7, and 8 is above the mean of 22 / 3.
    rows = readings([(0, 0, 10.0), (1_000, 1, 4.0), (2_000, 0, 8.0)])
    found = {
        (row["plug"], row["mean_value"], (row["window_end"] - EPOCH).total_seconds())
        for row in answer(spark, rows).collect()
    }
    assert found == {(0, 8.0, float(end)) for end in range(2_001, 2_129)}
