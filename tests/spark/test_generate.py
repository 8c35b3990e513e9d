"""Rows made on Spark are the rows of the generator, in order, however they are partitioned."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.spark import SparkJobError, generate, read_batches, write_parquet
from penstock.spark.generate import row_range
from penstock.spark.types import in_spark_types, spark_schema
from penstock.workloads import catalog, ysb
from spark.failing import INSIDE, failing_frame

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


TABLES = [(name, table) for name, workload in catalog.CATALOG.items() for table in workload.tables]


@pytest.mark.parametrize(("workload", "table"), TABLES, ids=["-".join(pair) for pair in TABLES])
def test_every_table_of_every_workload(spark: SparkSession, workload: str, table: str) -> None:
    rows = catalog.workload(workload).generator(table)(1_000, seed=3)
    straight = pa.table(rows)
    made = generate(spark, workload, rows=1_000, seed=3, partitions=3, table=table)
    assert pa.table(made).cast(straight.schema).equals(straight)
    for column in straight.schema:
        if pa.types.is_timestamp(column.type):
            assert dict(made.dtypes)[column.name] == "timestamp_ntz"


def test_data_that_ends_can_be_had_whole(spark: SparkSession) -> None:
    wanted = pa.table(catalog.workload("lrb").generator()(minutes=5)).num_rows
    assert generate(spark, "lrb", rows=None, minutes=5).count() == wanted > 0
    with pytest.raises(ValueError, match="no end"):
        generate(spark, "ysb", rows=None)
    with pytest.raises(ValueError, match="rows"):
        generate(spark, "lrb", rows=wanted + 1, minutes=5)


def test_types_that_spark_does_not_have() -> None:
    values = {
        "u8": pa.array([255, None], pa.uint8()),
        "u16": pa.array([65_535, None], pa.uint16()),
        "u32": pa.array([2**32 - 1, None], pa.uint32()),
        "u64": pa.array([2**64 - 1, None], pa.uint64()),
        "i8": pa.array([-128, None], pa.int8()),
        "s": pa.array([1, None], pa.timestamp("s")),
        "ns": pa.array([1_000, None], pa.timestamp("ns")),
        "zone": pa.array([1, None], pa.timestamp("ms", "UTC")),
        "large": pa.array(["a", None], pa.large_string()),
        "view": pa.array(["a", None], pa.string_view()),
        "words": pa.array(["a", None]).dictionary_encode(),
    }
    batch = pa.record_batch(values)
    found = {column.name: column.dataType.simpleString() for column in spark_schema(batch.schema)}
    assert found == {
        "u8": "smallint",
        "u16": "int",
        "u32": "bigint",
        "u64": "decimal(20,0)",
        "i8": "tinyint",
        "s": "timestamp_ntz",
        "ns": "timestamp_ntz",
        "zone": "timestamp",
        "large": "string",
        "view": "string",
        "words": "string",
    }
    converted = in_spark_types(batch)
    assert converted.column("u64").cast(pa.uint64()).equals(batch.column("u64"))
    assert converted.column("u64").to_pylist() == [2**64 - 1, None]
    with pytest.raises(pa.ArrowInvalid, match="lose data"):
        in_spark_types(pa.record_batch({"ns": pa.array([1], pa.timestamp("ns"))}))
    with pytest.raises(TypeError, match="column 'xs'"):
        spark_schema(pa.schema({"xs": pa.list_(pa.int64())}))


def test_bad_arguments_are_refused_before_any_job(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="'ysbb' .did you mean 'ysb'.*; there are: ysb, ysb-strings, lrb"):
        generate(spark, "ysbb", rows=10)
    with pytest.raises(ValueError, match="no table 'bidd' .did you mean 'bid'"):
        generate(spark, "nexmark", rows=10, table="bidd")
    with pytest.raises(ValueError, match="several tables: name one of person, auction, bid"):
        generate(spark, "nexmark", rows=10)
    with pytest.raises(ValueError, match="partitions must be at least 1, not 0"):
        generate(spark, rows=10, partitions=0)
    with pytest.raises(ValueError, match="rows must be at least 0, not -1"):
        generate(spark, rows=-1)
    with pytest.raises(ValueError, match="rate"):
        generate(spark, rows=10, rate=0)
    with pytest.raises(TypeError, match="rate must be a whole number"):
        generate(spark, rows=10, rate=0.5)
    with pytest.raises(TypeError, match="no option 'colour'"):
        generate(spark, rows=10, colour=3)
    with pytest.raises(TypeError, match="no option 'out_of_order' .did you mean 'out_of_order_ms'"):
        generate(spark, rows=10, out_of_order=3)


def test_an_error_in_an_executor_shows_its_own_message(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkJobError) as raised:
        write_parquet(failing_frame(spark), tmp_path / "broken")
    assert str(raised.value) == f"ValueError: {INSIDE}"
    assert "fail" in raised.value.traceback
    assert "java" not in f"{raised.value} {raised.value.traceback}".lower()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(FileExistsError, match="taken"):
        write_parquet(generate(spark, rows=10), tmp_path / "taken")


def test_an_empty_folder_is_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no Parquet files"):
        read_batches(tmp_path, pa.schema(ysb.schema()))
