"""LRB by hand: accidents that were planted, tolls around them, and speeds of exactly 40."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.spark import compare, expected
from penstock.spark.comparison import as_frame
from penstock.workloads import catalog, lrb

Report = dict[str, int]


def report(time: int, vid: int, speed: int, seg: int, direction: int = 0, lane: int = 1) -> Report:
    absent = dict.fromkeys(lrb.schema().names, -1)
    place = {"xway": 0, "dir": direction, "seg": seg, "pos": seg * 5_280 + 17, "lane": lane}
    return absent | place | {"time": time, "type": 0, "vid": vid, "speed": speed}


def crowd(minute: int, seg: int, speeds: list[int], direction: int = 0) -> list[Report]:
    """One report of each of many vehicles."""
    first = (minute * 1_000 + seg * 10 + direction) * 1_000
    return [report(minute * 60, first + n, speed, seg, direction) for n, speed in enumerate(speeds)]


def answer(spark: SparkSession, query: str, reports: list[Report]) -> DataFrame:
    """What Spark says, after the engine has said the same."""
    rows = pa.Table.from_pylist(reports, schema=pa.schema(lrb.schema()))
    right = expected(spark, "lrb", query, {"reports": as_frame(spark, rows)}).cache()
    asked = catalog.workload("lrb").query(query)
    comparison = compare(right, asked.build(7, 10_000).run(rows), asked.keys, tolerance=1e-9)
    assert comparison.ok, comparison.report()
    return right


def test_an_accident_waives_the_tolls_before_it(spark: SparkSession) -> None:
    for direction, before in ((0, range(46, 51)), (1, range(50, 55))):
        stops = [
            report(time, vid, 0, 50, direction, lane=2)
            for vid in (1, 2)
            for time in (60 + vid, 90 + vid, 120 + vid, 150 + vid)
        ]
        crowds = [
            row
            for minute in range(6)
            for seg in range(44, 57)
            for row in crowd(minute, seg, [30] * 60, direction)
        ]
        found = answer(spark, "lrb", stops + crowds).collect()
        # All eight reports lie in the window [60, 180): it ends in the minute [120, 180).
        waived = {(row["window_start"], row["seg"]) for row in found if row["accident"]}
        assert waived == {(120, seg) for seg in before}
        assert {row["toll"] for row in found if row["accident"]} == {0}
        free = [row for row in found if not row["accident"] and row["seg"] != 50]
        assert {(row["vehicles"], row["toll"]) for row in free} == {(60, 200)}


def test_what_is_no_accident(spark: SparkSession) -> None:
    times = (60, 90, 120, 150)
    one_vehicle = [report(time, 1, 0, 10) for time in times] * 2
    three_reports = [report(time, vid, 0, 20) for vid in (1, 2) for time in times[:3]]
    two_lanes = [report(time, lane, 0, 30, lane=lane) for lane in (1, 2) for time in times]
    on_the_exit = [report(time, vid, 0, 40, lane=4) for vid in (1, 2) for time in times]
    still_moving = [report(time, vid, 1, 60) for vid in (1, 2) for time in times]
    found = answer(spark, "lrb", one_vehicle + three_reports + two_lanes + on_the_exit + still_moving)
    assert not any(row["accident"] for row in found.collect())
    # Five places in two minutes each.
    assert found.count() == 5 * 2


def test_the_mean_is_over_vehicles_and_minutes(spark: SparkSession) -> None:
    # A vehicle with two reports counts once; minutes without vehicles are bridged, but not for ever.
    rows = [report(0, 1, 10, 5), report(30, 1, 20, 5), report(31, 2, 45, 5)]
    rows += [report(240, 3, 50, 5), report(300, 3, 60, 5)]
    found = answer(spark, "lrb", rows).orderBy("window_start").collect()
    assert [(row["window_start"], row["lav"], row["vehicles"]) for row in found] == [
        (0, 30.0, 2),
        (240, 40.0, 1),
        (300, 55.0, 1),
    ]


def test_tolls_begin_below_40_and_above_50_vehicles(spark: SparkSession) -> None:
    rows = crowd(0, 1, [40] * 60) + crowd(0, 2, [39] + [40] * 59) + crowd(0, 3, [30] * 50)
    rows += crowd(0, 4, [30] * 51)
    found = answer(spark, "lrb", rows).orderBy("seg").collect()
    assert [row["toll"] for row in found] == [0, 200, 0, 2]


def test_lrb1_leaves_out_a_mean_of_40(spark: SparkSession) -> None:
    rows = [report(0, 1, 39, 1), report(0, 2, 41, 1), report(0, 1, 39, 2), report(0, 2, 40, 2)]
    found = answer(spark, "lrb1", rows)
    assert {(row["seg"], row["mean_speed"]) for row in found.collect()} == {(2, 39.5)}
    assert found.count() == 300


def test_lrb2_counts_a_vehicle_once(spark: SparkSession) -> None:
    rows = [report(time, vid, 50, 1) for vid, time in ((1, 0), (1, 10), (2, 10), (3, 200))]
    found = answer(spark, "lrb2", rows).orderBy("window_start").collect()
    counts = [(row["window_start"], row["vehicles"]) for row in found]
    assert counts == [(start, 1) for start in range(-29, -19)] + [(start, 2) for start in range(-19, 11)] + [
        (start, 1) for start in range(171, 201)
    ]
