"""NEXMark: the queries of the Flink suite that the engine has."""

from pyspark.sql import Column, DataFrame, Window
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


def q0(bid: DataFrame) -> DataFrame:
    """Returns the bids unchanged.

    Args:
        bid: The bids.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nexmark import q0
        >>> q0(generate(session(), "nexmark", rows=100, table="bid")).count()
        100
    """
    return bid.select("auction", "bidder", "price", "date_time", "extra")


def q1(bid: DataFrame) -> DataFrame:
    """Converts the prices of bids to euros: 0.908 to the dollar.

    Args:
        bid: The bids.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nexmark import q1
        >>> q1(generate(session(), "nexmark", rows=100, table="bid")).dtypes[2]
        ('price', 'decimal(23,3)')
    """
    euros = F.col("price").cast("decimal(19, 0)") * F.lit("0.908").cast("decimal(3, 3)")
    return bid.select("auction", "bidder", euros.cast("decimal(23, 3)").alias("price"), "date_time", "extra")


def q2(bid: DataFrame) -> DataFrame:
    """Selects the bids on every 123rd auction.

    Args:
        bid: The bids.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nexmark import q2
        >>> q2(generate(session(), "nexmark", rows=100, table="bid")).columns
        ['auction', 'price']
    """
    return bid.where(F.col("auction") % 123 == 0).select("auction", "price")


def q3(auction: DataFrame, person: DataFrame) -> DataFrame:
    """Auctions of category 10, with their sellers in three states, who joined in the same ten seconds.

    Args:
        auction: The auctions.
        person: The persons.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nexmark import q3
        >>> spark = session()
        >>> tables = {name: generate(spark, "nexmark", rows=50, table=name) for name in ("person", "auction")}
        >>> q3(**tables).columns
        ['window_start', 'window_end', 'name', 'city', 'state', 'id']
    """
    sellers = person.where(F.col("state").isin("OR", "ID", "CA")).select(
        _tumbling(), F.col("id").alias("seller"), "name", "city", "state"
    )
    auctions = auction.where(F.col("category") == 10).select(_tumbling(), "seller", "id")
    return auctions.join(sellers, on=["start", "seller"], how="inner").select(
        *with_bounds(F.col("start"), _WINDOW), "name", "city", "state", "id"
    )


def q5(bid: DataFrame) -> DataFrame:
    """Finds the auctions with the most bids in ten seconds, every two seconds, with ties.

    Args:
        bid: The bids.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nexmark import q5
        >>> q5(generate(session(), "nexmark", rows=100, table="bid")).columns
        ['window_start', 'window_end', 'auction', 'num']
    """
    bids = bid.select(epoch_micros(F.col("date_time")).alias(_AT), "auction")
    counts = sliding_sums(bids, time=F.col(_AT), size=_WINDOW, slide=_HOT_SLIDE, keys=["auction"])
    most = F.max("n").over(Window.partitionBy("start"))
    return (
        counts.withColumn("most", most)
        .where(F.col("n") == F.col("most"))
        .select(*with_bounds(F.col("start"), _WINDOW), "auction", F.col("n").alias("num"))
    )


def q7(bid: DataFrame) -> DataFrame:
    """Finds the bids with the highest price of each ten seconds, with ties.

    Args:
        bid: The bids.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nexmark import q7
        >>> q7(generate(session(), "nexmark", rows=100, table="bid")).columns
        ['window_start', 'window_end', 'auction', 'price', 'bidder', 'date_time', 'extra']
    """
    bids = bid.select(_tumbling(), "auction", "price", "bidder", "date_time", "extra")
    highest = bids.groupBy("start").agg(F.max("price").alias("price"))
    return bids.join(highest, on=["start", "price"], how="left_semi").select(
        *with_bounds(F.col("start"), _WINDOW), "auction", "price", "bidder", "date_time", "extra"
    )


def q8(auction: DataFrame, person: DataFrame) -> DataFrame:
    """Finds the persons who opened an auction in the ten seconds in which they joined.

    Args:
        auction: The auctions.
        person: The persons.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nexmark import q8
        >>> spark = session()
        >>> tables = {name: generate(spark, "nexmark", rows=50, table=name) for name in ("person", "auction")}
        >>> q8(**tables).columns
        ['window_start', 'window_end', 'id', 'name']
    """
    persons = person.select(_tumbling(), "id", "name").distinct()
    sellers = auction.select(_tumbling(), F.col("seller").alias("id"))
    return persons.join(sellers, on=["start", "id"], how="left_semi").select(
        *with_bounds(F.col("start"), _WINDOW), "id", "name"
    )


def q11(bid: DataFrame) -> DataFrame:
    """Counts the bids of each person, until a pause of ten seconds or more.

    Args:
        bid: The bids.

    Returns:
        The answer.

    Example:
        >>> from penstock.spark import generate, session
        >>> from penstock.spark.expected.nexmark import q11
        >>> q11(generate(session(), "nexmark", rows=100, table="bid")).columns
        ['window_start', 'window_end', 'bidder', 'bid_count']
    """
    bids = bid.select(epoch_micros(F.col("date_time")).alias(_AT), "bidder")
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
