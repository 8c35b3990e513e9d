"""YSB on a million rows: the engine's answer equals the one that Spark computes from the same files."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.spark import compare, expected_ysb, generate, local_uri, read_batches, write_parquet
from penstock.workloads import ysb

ROWS = 1_000_000
# Rows per second of event time: 250 s of data, 25 windows of 100 campaigns.
RATE = 4_000
KEYS = ["window_start", "window_end", "campaign_id"]


@pytest.mark.parametrize("out_of_order_ms", [0, 50])
@pytest.mark.parametrize("seed", [7, 11, 2026])
def test_engine_equals_spark(spark: SparkSession, tmp_path: Path, seed: int, out_of_order_ms: int) -> None:
    made = generate(
        spark, "ysb", rows=ROWS, seed=seed, partitions=4, rate=RATE, out_of_order_ms=out_of_order_ms
    )
    folder = write_parquet(made, tmp_path / "events")

    query = ysb.query(campaigns=ysb.campaigns(seed))
    result = query.run(read_batches(folder, pa.schema(ysb.schema())))

    expected = expected_ysb(spark, spark.read.parquet(local_uri(folder)), ysb.campaigns(seed))
    comparison = compare(expected, result, KEYS)
    assert comparison.ok, comparison.report()
    # The windows at the edges of the data may hold only a few rows when it is out of order.
    assert comparison.equal == result.rows_out >= 2_500
    assert (result.rows_in, result.rows_late) == (ROWS, 0)


def test_the_data_is_out_of_order_when_asked_for() -> None:
    for out_of_order_ms in (0, 50):
        rows = pa.table(ysb.generate(100_000, rate=RATE, out_of_order_ms=out_of_order_ms))
        times = rows.column("event_time").cast(pa.int64()).to_numpy()
        backwards = int((times[1:] < times[:-1]).sum())
        assert (backwards > 0) == (out_of_order_ms > 0)
