"""NEXMark by hand: the edges of windows and sessions, and ties."""

from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.spark import compare, expected
from penstock.spark.comparison import as_frame
from penstock.workloads import catalog, nexmark

EPOCH = datetime(1970, 1, 1)


def bids(*rows: tuple[float, int, int, int]) -> pa.Table:
    """Bids by second, auction, bidder and price."""
    columns = {
        "auction": [auction for _, auction, _, _ in rows],
        "bidder": [bidder for _, _, bidder, _ in rows],
        "price": [price for _, _, _, price in rows],
        "channel": ["Google"] * len(rows),
        "url": ["https://"] * len(rows),
        "date_time": [EPOCH + timedelta(seconds=second) for second, _, _, _ in rows],
        "extra": [""] * len(rows),
    }
    return pa.table(columns, schema=pa.schema(nexmark.schema("bid")))


def answer(spark: SparkSession, query: str, rows: pa.Table) -> DataFrame:
    """What Spark says, after the engine has said the same."""
    right = expected(spark, "nexmark", query, {"bid": as_frame(spark, rows)}).cache()
    asked = catalog.workload("nexmark").query(query)
    comparison = compare(right, asked.build(7, "1h").run({"bid": rows}), asked.keys)
    assert comparison.ok, comparison.report()
    return right


def seconds(time: datetime) -> float:
    return (time - EPOCH).total_seconds()


def test_a_pause_of_ten_seconds_ends_a_session(spark: SparkSession) -> None:
    times = {5: (0.0, 9.999, 19.999, -30.0, -20.001), 6: (3.0,)}
    rows = bids(*((second, 1, bidder, 1) for bidder, at in times.items() for second in at))
    found = answer(spark, "q11", rows).collect()
    assert sorted((row["bidder"], seconds(row[0]), seconds(row[1]), row["bid_count"]) for row in found) == [
        (5, -30.0, -10.001, 2),
        (5, 0.0, 19.999, 2),
        (5, 19.999, 29.999, 1),
        (6, 3.0, 13.0, 1),
    ]


def test_a_bid_on_a_boundary_belongs_to_the_later_window(spark: SparkSession) -> None:
    rows = bids((-0.001, 1, 1, 30), (0.0, 2, 2, 20), (10.0, 3, 3, 40), (9.999, 4, 4, 20))
    found = answer(spark, "q7", rows).collect()
    assert sorted((seconds(row["window_start"]), row["auction"], row["price"]) for row in found) == [
        (-10.0, 1, 30),
        (0.0, 2, 20),
        (0.0, 4, 20),
        (10.0, 3, 40),
    ]


def test_auctions_that_tie_are_all_hot(spark: SparkSession) -> None:
    rows = bids((1.0, 1, 1, 1), (1.5, 2, 2, 1), (4.0, 2, 1, 1))
    found = answer(spark, "q5", rows).collect()
    windows = sorted((seconds(row["window_start"]), row["auction"], row["num"]) for row in found)
    assert windows == [(-8, 1, 1), (-8, 2, 1), (-6, 1, 1), (-6, 2, 1)] + [
        (start, 2, 2) for start in (-4, -2, 0)
    ] + [(start, 2, 1) for start in (2, 4)]
