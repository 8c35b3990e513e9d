"""Computes the watermark before each row from the order of arrival, for rows in any partition.

Rows are sorted over all partitions. The largest time of each partition gives the watermark at which the next
ones begin, and within a partition the watermark follows from row to row. So it is that of one machine that
reads all rows in this order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.spark._worker import PLACE
from penstock.spark.types import spark_schema
from penstock.staging import StageInput

__all__ = ["NEVER", "in_order_of_arrival", "ticks_of"]

NEVER = int(np.iinfo(np.int64).min)
"""Before any time."""


def in_order_of_arrival(frame: DataFrame, read: StageInput, order_by: Sequence[str]) -> DataFrame:
    """Puts the rows of a stream in order, and the watermark before each row beside it.

    The rows are put in order here and now, and kept by Spark until the result is gone.

    Args:
        frame: The rows.
        read: What is known of the stream: its time, its delay, and the column that the watermark goes to.
        order_by: The columns that say in which order rows came. Rows that came together are taken in order of
            their time.

    Returns:
        The rows with the column of the watermark in front, null where there was none yet.

    Example:
        >>> import penstock as ps
        >>> from penstock.spark import session
        >>> from penstock.staging import stages
        >>> from penstock.spark._arrival import in_order_of_arrival
        >>> views = ps.stream({"at": "int64", "number": "int64"}, time="at", delay=2)
        >>> read = stages(views, ordered=True).stages[0].inputs[0]
        >>> rows = session().createDataFrame([(5, 1), (9, 2), (6, 3)], "at bigint, number bigint")
        >>> in_order_of_arrival(rows, read, ["number"]).orderBy("number").show()
        +-----------+---+------+
        |__watermark| at|number|
        +-----------+---+------+
        |       NULL|  5|     1|
        |          3|  9|     2|
        |          7|  6|     3|
        +-----------+---+------+
        <BLANKLINE>
    """
    if read.time is None or read.watermark is None:
        raise ValueError(f"the stream {read.name!r} has no time that rows could be late by")
    by = [F.col(f"`{column}`") for column in order_by]
    placed = (
        frame.repartitionByRange(*by)
        .sortWithinPartitions(*by, F.col(f"`{read.time}`"))
        .withColumn(PLACE, F.spark_partition_id())
        # Sorting or repartitioning after this would make the largest time of each partition wrong.
        .localCheckpoint(eager=True)
    )
    schema = pa.schema(read.schema)
    kind = schema.field(read.time).type
    found = placed.groupBy(PLACE).agg(F.max(f"`{read.time}`").alias("latest")).toArrow()
    latest = ticks_of(found.column("latest").cast(kind).combine_chunks())
    order = np.argsort(found.column(PLACE).to_numpy())
    largest = np.maximum.accumulate(latest[order]).tolist()
    # Without rows there is no place, and nothing that one could begin with.
    befores = [NEVER, *largest][: len(largest)]
    starts = dict(zip(found.column(PLACE).to_numpy()[order].tolist(), befores, strict=True))
    watermark = spark_schema(pa.schema([schema.field(read.watermark)]))[0]
    columns = [StructField(field.name, field.dataType) for field in frame.schema]
    follow = _Follow(starts, read.time, kind, read.delay, read.watermark)
    return placed.mapInArrow(follow, StructType([watermark, *columns]))


@dataclass(frozen=True)
class _Follow:
    """What runs in a Python worker: the watermark from row to row."""

    starts: dict[int, int]
    time: str
    kind: pa.DataType
    delay: int
    watermark: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        largest: int | None = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if largest is None:
                largest = self.starts[batch.column(PLACE)[0].as_py()]
            times = ticks_of(batch.column(self.time).cast(self.kind))
            so_far = np.maximum.accumulate(np.concatenate([[largest], times]))
            largest = int(so_far[-1])
            rows = batch.drop_columns([PLACE])
            marks = _marks(so_far[:-1], self.delay, self.kind)
            # Spark has times in microseconds, whatever the stream has.
            marks = marks.cast(batch.column(self.time).type)
            yield pa.RecordBatch.from_arrays(
                [marks, *rows.columns], names=[self.watermark, *rows.schema.names]
            )


def ticks_of(times: pa.Array) -> npt.NDArray[np.int64]:
    """Converts times to numbers of ticks.

    Args:
        times: Times of any type that a stream may have.

    Returns:
        The numbers. A time that is missing is an error wherever a stream has one, and the least number here.

    Example:
        >>> from penstock.spark._arrival import ticks_of
        >>> import pyarrow as pa
        >>> ticks_of(pa.array([5, None], pa.date32())).tolist()
        [5, -9223372036854775808]
    """
    numbers = times.view(_integer(times.type)).cast(pa.int64()).fill_null(NEVER)
    return np.asarray(numbers, dtype=np.int64)


def _marks(largest: npt.NDArray[np.int64], delay: int, kind: pa.DataType) -> pa.Array:
    """Watermarks from the largest times; null where there is none, or none that the type can say."""
    least = int(np.iinfo(_integer(kind).to_pandas_dtype()).min)
    known = largest > max(NEVER, least + delay - 1)
    marks = np.where(known, largest, delay) - delay
    return pa.array(marks, pa.int64(), mask=~known).cast(_integer(kind)).view(kind)


def _integer(kind: pa.DataType) -> pa.DataType:
    """Returns the integer type that a type of times is made of."""
    if pa.types.is_integer(kind):
        return kind
    return pa.int32() if kind.bit_width == 32 else pa.int64()
