"""SG: mean readings of plugs, every second, in sliding windows of an hour and of 128 seconds."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.spark.expected.exact import as_units, from_units
from penstock.spark.expected.windows import SECOND, epoch_micros, sliding_sums, with_bounds

__all__ = ["sg1", "sg2", "sg3"]

_HOUR = 3600 * SECOND
_SHORT = 128 * SECOND
_SLIDE = SECOND
_PLUG = ["plug", "household", "house"]
# Wide enough for the units of a hundred thousand million readings of a kilowatt, and so narrow that Spark
# keeps all digits of the product: 27 + 10 + 1 = 38.
_UNITS, _COUNT = "decimal(27, 0)", "decimal(10, 0)"


def sg1(readings: DataFrame) -> DataFrame:
    """Averages all values of an hour.

    Args:
        readings: What was read.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.sg import sg1
        >>> sg1(generate(session(), "sg", rows=100)).columns
        ['window_start', 'window_end', 'mean_value']
    """
    sums = _sums(readings, _HOUR, [])
    return sums.select(*with_bounds(F.col("start"), _HOUR), _mean())


def sg2(readings: DataFrame) -> DataFrame:
    """Averages the values of each plug in 128 seconds.

    Args:
        readings: What was read.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.sg import sg2
        >>> sg2(generate(session(), "sg", rows=100)).columns
        ['window_start', 'window_end', 'plug', 'household', 'house', 'mean_value']
    """
    sums = _sums(readings, _SHORT, _PLUG)
    return sums.select(*with_bounds(F.col("start"), _SHORT), *_PLUG, _mean())


def sg3(readings: DataFrame) -> DataFrame:
    """Selects the rows of SG2 whose mean is above that of the hour that ends with it.

    Args:
        readings: What was read.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.sg import sg3
        >>> sg3(generate(session(), "sg", rows=100)).columns
        ['window_start', 'window_end', 'plug', 'household', 'house', 'mean_value']
    """
    plugs = _sums(readings, _SHORT, _PLUG).withColumn("end", F.col("start") + _SHORT)
    all_plugs = _sums(readings, _HOUR, []).select(
        (F.col("start") + _HOUR).alias("end"),
        F.col("n").cast(_COUNT).alias("all_n"),
        F.col("value").cast(_UNITS).alias("all_value"),
    )
    # value / n > all_value / all_n, without a division: whole numbers, so that no rounding decides.
    is_above = F.col("value").cast(_UNITS) * F.col("all_n") > F.col("all_value") * F.col("n").cast(_COUNT)
    return (
        plugs.join(all_plugs, on="end", how="inner")
        .where(is_above)
        .select(*with_bounds(F.col("start"), _SHORT), *_PLUG, _mean())
    )


def _sums(readings: DataFrame, size: int, keys: Sequence[str]) -> DataFrame:
    rows = readings.select(
        epoch_micros(F.col("timestamp")).alias("at"), *keys, as_units(F.col("value")).alias("value")
    )
    return sliding_sums(rows, time=F.col("at"), size=size, slide=_SLIDE, keys=keys, values=["value"])


def _mean() -> Column:
    return (from_units(F.col("value")) / F.col("n")).alias("mean_value")
