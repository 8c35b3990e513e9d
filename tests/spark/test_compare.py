"""A wrong answer is caught, whatever is wrong with it."""

from collections.abc import Callable
from datetime import datetime

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
