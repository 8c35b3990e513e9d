"""ME: the mean power of three phases in sliding windows of a minute, every second."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.expected.windows import SECOND, epoch_micros, sliding_sums, with_bounds

__all__ = ["me1"]

_SIZE, _SLIDE = 60 * SECOND, SECOND
_PHASES = ["mf01", "mf02", "mf03"]


def me1(readings: DataFrame) -> DataFrame:
    """Computes the means.

    Args:
        readings: What was read.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.me import me1
        >>> me1(generate(session(), "me", rows=100)).columns
        ['window_start', 'window_end', 'mean_mf01', 'mean_mf02', 'mean_mf03']
    """
    rows = readings.select(
        epoch_micros(F.col("timestamp")).alias("at"), *(F.col(name).cast("bigint") for name in _PHASES)
    )
    sums = sliding_sums(rows, time=F.col("at"), size=_SIZE, slide=_SLIDE, keys=[], values=_PHASES)
    return sums.select(
        *with_bounds(F.col("start"), _SIZE),
        *((F.col(name) / F.col("n")).alias(f"mean_{name}") for name in _PHASES),
    )
