"""ME: the mean power of three phases in sliding windows of a minute, every second."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.spark.expected.windows import SECOND, epoch_micros, sliding_sums, with_bounds

__all__ = ["me1"]

_SIZE, _SLIDE = 60 * SECOND, SECOND
_PHASES = ["mf01", "mf02", "mf03"]


def me1(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The means, over the table "readings".

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> me1(spark, {"readings": generate(spark, "me", rows=100)}, seed=7).columns
        ['window_start', 'window_end', 'mean_mf01', 'mean_mf02', 'mean_mf03']
    """
    rows = frames["readings"].select(
        epoch_micros(F.col("timestamp")).alias("at"), *(F.col(name).cast("bigint") for name in _PHASES)
    )
    sums = sliding_sums(rows, time=F.col("at"), size=_SIZE, slide=_SLIDE, keys=[], values=_PHASES)
    return sums.select(
        *with_bounds(F.col("start"), _SIZE),
        *((F.col(name) / F.col("n")).alias(f"mean_{name}") for name in _PHASES),
    )
