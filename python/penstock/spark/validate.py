"""Computes in Spark SQL what the answer of a workload's query must be.

Nothing here uses an operator of the engine: the window, the join and the count are Spark's own.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.spark.comparison import as_frame

__all__ = ["expected_ysb"]

_VIEW = 0


def expected_ysb(spark: SparkSession, df: DataFrame, campaigns: object) -> DataFrame:
    """The answer to the YSB query: views per campaign in tumbling windows of ten seconds.

    Spark counts every row of `df`, so the answer is that of a run in which no row came too late.

    Args:
        spark: The session.
        df: The rows, as `generate` makes them.
        campaigns: Which campaign each ad belongs to: a DataFrame or anything that speaks Arrow, with the
            columns `ad_id` and `campaign_id`.

    Returns:
        A DataFrame with the columns `window_start`, `window_end`, `campaign_id` and `views`.

    Example:
        >>> from penstock.spark import expected_ysb, generate, session
        >>> from penstock.workloads import ysb
        >>> spark = session()
        >>> rows = generate(spark, rows=1_000)
        >>> expected_ysb(spark, rows, ysb.campaigns()).columns
        ['window_start', 'window_end', 'campaign_id', 'views']
    """
    events = df.select(
        F.col("event_time").cast("timestamp_ntz").alias("event_time"),
        F.col("ad_id").cast("bigint").alias("ad_id"),
        F.col("event_type").cast("bigint").alias("event_type"),
    )
    ads = as_frame(spark, campaigns).select(
        F.col("ad_id").cast("bigint").alias("ad_id"),
        F.col("campaign_id").cast("bigint").alias("campaign_id"),
    )
    return (
        events.where(F.col("event_type") == _VIEW)
        .join(F.broadcast(ads), on="ad_id", how="inner")
        .groupBy(F.window("event_time", "10 seconds").alias("window"), F.col("campaign_id"))
        .agg(F.count("*").alias("views"))
        .select(
            F.col("window.start").cast("timestamp_ntz").alias("window_start"),
            F.col("window.end").cast("timestamp_ntz").alias("window_end"),
            F.col("campaign_id").cast("bigint").alias("campaign_id"),
            F.col("views").cast("bigint").alias("views"),
        )
    )
