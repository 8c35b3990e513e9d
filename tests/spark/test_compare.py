"""A wrong answer is caught, whatever is wrong with it."""

import math
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from penstock.spark import compare
from penstock.spark.comparison import as_frame

KEYS = ["window_start", "campaign_id"]


def answer() -> pa.Table:
    starts = [datetime(1970, 1, 1, 0, 0, second) for second in (0, 0, 10, 10, 20)]
    return pa.table(
        {
            "window_start": pa.array(starts, pa.timestamp("ms")),
            "campaign_id": pa.array([1, 2, 1, 2, 1], pa.int64()),
            "views": pa.array([10, 20, 30, 40, None], pa.int64()),
        }
    )


def with_views(table: pa.Table, views: pa.Array) -> pa.Table:
    return table.set_column(2, "views", views)


def with_campaign(table: pa.Table, campaign: int) -> pa.Table:
    return table.set_column(1, "campaign_id", pa.array([campaign] * table.num_rows, pa.int64()))


def test_equal_answers_are_equal(spark: SparkSession) -> None:
    comparison = compare(as_frame(spark, answer()), answer(), KEYS)
    assert comparison.ok
    assert comparison.equal == 5
    assert comparison.report() == "validated: 5 of 5 rows equal"


@pytest.mark.parametrize("cuts", [[0, 0, 2, 5], [0, 2, 2, 5], [0, 2, 5, 5], [0, 0, 0, 0, 1, 1, 1, 5, 5]])
def test_a_chunk_without_rows_takes_none_away(spark: SparkSession, cuts: list[int]) -> None:
    parts = [answer().slice(start, end - start) for start, end in pairwise(cuts)]
    chunked = pa.Table.from_batches(
        [part.to_batches()[0] if len(part) else pa.RecordBatch.from_pylist([], part.schema) for part in parts]
    )
    assert [len(chunk) for chunk in chunked.column("views").chunks] == [len(part) for part in parts]
    assert as_frame(spark, chunked).count() == 5


def test_neither_order_nor_the_unit_of_time_matters(spark: SparkSession) -> None:
    turned = answer().take([4, 2, 0, 1, 3]).select(["views", "campaign_id", "window_start"])
    seconds = turned.set_column(2, "window_start", turned.column("window_start").cast(pa.timestamp("s")))
    assert compare(as_frame(spark, answer()), seconds, KEYS).ok


@pytest.mark.parametrize(
    ("spoil", "counts"),
    [
        (lambda t: with_views(t, pc.add(t.column("views"), pa.array([1, 0, 0, 0, 0]))), (4, 0, 0, 1)),
        (lambda t: with_views(t, pc.fill_null(t.column("views"), 0)), (4, 0, 0, 1)),
        (lambda t: t.slice(1), (4, 1, 0, 0)),
        (lambda t: t.slice(0, 0), (0, 5, 0, 0)),
        (lambda t: pa.concat_tables([t, t.slice(2, 1)]), (5, 0, 1, 0)),
        (lambda t: pa.concat_tables([t, with_campaign(t.slice(0, 1), 9)]), (5, 0, 1, 0)),
        (lambda t: pa.concat_tables([t.slice(1), t.slice(1, 1)]), (4, 1, 1, 0)),
    ],
    ids=["off by one", "zero for null", "missing", "all missing", "twice", "extra", "missing and twice"],
)  # fmt: skip
def test_a_broken_answer_is_caught(
    spark: SparkSession, spoil: Callable[[pa.Table], pa.Table], counts: tuple[int, int, int, int]
) -> None:
    comparison = compare(as_frame(spark, answer()), spoil(answer()), KEYS)
    assert (comparison.equal, comparison.missing, comparison.extra, comparison.different) == counts
    assert not comparison.ok
    assert comparison.report().startswith("NOT EQUAL")
    for kind in ("missing", "extra", "different"):
        assert len(comparison.examples.get(kind, [])) == min(5, getattr(comparison, kind))


def test_the_report_shows_both_values(spark: SparkSession) -> None:
    spoilt = with_views(answer(), pa.array([11, 20, 30, 40, None]))
    report = compare(as_frame(spark, answer()), spoilt, KEYS).report()
    assert "window_start=1970-01-01 00:00:00 campaign_id=1 views=10, found views=11" in report


def test_null_keys_meet(spark: SparkSession) -> None:
    table = pa.table({"key": pa.array([None, 1], pa.int64()), "n": [1, 2]})
    assert compare(as_frame(spark, table), table, ["key"]).equal == 2


def test_other_columns_or_types_are_refused(spark: SparkSession) -> None:
    expected = as_frame(spark, answer())
    with pytest.raises(ValueError, match="columns differ"):
        compare(expected, answer().drop_columns(["views"]), KEYS)
    with pytest.raises(ValueError, match="columns differ"):
        compare(expected, with_views(answer(), answer().column("views").cast(pa.int32())), KEYS)
    with pytest.raises(ValueError, match="keys must be some of"):
        compare(expected, answer(), ["campaign"])


def means(*rows: tuple[int, float | None]) -> pa.Table:
    return pa.table(
        {"key": [key for key, _ in rows], "mean": pa.array([mean for _, mean in rows], pa.float64())}
    )


NEAR = [
    (1.0, 1.0 + 1e-10),
    (-1e300, -1e300 * (1 + 1e-10)),
    (0.0, -0.0),
    (math.nan, math.nan),
    (math.inf, math.inf),
    (None, None),
]
FAR = [
    (1.0, 1.0 + 1e-8),
    (1e300, -1e300),
    (0.0, 1e-300),
    (1e-12, 1.1e-12),
    (math.nan, 1.0),
    (math.inf, 1e300),
    (math.inf, -math.inf),
    (math.inf, math.nan),
    (None, 0.0),
    (None, math.nan),
]


@pytest.mark.parametrize("turned", [False, True])
def test_floats_may_differ_by_the_tolerance(spark: SparkSession, turned: bool) -> None:
    left = means(*((key, pair[turned]) for key, pair in enumerate([*NEAR, *FAR])))
    right = means(*((key, pair[not turned]) for key, pair in enumerate([*NEAR, *FAR])))
    comparison = compare(as_frame(spark, left), right, ["key"], tolerance=1e-9)
    assert (comparison.equal, comparison.different) == (len(NEAR), len(FAR))
    # Without a tolerance, the first two of them differ as well.
    assert compare(as_frame(spark, left), right, ["key"]).equal == len(NEAR) - 2


def test_keys_and_whole_numbers_are_exact_whatever_the_tolerance(spark: SparkSession) -> None:
    left = pa.table({"key": [1.0, 2.0], "n": [10**15, 5]})
    right = pa.table({"key": [1.0, 2.0 + 1e-12], "n": [10**15 + 1, 5]})
    comparison = compare(as_frame(spark, left), right, ["key"], tolerance=1e-9)
    assert (comparison.equal, comparison.different, comparison.missing, comparison.extra) == (0, 1, 1, 1)


def test_float32_too(spark: SparkSession) -> None:
    left, right = (
        pa.table({"key": [1], "mean": pa.array([value], pa.float32())}) for value in (1.0, 1.000_000_2)
    )
    assert compare(as_frame(spark, left), right, ["key"], tolerance=1e-6).ok
    assert not compare(as_frame(spark, left), right, ["key"], tolerance=1e-9).ok


def test_rows_of_one_key_find_their_partners(spark: SparkSession) -> None:
    # By the first mean alone, the rows would stand in another order on either side.
    step = 1e-12
    columns = ["key", "first", "name", "second"]
    left = [(1, 1.0, "b", 5.0), (1, 1.0 + step, "a", 5.0), (1, 1.0, "a", 7.0), (1, 3.0, "a", 1.0)]
    right = [(1, 1.0 + step, "b", 5.0), (1, 1.0, "a", 5.0), (1, 1.0 + step, "a", 7.0), (1, 3.0, "a", 1.0)]
    expected, found = (pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows])
                       for rows in (left, right))  # fmt: skip
    assert compare(as_frame(spark, expected), found, ["key"], tolerance=1e-9).equal == 4
    assert not compare(as_frame(spark, expected), found, ["key"]).ok
    # One of them is gone, and another is there twice.
    spoilt = pa.concat_tables([found.slice(1), found.slice(1, 1)])
    assert not compare(as_frame(spark, expected), spoilt, ["key"], tolerance=1e-9).ok


def test_a_second_row_is_extra_with_a_tolerance_too(spark: SparkSession) -> None:
    left, right = means((1, 2.0)), means((1, 2.0), (1, 2.0 + 1e-12))
    comparison = compare(as_frame(spark, left), right, ["key"], tolerance=1e-9)
    assert (comparison.equal, comparison.extra) == (1, 1)


@pytest.mark.parametrize("tolerance", [-1e-9, 1.0, math.nan])
def test_a_tolerance_is_a_share(spark: SparkSession, tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must be at least 0"):
        compare(as_frame(spark, answer()), answer(), KEYS, tolerance=tolerance)


def test_types_that_spark_has_not_are_widened(spark: SparkSession) -> None:
    table = pa.table({"key": pa.array([1, 2], pa.uint16()), "n": pa.array([2**64 - 1, None], pa.uint64())})
    assert as_frame(spark, table).dtypes == [("key", "int"), ("n", "decimal(20,0)")]
    assert compare(as_frame(spark, table), table, ["key"]).equal == 2
