"""CM: what tasks ask for of the processors, in sliding windows of a minute, every second."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.spark.expected.exact import as_units, from_units
from penstock.spark.expected.windows import SECOND, epoch_micros, sliding_sums, with_bounds

__all__ = ["cm1", "cm2"]

_SIZE, _SLIDE = 60 * SECOND, SECOND
_FAIL = 3


def cm1(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The sum of `cpu` per category, over the table "events".

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> cm1(spark, {"events": generate(spark, "cm", rows=100)}, seed=7).columns
        ['window_start', 'window_end', 'category', 'total_cpu']
    """
    return _total_cpu(frames["events"], "category")


def cm2(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The sum of `cpu` of the tasks that failed per job, over the table "events".

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> cm2(spark, {"events": generate(spark, "cm", rows=100)}, seed=7).columns
        ['window_start', 'window_end', 'job', 'total_cpu']
    """
    return _total_cpu(frames["events"].where(F.col("event_type") == _FAIL), "job")


def _total_cpu(events: DataFrame, key: str) -> DataFrame:
    rows = events.select(
        epoch_micros(F.col("timestamp")).alias("at"), key, as_units(F.col("cpu")).alias("cpu")
    )
    sums = sliding_sums(rows, time=F.col("at"), size=_SIZE, slide=_SLIDE, keys=[key], values=["cpu"])
    return sums.select(*with_bounds(F.col("start"), _SIZE), key, from_units(F.col("cpu")).alias("total_cpu"))
