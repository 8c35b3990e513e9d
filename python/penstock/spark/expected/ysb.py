"""YSB: views per campaign in tumbling windows of ten seconds, with numbers or with strings."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.spark.comparison import as_frame
from penstock.spark.expected.windows import SECOND, epoch_micros, floor_to, with_bounds

__all__ = ["expected_ysb"]

_WINDOW = 10 * SECOND
# What a view is called in each type that the column has.
_VIEWS = {"bigint": 0, "string": "view"}


def expected_ysb(spark: SparkSession, df: DataFrame, campaigns: object) -> DataFrame:
    """Computes the answer to the YSB query: views per campaign in tumbling windows of ten seconds.

    Spark counts every row of `df`, so the answer is that of a run in which no row came too late.

    Args:
        spark: The session.
        df: The rows, as `generate` makes them, with numbers or with strings.
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
    id_type = dict(df.dtypes)["ad_id"]
    events = df.select(
        epoch_micros(F.col("event_time").cast("timestamp_ntz")).alias("at"),
        F.col("ad_id"),
        F.col("event_type").cast(id_type).alias("event_type"),
    )
    ads = as_frame(spark, campaigns).select(
        F.col("ad_id").cast(id_type).alias("ad_id"),
        F.col("campaign_id").cast(id_type).alias("campaign_id"),
    )
    return (
        events.where(F.col("event_type") == F.lit(_VIEWS[id_type]))
        .join(F.broadcast(ads), on="ad_id", how="inner")
        .groupBy(floor_to(F.col("at"), _WINDOW).alias("start"), "campaign_id")
        .agg(F.count("*").alias("views"))
        .select(
            *with_bounds(F.col("start"), _WINDOW), "campaign_id", F.col("views").cast("bigint").alias("views")
        )
    )
