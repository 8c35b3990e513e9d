"""The windows that the expected answers are made of, against plain loops."""

import random
from collections import defaultdict

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.spark.expected.exact import as_units, from_units
from penstock.spark.expected.windows import (
    as_timestamp,
    epoch_micros,
    floor_to,
    sliding_starts,
    sliding_steps,
    sliding_sums,
)

Rows = list[tuple[int, str, int]]


def by_loops(rows: Rows, size: int, slide: int) -> dict[tuple[int, str], tuple[int, int]]:
    """Windows by their start and key, with the number of rows and the sum."""
    sums: dict[tuple[int, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for time, key, value in rows:
        for start in range(-2_000 * slide, 2_000 * slide, slide):
            if start <= time < start + size:
                n, total = sums[start, key]
                sums[start, key] = n + 1, total + value
    return dict(sums)


@pytest.mark.parametrize(("size", "slide"), [(10, 10), (12, 3), (60, 1)])
def test_sliding_sums_are_those_of_loops(spark: SparkSession, size: int, slide: int) -> None:
    draw = random.Random(size)
    # Around time 0, with gaps that are longer than a window, and values that add up to 0 now and then.
    rows = [
        (draw.choice([-300, -5, 0, 7, 200]) + draw.randrange(30), draw.choice("abc"), draw.randrange(-3, 4))
        for _ in range(150)
    ]
    frame = spark.createDataFrame(rows, "at bigint, key string, m bigint")
    sums = sliding_sums(frame, time=F.col("at"), size=size, slide=slide, keys=["key"], values=["m"])
    found = {(row["start"], row["key"]): (row["n"], row["m"]) for row in sums.collect()}
    assert found == by_loops(rows, size, slide)
    assert sums.count() == len(found)

    exploded = frame.select(F.explode(sliding_starts(F.col("at"), size, slide)).alias("start"), "key")
    counts = exploded.groupBy("start", "key").count().collect()
    assert {(row["start"], row["key"]): row["count"] for row in counts} == {
        window: n for window, (n, _) in found.items()
    }


def test_without_keys_there_is_one_group(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(-1,), (0,), (7_200,)], "at bigint")
    steps = sliding_steps(frame, time=F.col("at"), size=3_600, slide=1, keys=[])
    # The windows that start at -3600 have the first row only, those from -3599 on the second as well.
    assert sorted(tuple(row) for row in steps.collect()) == [
        (-3_600, -3_599, 1),
        (-3_599, 0, 2),
        (0, 1, 1),
        (3_601, 7_201, 1),
    ]


def test_times_before_1970_are_rounded_down(spark: SparkSession) -> None:
    times = spark.sql("select explode(array(-10000001, -1, 0, 9999999)) as micros")
    start = floor_to(epoch_micros(as_timestamp(F.col("micros").cast("bigint"))), 10_000_000)
    assert [row[0] for row in times.select(start).collect()] == [-20_000_000, -10_000_000, 0, 0]


def test_sums_of_floats_are_exact(spark: SparkSession) -> None:
    # In float64, what is added to a million million is rounded away.
    values = [(4_000_000.0, 0.001)] * 1_000 + [(-4_000_000.0, 0.0)] * 1_000
    frame = spark.createDataFrame(values, "large float, small float")
    total = F.sum(as_units(F.col("large"))) + F.sum(as_units(F.col("small")))
    thousandth = spark.sql("select cast(cast(0.001 as float) as double)").collect()[0][0]
    assert frame.select(from_units(total)).collect()[0][0] == thousandth * 1_000
