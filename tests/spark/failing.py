"""A frame whose rows cannot be made: what fails, fails in an executor."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

INSIDE = "no rows today\nand none tomorrow"


def failing_frame(spark: SparkSession, columns: str = "id bigint") -> DataFrame:
    # A copy, so that the executors need not have this module.
    message = str(INSIDE)

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            raise ValueError(message)
        yield from batches

    return spark.range(0, 2, 1, 2).mapInArrow(fail, columns)
