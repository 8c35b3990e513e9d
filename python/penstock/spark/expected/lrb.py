"""LRB: tolls and accidents, and the two queries of LightSaber's set. Times are in whole seconds."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.spark.expected.windows import (
    each_start,
    floor_to,
    running_sums,
    sliding_starts,
    sliding_sums,
)

__all__ = ["lrb", "lrb1", "lrb2"]

_MINUTE = 60
_ACCIDENT_SIZE, _ACCIDENT_SLIDE = 120, 30
_REPORTS_OF_A_STOP = 4
_VEHICLES_OF_AN_ACCIDENT = 2
_LAV_MINUTES = 5
# How far an accident waives tolls: its own segment and the four before it.
_SEGMENTS_DOWNSTREAM = 4
_SLOW = 40
_FREE_VEHICLES = 50
_SEGMENT = ["xway", "dir", "seg"]


def lrb(reports: DataFrame) -> DataFrame:
    """Computes the toll of each segment and minute with vehicles.

    Args:
        reports: What cars report.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.lrb import lrb
        >>> lrb(generate(session(), "lrb", rows=100)).columns[2:]
        ['xway', 'dir', 'seg', 'lav', 'vehicles', 'accident', 'toll']
    """
    reports = _position_reports(reports)
    place = ["minute", *_SEGMENT]
    tolls = _vehicles(reports).join(_lav(reports), on=place, how="inner")
    waived = _live_accidents(reports).withColumn("accident", F.lit(True))
    n, lav = F.col("vehicles"), F.col("lav")
    # A mean of means has no common denominator that fits whole numbers, so this is a comparison of floats.
    # Where all vehicles go at 40, it is exact. Otherwise rounding decides only where the exact mean of many
    # different speeds is 40 to the last of 15 digits.
    is_due = (lav < _SLOW) & (n > _FREE_VEHICLES) & ~F.col("accident")
    due = 2 * (n - _FREE_VEHICLES) * (n - _FREE_VEHICLES)
    return (
        tolls.join(waived, on=place, how="left")
        .withColumn("accident", F.coalesce("accident", F.lit(False)))
        .select(
            F.col("minute").alias("window_start"),
            (F.col("minute") + _MINUTE).alias("window_end"),
            *_SEGMENT,
            "lav",
            "vehicles",
            "accident",
            F.when(is_due, due).otherwise(F.lit(0)).cast("bigint").alias("toll"),
        )
    )


def lrb1(reports: DataFrame) -> DataFrame:
    """Finds the segments whose mean speed in 300 seconds is below 40, every second.

    Args:
        reports: What cars report.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.lrb import lrb1
        >>> lrb1(generate(session(), "lrb", rows=100)).columns
        ['window_start', 'window_end', 'xway', 'dir', 'seg', 'mean_speed']
    """
    size = 300
    reports = _position_reports(reports).select("time", *_SEGMENT, F.col("speed").cast("bigint"))
    sums = sliding_sums(reports, time=F.col("time"), size=size, slide=1, keys=_SEGMENT, values=["speed"])
    # In whole numbers: a mean of 40 is not below it, however it is rounded.
    return sums.where(F.col("speed") < _SLOW * F.col("n")).select(
        *_bounds("start", size), *_SEGMENT, (F.col("speed") / F.col("n")).alias("mean_speed")
    )


def lrb2(reports: DataFrame) -> DataFrame:
    """Counts the vehicles in each segment in 30 seconds, every second.

    Args:
        reports: What cars report.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.lrb import lrb2
        >>> lrb2(generate(session(), "lrb", rows=100)).columns
        ['window_start', 'window_end', 'xway', 'dir', 'seg', 'vehicles']
    """
    size = 30
    time = F.col("time")
    later = F.lead(time).over(Window.partitionBy("vid", *_SEGMENT).orderBy(time))
    # A report puts its vehicle into the windows that begin in `(time - size, time]`, but for those that the
    # next one puts it into as well: there it counts as one.
    present = _position_reports(reports).select(
        (time - size + 1).alias("start"), F.least(time, later - size).alias("last"), *_SEGMENT
    )
    come = present.select("start", *_SEGMENT, F.lit(1).alias("n"))
    go = present.select((F.col("last") + 1).alias("start"), *_SEGMENT, F.lit(-1).alias("n"))
    counts = running_sums(come.unionByName(go), keys=_SEGMENT, values=["n"]).where(F.col("n") > 0)
    return each_start(counts, 1).select(*_bounds("start", size), *_SEGMENT, F.col("n").alias("vehicles"))


def _bounds(start: str, size: int) -> list[Column]:
    return [F.col(start).alias("window_start"), (F.col(start) + size).alias("window_end")]


def _position_reports(reports: DataFrame) -> DataFrame:
    return reports.where(F.col("type") == 0).select(
        F.col("time").cast("bigint").alias("time"), "vid", "speed", *_SEGMENT, "lane", "pos"
    )


def _vehicles(reports: DataFrame) -> DataFrame:
    """Counts the distinct vehicles in each minute and segment."""
    minute = floor_to(F.col("time"), _MINUTE).alias("minute")
    return reports.groupBy(minute, *_SEGMENT).agg(F.count_distinct("vid").alias("vehicles"))


def _lav(reports: DataFrame) -> DataFrame:
    """Averages the speeds of up to five minutes, each the mean of the vehicles' means."""
    minute = floor_to(F.col("time"), _MINUTE).alias("minute")
    of_vehicles = reports.groupBy(minute, *_SEGMENT, "vid").agg(F.avg("speed").alias("speed"))
    of_minutes = of_vehicles.groupBy("minute", *_SEGMENT).agg(F.avg("speed").alias("speed"))
    # A minute counts for itself and for the four after it.
    counts_for = F.sequence(F.col("minute"), F.col("minute") + (_LAV_MINUTES - 1) * _MINUTE, F.lit(_MINUTE))
    return (
        of_minutes.select(F.explode(counts_for).alias("minute"), *_SEGMENT, "speed")
        .groupBy("minute", *_SEGMENT)
        .agg(F.avg("speed").alias("lav"))
    )


def _live_accidents(reports: DataFrame) -> DataFrame:
    """Finds the minutes and segments in which an accident waives the toll."""
    standing = reports.where((F.col("speed") == 0) & F.col("lane").between(1, 3))
    starts = sliding_starts(F.col("time"), _ACCIDENT_SIZE, _ACCIDENT_SLIDE)
    stops = (
        standing.select(F.explode(starts).alias("start"), *_SEGMENT, "lane", "pos", "vid")
        .groupBy("start", *_SEGMENT, "lane", "pos", "vid")
        .agg(F.count("*").alias("reports"))
        .where(F.col("reports") >= _REPORTS_OF_A_STOP)
    )
    accidents = (
        stops.groupBy("start", *_SEGMENT, "lane", "pos")
        .agg(F.count("*").alias("vehicles"))
        .where(F.col("vehicles") >= _VEHICLES_OF_AN_ACCIDENT)
    )
    # Live in the minute in which the window ends; an end on a boundary belongs to the minute before it.
    minute = floor_to(F.col("start") + _ACCIDENT_SIZE - 1, _MINUTE)
    # Downstream is where segments are numbered higher in direction 0 and lower in direction 1.
    ahead = F.when(F.col("dir") == 0, -F.col("by")).otherwise(F.col("by"))
    return (
        accidents.select(
            minute.alias("minute"),
            *_SEGMENT,
            F.explode(F.sequence(F.lit(0), F.lit(_SEGMENTS_DOWNSTREAM))).alias("by"),
        )
        .select("minute", "xway", "dir", (F.col("seg") + ahead).alias("seg"))
        .distinct()
    )
