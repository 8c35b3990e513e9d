"""NYT: trips and mean distance per pick-up cell in tumbling windows of two seconds."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.spark.expected.windows import SECOND, epoch_micros, floor_to, with_bounds

__all__ = ["nyt"]

_WINDOW = 2 * SECOND
_SIDE = 600
_CELL_METRES = 250.0
# The centre of the first cell, and metres per degree all over the grid.
_NORTH, _WEST = 41.474937, -74.913583
_METRES_SOUTH = 111_194.93
_METRES_EAST = 83_312.3009533086


def nyt(trips: DataFrame) -> DataFrame:
    """Trips that start and end inside the grid. The time of a trip is its end.

    Args:
        trips: The trips.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nyt import nyt
        >>> nyt(generate(session(), "nyt", rows=100)).columns
        ['window_start', 'window_end', 'pickup_cell', 'trips', 'mean_distance']
    """
    trips = trips.select(
        epoch_micros(F.col("dropoff_datetime")).alias("at"),
        F.col("vendor_id"),
        F.col("trip_distance"),
        _cell("pickup").alias("pickup_cell"),
        _cell("dropoff").alias("dropoff_cell"),
    )
    return (
        trips.where((F.col("vendor_id") == "VTS") & (F.col("trip_distance") > 1))
        .where(F.col("pickup_cell").isNotNull() & F.col("dropoff_cell").isNotNull())
        .groupBy(floor_to(F.col("at"), _WINDOW).alias("start"), "pickup_cell")
        .agg(F.count("*").alias("trips"), F.avg("trip_distance").alias("mean_distance"))
        .select(*with_bounds(F.col("start"), _WINDOW), "pickup_cell", "trips", "mean_distance")
    )


def _cell(end: str) -> Column:
    """Returns the number of the cell of one end of a trip, from 1; null outside the grid."""
    # How many cells it lies south and east of the corner: half a cell before the centre of the first one.
    south = (F.lit(_NORTH) - F.col(f"{end}_latitude")) * _METRES_SOUTH / _CELL_METRES + 0.5
    east = (F.col(f"{end}_longitude") - F.lit(_WEST)) * _METRES_EAST / _CELL_METRES + 0.5
    is_inside = (south >= 0) & (south < _SIDE) & (east >= 0) & (east < _SIDE)
    row, column = F.floor(south) + 1, F.floor(east) + 1
    return F.when(is_inside, (row - 1) * _SIDE + column).cast("bigint")
