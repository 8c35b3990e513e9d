"""Streams of files, one for each micro-batch, and a sink that breaks down when it is told to."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import penstock as ps
from penstock.spark.types import in_spark_types, spark_schema
from reference.stateful import SCHEMA, table_of

NOW = {"availableNow": True}


class BreakdownError(Exception):
    """What a test lets happen."""


def write_files(rows: pa.Table, folder: Path, count: int) -> None:
    """Rows in order, in so many files: Spark goes by the time of a file."""
    folder.mkdir(parents=True)
    for number in range(count):
        start, end = len(rows) * number // count, len(rows) * (number + 1) // count
        batch = rows.slice(start, end - start).combine_chunks()
        batches = [in_spark_types(piece) for piece in batch.to_batches()]
        if batches:
            file = folder / f"{number:03}.parquet"
            pq.write_table(pa.Table.from_batches(batches), file)
            os.utime(file, (number, number))


def read_files(spark: SparkSession, folder: Path, schema: pa.Schema) -> DataFrame:
    reader = spark.readStream.schema(spark_schema(schema)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


class Collected:
    """Takes results, and breaks down when it is told to."""

    def __init__(self) -> None:
        self.batches: dict[int, pa.Table] = {}
        self.calls: list[int] = []
        self.breaks_at: set[int] = set()

    def __call__(self, results: DataFrame, batch: int) -> None:
        found = results.toArrow()
        if batch in self.batches:
            assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, self.batches[batch].to_pylist()))
        self.batches[batch] = found
        self.calls.append(batch)
        if batch in self.breaks_at:
            self.breaks_at.remove(batch)
            raise BreakdownError(f"down with {batch}")

    @property
    def rows(self) -> pa.Table:
        return pa.concat_tables(self.batches.values()).combine_chunks()


def simple(
    spark: SparkSession, tmp_path: Path, batches: list[list[tuple[int, str | None, int]]]
) -> DataFrame:
    (tmp_path / "rows").mkdir()
    for number, rows in enumerate(batches):
        file = tmp_path / "rows" / f"{number}.parquet"
        pq.write_table(table_of(rows), file)
        os.utime(file, (number, number))
    return read_files(spark, tmp_path / "rows", table_of([]).schema)


COUNTS = ps.stream(SCHEMA, time="t", delay=2).window(ps.tumbling(10), by="k").agg(n=ps.count())
