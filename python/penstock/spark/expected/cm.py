"""CM: what tasks ask for of the processors, in sliding windows of a minute, every second."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.expected.exact import as_units, from_units
from penstock.spark.expected.windows import SECOND, epoch_micros, sliding_sums, with_bounds

__all__ = ["cm1", "cm2"]

_SIZE, _SLIDE = 60 * SECOND, SECOND
_FAIL = 3


def cm1(events: DataFrame) -> DataFrame:
    """Sums `cpu` per category.

    Args:
        events: What happened to tasks.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.cm import cm1
        >>> cm1(generate(session(), "cm", rows=100)).columns
        ['window_start', 'window_end', 'category', 'total_cpu']
    """
    return _total_cpu(events, "category")


def cm2(events: DataFrame) -> DataFrame:
    """Sums `cpu` of the failed tasks per job.

    Args:
        events: What happened to tasks.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.cm import cm2
        >>> cm2(generate(session(), "cm", rows=100)).columns
        ['window_start', 'window_end', 'job', 'total_cpu']
    """
    return _total_cpu(events.where(F.col("event_type") == _FAIL), "job")


def _total_cpu(events: DataFrame, key: str) -> DataFrame:
    rows = events.select(
        epoch_micros(F.col("timestamp")).alias("at"), key, as_units(F.col("cpu")).alias("cpu")
    )
    sums = sliding_sums(rows, time=F.col("at"), size=_SIZE, slide=_SLIDE, keys=[key], values=["cpu"])
    return sums.select(*with_bounds(F.col("start"), _SIZE), key, from_units(F.col("cpu")).alias("total_cpu"))
