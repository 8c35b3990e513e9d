"""NEXMark: the queries of the Flink suite that the engine has."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from penstock.spark.expected.windows import (
    SECOND,
    as_timestamp,
    epoch_micros,
    floor_to,
    sliding_sums,
    with_bounds,
)

__all__ = ["q0", "q1", "q2", "q3", "q5", "q7", "q8", "q11"]

_WINDOW = 10 * SECOND
_HOT_SLIDE = 2 * SECOND
_PAUSE = 10 * SECOND
_AT = "at"


def q0(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The bids as they are.

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> q0(spark, {"bid": generate(spark, "nexmark", rows=100, table="bid")}, seed=7).count()
        100
    """
    return frames["bid"].select("auction", "bidder", "price", "date_time", "extra")


def q1(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The bids, with prices in euros: 0.908 to the dollar.

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> q1(spark, {"bid": generate(spark, "nexmark", rows=100, table="bid")}, seed=7).dtypes[2]
        ('price', 'decimal(23,3)')
    """
    euros = F.col("price").cast("decimal(19, 0)") * F.lit("0.908").cast("decimal(3, 3)")
    return frames["bid"].select(
        "auction", "bidder", euros.cast("decimal(23, 3)").alias("price"), "date_time", "extra"
    )


def q2(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The bids on every 123rd auction.

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> q2(spark, {"bid": generate(spark, "nexmark", rows=100, table="bid")}, seed=7).columns
        ['auction', 'price']
    """
    return frames["bid"].where(F.col("auction") % 123 == 0).select("auction", "price")


def q3(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """Auctions of category 10, with their sellers in three states, who joined in the same ten seconds.

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> tables = {name: generate(spark, "nexmark", rows=50, table=name) for name in ("person", "auction")}
        >>> q3(spark, tables, seed=7).columns
        ['window_start', 'window_end', 'name', 'city', 'state', 'id']
    """
    sellers = (
        frames["person"]
        .where(F.col("state").isin("OR", "ID", "CA"))
        .select(_tumbling(), F.col("id").alias("seller"), "name", "city", "state")
    )
    auctions = frames["auction"].where(F.col("category") == 10).select(_tumbling(), "seller", "id")
    return auctions.join(sellers, on=["start", "seller"], how="inner").select(
        *with_bounds(F.col("start"), _WINDOW), "name", "city", "state", "id"
    )


def q5(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The auctions with the most bids in ten seconds, every two seconds; all that tie.

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> q5(spark, {"bid": generate(spark, "nexmark", rows=100, table="bid")}, seed=7).columns
        ['window_start', 'window_end', 'auction', 'num']
    """
    bids = frames["bid"].select(epoch_micros(F.col("date_time")).alias(_AT), "auction")
    counts = sliding_sums(bids, time=F.col(_AT), size=_WINDOW, slide=_HOT_SLIDE, keys=["auction"])
    most = F.max("n").over(Window.partitionBy("start"))
    return (
        counts.withColumn("most", most)
        .where(F.col("n") == F.col("most"))
        .select(*with_bounds(F.col("start"), _WINDOW), "auction", F.col("n").alias("num"))
    )


def q7(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The bids with the highest price of each ten seconds; all that tie.

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> q7(spark, {"bid": generate(spark, "nexmark", rows=100, table="bid")}, seed=7).columns
        ['window_start', 'window_end', 'auction', 'price', 'bidder', 'date_time', 'extra']
    """
    bids = frames["bid"].select(_tumbling(), "auction", "price", "bidder", "date_time", "extra")
    highest = bids.groupBy("start").agg(F.max("price").alias("price"))
    return bids.join(highest, on=["start", "price"], how="left_semi").select(
        *with_bounds(F.col("start"), _WINDOW), "auction", "price", "bidder", "date_time", "extra"
    )


def q8(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The persons who opened an auction in the ten seconds in which they joined.

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> tables = {name: generate(spark, "nexmark", rows=50, table=name) for name in ("person", "auction")}
        >>> q8(spark, tables, seed=7).columns
        ['window_start', 'window_end', 'id', 'name']
    """
    persons = frames["person"].select(_tumbling(), "id", "name").distinct()
    sellers = frames["auction"].select(_tumbling(), F.col("seller").alias("id"))
    return persons.join(sellers, on=["start", "id"], how="left_semi").select(
        *with_bounds(F.col("start"), _WINDOW), "id", "name"
    )


def q11(spark: SparkSession, frames: Mapping[str, DataFrame], seed: int) -> DataFrame:
    """The bids of each person, until a pause of ten seconds or more.

    Args:
        spark: The session.
        frames: The tables of the workload.
        seed: The seed of the data set.

    Returns:
        The answer, with the columns of the query.

    Example:
        >>> from penstock.spark import generate, session
        >>> spark = session()
        >>> q11(spark, {"bid": generate(spark, "nexmark", rows=100, table="bid")}, seed=7).columns
        ['window_start', 'window_end', 'bidder', 'bid_count']
    """
    bids = frames["bid"].select(epoch_micros(F.col("date_time")).alias(_AT), "bidder")
    in_order = Window.partitionBy("bidder").orderBy(_AT)
    is_first = F.col(_AT) - F.lag(_AT).over(in_order) >= _PAUSE
    numbered = bids.withColumn("is_first", F.coalesce(is_first, F.lit(False)).cast("bigint"))
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        numbered.withColumn("session", F.sum("is_first").over(so_far))
        .groupBy("bidder", "session")
        .agg(F.min(_AT).alias("first"), F.max(_AT).alias("last"), F.count("*").alias("bid_count"))
        .select(
            as_timestamp(F.col("first")).alias("window_start"),
            as_timestamp(F.col("last") + _PAUSE).alias("window_end"),
            "bidder",
            "bid_count",
        )
    )


def _tumbling() -> Column:
    return floor_to(epoch_micros(F.col("date_time")), _WINDOW).alias("start")
