"""The data source: the rows of the generator, at once or batch by batch, and the same after a restart."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from penstock.spark import register
from penstock.spark.datasource import WorkloadSource
from penstock.workloads import nexmark, ysb


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def test_batch_reads_the_rows_of_the_generator(source: SparkSession) -> None:
    frame = (
        source.read.format("penstock")
        .option("workload", "ysb")
        .option("table", "events")
        .option("rows", 1_000)
        .option("seed", 7)
        .option("partitions", 3)
        .option("OUT_OF_ORDER_MS", 50)
        .load()
    )
    assert frame.rdd.getNumPartitions() == 3
    wanted = pa.table(ysb.generate(1_000, seed=7, out_of_order_ms=50))
    assert pa.table(frame).cast(wanted.schema).equals(wanted)


def test_text_and_tables(source: SparkSession) -> None:
    options = {"workload": "nexmark", "table": "bid", "rows": "200", "seed": "3"}
    frame = source.read.format("penstock").options(**options).load()
    wanted = pa.table(nexmark.generate("bid", 200, seed=3))
    assert pa.table(frame).cast(wanted.schema).equals(wanted)


def test_no_rows(source: SparkSession) -> None:
    assert source.read.format("penstock").option("workload", "sg").option("rows", 0).load().count() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": "10"}, "the option workload is missing"),
        ({"workload": "yxb", "rows": "10"}, "did you mean 'ysb'"),
        ({"workload": "ysb", "rows": "10", "rat": "1"}, "did you mean 'rate'"),
        ({"workload": "ysb", "rows": "10", "rate": "fast"}, "rate must be a whole number, not 'fast'"),
        ({"workload": "ysb", "rows": "ten"}, "rows must be a whole number, not 'ten'"),
        ({"workload": "ysb", "rows": "-1"}, "rows must be at least 0"),
        ({"workload": "ysb", "rows": "10", "partitions": "0"}, "partitions must be at least 1"),
        ({"workload": "ysb"}, "ysb has no end"),
    ],
)
def test_wrong_options_are_explained(options: dict[str, str], message: str) -> None:
    def read() -> None:
        source = WorkloadSource(options)
        source.reader(source.schema())

    with pytest.raises((TypeError, ValueError), match=message):
        read()


def test_the_explanation_comes_through_spark(source: SparkSession) -> None:
    with pytest.raises(Exception, match="did you mean 'rate'"):
        source.read.format("penstock").options(workload="ysb", rows="1", rat="1").load().count()


def test_another_schema_is_refused() -> None:
    source = WorkloadSource({"workload": "ysb", "rows": "10"})
    with pytest.raises(ValueError, match="has the columns"):
        source.reader(WorkloadSource({"workload": "sg", "rows": "10"}).schema())


def test_offsets_are_row_numbers() -> None:
    source = WorkloadSource({"workload": "ysb", "rows": "25", "rowsPerBatch": "10", "partitions": "2"})
    reader = source.streamReader(source.schema())
    limit = reader.getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    offset = reader.initialOffset()
    seen = [offset["row"]]
    for _ in range(4):
        end = reader.latestOffset(offset, limit)
        seen.append(end["row"])
        rows = [batch.num_rows for part in reader.partitions(offset, end) for batch in reader.read(part)]
        assert sum(rows) == end["row"] - offset["row"]
        offset = end
    assert seen == [0, 10, 20, 25, 25]
    assert reader.partitions(offset, offset) == []
    assert reader.latestOffset({"row": 3}, ReadAllAvailable()) == {"row": 25}


def test_rows_without_end_come_batch_by_batch() -> None:
    source = WorkloadSource({"workload": "ysb", "rowsPerBatch": "10"})
    reader = source.streamReader(source.schema())
    assert reader.latestOffset({"row": 7}, reader.getDefaultReadLimit()) == {"row": 17}
    assert reader.latestOffset({"row": 7}, ReadAllAvailable()) == {"row": 17}
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset({"row": 7}, reader.getDefaultReadLimit()) == {"row": 17}
    assert reader.latestOffset({"row": 17}, reader.getDefaultReadLimit()) == {"row": 17}
    with pytest.raises(ValueError, match="rowsPerBatch must be at least 1"):
        WorkloadSource({"workload": "ysb", "rowsPerBatch": "0"}).streamReader(source.schema())


def streamed(source: SparkSession, rows: int, folder: Path) -> Iterator[pa.Table]:
    """Runs a stream to its end, with a checkpoint, and gives its batches."""
    frame = (
        source.readStream.format("penstock")
        .options(workload="ysb", rows=str(rows), seed="5", rowsPerBatch="400", partitions="2")
        .load()
    )
    found: list[pa.Table] = []

    def keep(batch: DataFrame, number: int) -> None:
        found.append(pa.table(batch))

    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", f"file://{folder}")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return iter(found)


def test_a_stream_gives_the_same_rows_and_goes_on_after_a_restart(
    source: SparkSession, tmp_path: Path
) -> None:
    first = list(streamed(source, 1_000, tmp_path))
    assert [table.num_rows for table in first] == [400, 400, 200]
    second = list(streamed(source, 1_500, tmp_path))
    assert [table.num_rows for table in second] == [400, 100]
    wanted = pa.table(ysb.generate(1_500, seed=5))
    assert pa.concat_tables([*first, *second]).cast(wanted.schema).equals(wanted)
