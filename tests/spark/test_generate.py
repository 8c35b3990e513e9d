"""Rows made on Spark are the rows of the generator, in order, however they are partitioned."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.spark import generate, read_batches, write_parquet
from penstock.spark.generate import _partition_filler, row_range
from penstock.workloads import ysb

ROWS = 200_000


def checksum(frame: DataFrame) -> tuple[int, ...]:
    """Does not depend on the order of the rows, and tells duplicated from missing ones."""
    hashed = F.xxhash64(*frame.columns)
    found = frame.agg(F.count("*"), F.bit_xor(hashed), F.sum(hashed % 1_000_003)).collect()[0]
    return tuple(found)


def in_order(path: Path) -> pa.Table:
    return pa.Table.from_batches(read_batches(path, pa.schema(ysb.schema()))).combine_chunks()


@pytest.mark.parametrize("disorder", [0, 50])
def test_data_is_the_same_for_any_partitioning(spark: SparkSession, tmp_path: Path, disorder: int) -> None:
    straight = pa.table(ysb.generate(ROWS, seed=3, out_of_order_ms=disorder)).combine_chunks()
    checksums = set()
    for partitions in (1, 3, 16):
        frame = generate(spark, "ysb", rows=ROWS, seed=3, partitions=partitions, out_of_order_ms=disorder)
        assert frame.rdd.getNumPartitions() == partitions
        written = write_parquet(frame, tmp_path / f"p{partitions}")
        checksums.add(checksum(frame))
        assert in_order(written).equals(straight), f"{partitions} partitions"
    assert len(checksums) == 1


def test_other_seeds_and_options_give_other_data(spark: SparkSession) -> None:
    frames = [
        generate(spark, rows=10_000, seed=1),
        generate(spark, rows=10_000, seed=2),
        generate(spark, rows=10_000, seed=1, out_of_order_ms=50),
        generate(spark, rows=9_999, seed=1),
    ]
    assert len({checksum(frame) for frame in frames}) == len(frames)


def test_more_partitions_than_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = generate(spark, rows=5, partitions=16)
    assert frame.count() == 5
    assert in_order(write_parquet(frame, tmp_path / "few")).num_rows == 5


def test_row_ranges_cover_every_row_once() -> None:
    for rows, partitions in [(0, 3), (1, 4), (10, 3), (17, 16), (10**12 + 7, 9)]:
        ranges = [row_range(rows, partitions, index) for index in range(partitions)]
        assert ranges[0][0] == 0
        assert ranges[-1][1] == rows
        assert all(left[1] == right[0] for left, right in pairwise(ranges))


def test_bad_arguments_are_refused_before_any_job(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="there are: ysb"):
        generate(spark, "ysbb", rows=10)
    with pytest.raises(ValueError, match="partitions must be at least 1"):
        generate(spark, rows=10, partitions=0)
    with pytest.raises(ValueError, match="rate"):
        generate(spark, rows=10, rate=0)
    with pytest.raises(TypeError, match="colour"):
        generate(spark, rows=10, colour="red")


def test_an_error_in_an_executor_shows_its_own_message(spark: SparkSession, tmp_path: Path) -> None:
    fill = _partition_filler("ysb", rows=10, seed=7, partitions=2, options={"rate": 0})
    numbers = spark.range(0, 2, 1, 2).select(F.col("id").alias("partition"))
    broken = numbers.mapInArrow(fill, "event_time timestamp_ntz")
    with pytest.raises(ValueError, match="rate") as direct:
        ysb.generate(10, rate=0)
    with pytest.raises(PythonException) as counted:
        broken.count()
    with pytest.raises(PythonException) as written:
        write_parquet(broken, tmp_path / "broken")
    for raised in (counted, written):
        assert str(direct.value) in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(FileExistsError, match="taken"):
        write_parquet(generate(spark, rows=10), tmp_path / "taken")


def test_an_empty_folder_is_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no Parquet files"):
        read_batches(tmp_path, pa.schema(ysb.schema()))
