"""IPQ: ad revenue, and logs to join it with, in windows of a second."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.expected.windows import SECOND, epoch_micros, floor_to, sliding_sums, with_bounds

__all__ = ["ipq1", "ipq2", "ipq3", "ipq4"]

_WINDOW = SECOND
_SLIDE = SECOND // 2


def ipq1(revenue: DataFrame) -> DataFrame:
    """Sums the revenue per key.

    Args:
        revenue: The ad revenue.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.ipq import ipq1
        >>> ipq1(generate(session(), "ipq", rows=100, table="revenue")).columns
        ['window_start', 'window_end', 'key', 'total_revenue']
    """
    return (
        _tumbling(revenue)
        .groupBy("start", "key")
        .agg(F.sum("revenue").alias("total_revenue"))
        .select(*with_bounds(F.col("start"), _WINDOW), "key", "total_revenue")
    )


def ipq2(revenue: DataFrame) -> DataFrame:
    """Sums the revenue per key every half second.

    Args:
        revenue: The ad revenue.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.ipq import ipq2
        >>> ipq2(generate(session(), "ipq", rows=100, table="revenue")).columns
        ['window_start', 'window_end', 'key', 'total_revenue']
    """
    rows = revenue.select(epoch_micros(F.col("timestamp")).alias("at"), "key", "revenue")
    sums = sliding_sums(rows, time=F.col("at"), size=_WINDOW, slide=_SLIDE, keys=["key"], values=["revenue"])
    return sums.select(*with_bounds(F.col("start"), _WINDOW), "key", F.col("revenue").alias("total_revenue"))


def ipq3(revenue: DataFrame) -> DataFrame:
    """Counts rows per value of the other key.

    Args:
        revenue: The ad revenue.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.ipq import ipq3
        >>> ipq3(generate(session(), "ipq", rows=100, table="revenue")).columns
        ['window_start', 'window_end', 'other_key', 'events']
    """
    return (
        _tumbling(revenue)
        .groupBy("start", "other_key")
        .agg(F.count("*").alias("events"))
        .select(*with_bounds(F.col("start"), _WINDOW), "other_key", "events")
    )


def ipq4(revenue: DataFrame, logs: DataFrame) -> DataFrame:
    """Counts the pairs of the same key that the two tables have in a window.

    Args:
        revenue: The ad revenue.
        logs: The logs.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.ipq import ipq4
        >>> spark = session()
        >>> tables = {name: generate(spark, "ipq", rows=50, table=name) for name in ("revenue", "logs")}
        >>> ipq4(**tables).columns
        ['window_start', 'window_end', 'key', 'pairs']
    """
    # Each row of one meets each of the other, so the pairs of a key are the product of its counts.
    left = _tumbling(revenue).groupBy("start", "key").agg(F.count("*").alias("revenues"))
    right = _tumbling(logs).groupBy("start", "key").agg(F.count("*").alias("logs"))
    return left.join(right, on=["start", "key"], how="inner").select(
        *with_bounds(F.col("start"), _WINDOW), "key", (F.col("revenues") * F.col("logs")).alias("pairs")
    )


def _tumbling(rows: DataFrame) -> DataFrame:
    return rows.withColumn("start", floor_to(epoch_micros(F.col("timestamp")), _WINDOW))
