"""Makes a workload's rows on Spark, with the Rust generators inside the executors.

Row ids are cut into one contiguous range per partition, in order. A row is a function of the seed, the
options and its id, so the data set is the same however it is partitioned, and partition order is row order.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.workloads import ysb

__all__ = ["generate"]

# Name and Spark type of each column. `event_time` counts milliseconds without a time zone in Arrow; Spark
# knows microseconds only, and its type without a time zone is `timestamp_ntz`.
_YSB_COLUMNS = {
    "event_time": "timestamp_ntz",
    "user_id": "bigint",
    "page_id": "bigint",
    "ad_id": "bigint",
    "ad_type": "bigint",
    "event_type": "bigint",
    "ip": "bigint",
}

_Generator = Callable[..., object]
_WORKLOADS: dict[str, tuple[_Generator, dict[str, str]]] = {"ysb": (ysb.generate, _YSB_COLUMNS)}


def generate(
    spark: SparkSession,
    workload: str = "ysb",
    rows: int = 1_000_000,
    seed: int = 7,
    partitions: int | None = None,
    **options: Any,
) -> DataFrame:
    """Make the first `rows` rows of a workload as a Spark DataFrame.

    Args:
        spark: The session; its executors need penstock installed.
        workload: Which workload: "ysb".
        rows: How many rows.
        seed: The seed of the data set.
        partitions: How many partitions, by default as many as Spark runs side by side. The rows are the same
            for any number.
        options: What else the generator of the workload takes, e.g. `out_of_order_ms=50`.

    Returns:
        A DataFrame whose partitions, one after the other, hold the rows in row order.

    Raises:
        ValueError: An unknown workload, or an option out of bounds: before any job starts.

    Example:
        >>> from penstock.spark import generate, session
        >>> frame = generate(session(), "ysb", rows=1_000, partitions=3)
        >>> frame.columns
        ['event_time', 'user_id', 'page_id', 'ad_id', 'ad_type', 'event_type', 'ip']
        >>> frame.count()
        1000
    """
    if workload not in _WORKLOADS:
        raise ValueError(f"no workload is called {workload!r}; there are: {', '.join(sorted(_WORKLOADS))}")
    if partitions is None:
        partitions = spark.sparkContext.defaultParallelism
    if partitions < 1:
        raise ValueError(f"partitions must be at least 1, not {partitions}")
    make, columns = _WORKLOADS[workload]
    # Makes no row yet, but checks every argument, here rather than in an executor.
    make(rows, seed=seed, **options)

    fill = _partition_filler(workload, rows=rows, seed=seed, partitions=partitions, options=options)
    numbers = spark.range(0, partitions, 1, partitions).select(F.col("id").alias("partition"))
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return numbers.mapInArrow(fill, schema).select(
        *(F.col(name).cast(kind).alias(name) for name, kind in columns.items())
    )


def row_range(rows: int, partitions: int, partition: int) -> tuple[int, int]:
    """The first row id of a partition and the one behind its last.

    Example:
        >>> [row_range(10, 3, partition) for partition in range(3)]
        [(0, 3), (3, 6), (6, 10)]
    """
    return rows * partition // partitions, rows * (partition + 1) // partitions


def _partition_filler(
    workload: str, *, rows: int, seed: int, partitions: int, options: dict[str, Any]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that runs in the executors: partition numbers in, the rows of those partitions out."""

    def fill(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        make, _ = _WORKLOADS[workload]
        for batch in batches:
            for partition in batch.column("partition").to_pylist():
                start, end = row_range(rows, partitions, partition)
                stream = make(end - start, seed=seed, start=start, **options)
                for made in pa.RecordBatchReader.from_stream(stream):
                    yield _in_spark_units(made)

    return fill


def _in_spark_units(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Timestamps in microseconds, the only unit that Spark has; exact, since ours are coarser."""
    schema = batch.schema
    for index, field in enumerate(schema):
        if pa.types.is_timestamp(field.type):
            schema = schema.set(index, field.with_type(pa.timestamp("us", field.type.tz)))
    return batch.cast(schema)
