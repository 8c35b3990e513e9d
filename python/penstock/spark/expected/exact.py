"""Sums of floats that do not depend on the order of the additions, since they are exact."""

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["as_units", "from_units"]

# A float32 has 24 bits, so from 2^-16 on its last bit is worth 2^-40 or more: a multiple of the unit. What
# is smaller, and no such multiple, is cut off there.
_UNITS_PER_ONE = float(2**40)


def as_units(value: Column) -> Column:
    """Converts a float32 to a whole number of very small units.

    Args:
        value: Below 2^22 or so. What is not is an error of Spark's, and no wrong answer.

    Returns:
        A decimal: sums of a hundred million of them are exact.

    Example:
        >>> from penstock.spark import session
        >>> from pyspark.sql import functions as F
        >>> from penstock.spark.expected.exact import as_units
        >>> values = session().createDataFrame([(0.1,), (0.7,), (-0.1,), (-0.7,)], "value float")
        >>> values.select(F.sum(as_units(F.col("value"))).alias("sum")).first().sum
        Decimal('0')
    """
    return (value.cast("double") * _UNITS_PER_ONE).cast("bigint").cast("decimal(19, 0)")


def from_units(units: Column) -> Column:
    """Returns the float64 that is nearest to a number of units.

    Args:
        units: How many units.

    Returns:
        A float64.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.expected.exact import as_units, from_units
        >>> from pyspark.sql import functions as F
        >>> values = session().createDataFrame([(0.5,), (0.75,)], "value float")
        >>> values.select(from_units(F.sum(as_units(F.col("value")))).alias("sum")).first().sum
        1.25
    """
    return units.cast("double") / F.lit(_UNITS_PER_ONE)
