"""Pipelines on Spark give the answers that they give on one machine."""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as ps
from penstock import col
from penstock.spark import SparkJobError, compare, run
from penstock.spark.comparison import as_frame
from penstock.spark.errors import spark_errors
from penstock.spark.types import in_spark_types
from penstock.spark.validate import tolerance_of
from penstock.workloads.catalog import workload
from reference.stateful import PLANS, SCHEMA, VIEWS, table_of
from reference.stateful import rows_of as rows_in_any_order

ROWS = 20_000
QUERIES = [
    ("ysb", "ysb"),
    ("nyt", "nyt"),
    ("nexmark", "q5"),
    ("nexmark", "q7"),
    ("nexmark", "q8"),
    ("lrb", "lrb"),
]


def given(data: dict[str, Any]) -> Any:
    """Data by name, or the only one."""
    return data if len(data) > 1 else next(iter(data.values()))


@pytest.mark.parametrize("partitions", [1, 2, 8])
@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_the_answer_is_that_of_one_machine(
    spark: SparkSession, name: str, query: str, partitions: int
) -> None:
    made = workload(name)
    asked = made.queries[query]
    plan = asked.build(7, None)
    tables = {
        table: pa.table(made.tables[table](made.rows_of(table, ROWS), seed=7)) for table in asked.tables
    }
    expected = plan.run(given(tables))
    # Rows lie anywhere, as they do on a cluster.
    frames = {table: as_frame(spark, rows).repartition(3) for table, rows in tables.items()}
    found = run(plan, given(frames), partitions=partitions)
    comparison = compare(as_frame(spark, expected), found, asked.keys, tolerance=tolerance_of(query))
    assert comparison.ok, comparison.report()
    assert comparison.equal > 0


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
@pytest.mark.parametrize("name", ["tumbling", "no key", "session", "union", "window of windows"])
def test_which_rows_are_late_is_told_by_their_order(spark: SparkSession, name: str) -> None:
    plan = PLANS[name]
    # Far out of order, and with the largest times in the middle of all.
    rows: list[tuple[int, str | None, int]] = [
        ((number * 7_919) % 131 + 2 * (number % 97), "abcde"[number % 5], number % 9) for number in range(400)
    ]
    expected = plan.run(table_of(rows))
    assert expected.rows_late > 10
    numbered = table_of(rows).append_column("number", pa.array(range(len(rows))))
    frame = as_frame(spark, numbered).repartition(3)
    for partitions in (1, 3):
        found = run(plan, frame, order_by="number", partitions=partitions).toArrow()
        assert sorted(map(repr, found.to_pylist())) == rows_in_any_order(expected)
    everything = sum(row.n for row in run(plan, frame).collect())
    assert everything > sum(row["n"] for row in expected.to_pylist())


def test_watermarks_that_a_time_cannot_say(spark: SparkSession) -> None:
    schema = {"at": "uint8", "number": "int64"}
    plan = ps.stream(schema, time="at", delay=10).window(ps.tumbling(5)).agg(n=ps.count())
    times = [3, 20, 4, 30, 19, 255, 12]
    table = pa.table({"at": pa.array(times, pa.uint8()), "number": range(len(times))})
    frame = as_frame(spark, in_spark_types(table.to_batches()[0])).repartition(2)
    with pytest.warns(ps.LateRowsWarning):
        expected = plan.run(table)
    found = run(plan, frame, order_by=["number"])
    assert sorted((row.window_start, row.n) for row in found.collect()) == sorted(
        (row["window_start"], row["n"]) for row in expected.to_pylist()
    )


def test_where_nobody_can_tell_what_is_late(spark: SparkSession) -> None:
    frame = rows_of(spark, [(1, "a", 2)])
    mapped = ps.stream(SCHEMA, time="t").map_batches(lambda batch: batch, schema=SCHEMA)
    with pytest.raises(ps.PlanError, match="a function makes new rows before the first window"):
        run(mapped.window(ps.tumbling(5)).agg(n=ps.count()), frame, order_by="t")
    with pytest.raises(ValueError, match="no column 'number'"):
        run(VIEWS, frame, order_by="number")


def test_partitions_are_checked(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="from 1 to 256, not 0"):
        run(VIEWS, rows_of(spark, []), partitions=0)


def rows_of(spark: SparkSession, rows: list[tuple[int, str | None, int]]) -> DataFrame:
    return as_frame(spark, table_of(rows))


def test_types_come_back_as_spark_has_them(spark: SparkSession) -> None:
    schema = {
        "at": "timestamp[ms]",
        "small": "uint8",
        "large": "uint64",
        "day": "date32",
        "text": "string_view",
    }
    plan = ps.stream(schema, time="at").filter(col("small") > 1)
    rows = [
        {"at": datetime(2026, 1, 1), "small": 1, "large": 1, "day": date(2026, 1, 1), "text": "a"},
        {"at": datetime(2026, 1, 2), "small": 200, "large": 2**64 - 1, "day": date(2026, 1, 2), "text": None},
    ]
    batch = in_spark_types(pa.RecordBatch.from_pylist(rows, schema=pa.schema(plan.schema)))
    found = run(plan, as_frame(spark, batch))
    assert dict(found.dtypes)["at"] == "timestamp_ntz"
    assert [row.asDict() for row in found.collect()] == [rows[1] | {"large": Decimal(2**64 - 1)}]


def test_more_columns_than_needed_are_left_out(spark: SparkSession) -> None:
    frame = rows_of(spark, [(1, "a", 2)]).selectExpr("*", "'more' AS other")
    assert run(ps.stream({"x": "int64"}), frame).columns == ["x"]


def test_what_is_missing_is_said_before_the_job(spark: SparkSession) -> None:
    frame = rows_of(spark, [(1, "a", 2)])
    with pytest.raises(ValueError, match="no column 'xs'; did you mean 'x'"):
        run(ps.stream({"xs": "int64"}), frame)
    left, right = (ps.stream(SCHEMA, time="t", name=name) for name in ("left", "right"))
    both = left.join(right.select("t", "k", y="x"), window=ps.tumbling(10), on="k")
    with pytest.raises(ValueError, match=r"data for each of \['left', 'right'\]"):
        run(both, frame)
    with pytest.raises(ValueError, match="no data for the stream 'right'"):
        run(both, {"left": frame})
    counts = VIEWS.window(ps.tumbling(10), by="k").agg(n=ps.count())
    with pytest.raises(ValueError, match=r"goes by \['k'\]"):
        run(counts, frame, key="x")
    with pytest.raises(ValueError, match="has no operator with a key"):
        run(VIEWS, frame, key="k")
    assert run(counts, frame, key=["k"]).count() == 1
    with pytest.raises(ps.PlanError, match="close by the clock"):
        run(VIEWS.window(ps.tumbling(5), close_after="1s").agg(ps.count()), frame)


def test_the_error_of_an_executor_is_the_users(spark: SparkSession) -> None:
    plan = ps.stream(SCHEMA, time="t").with_columns(y=10 // col("x"))
    frame = rows_of(spark, [(1, "a", 2), (2, "a", 0)])
    with pytest.raises(SparkJobError, match="zero"), spark_errors():
        run(plan, frame).count()
    assert run(plan, frame, on_error="skip").count() == 1


def test_functions_go_along(spark: SparkSession) -> None:
    def doubled(batch: pa.RecordBatch) -> pa.Table:
        table = pa.table(batch)
        return table.set_column(2, "x", pa.array([2 * value for value in table.column("x").to_pylist()]))

    plan = ps.stream(SCHEMA, time="t").map_batches(doubled, schema=SCHEMA)
    assert [row.x for row in run(plan, rows_of(spark, [(1, "a", 2)])).collect()] == [4]


def test_without_rows_there_is_no_result(spark: SparkSession) -> None:
    counts = VIEWS.window(ps.tumbling(10), by="k").agg(n=ps.count())
    for order in (None, "x"):
        assert run(counts, rows_of(spark, []), order_by=order).collect() == []
    with pytest.raises(ValueError, match="order_by= names no column"):
        run(counts, rows_of(spark, []), order_by=[])


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("int64", "double"),
        ("int64", "string"),
        ("int64", "timestamp"),
        ("int64", "timestamp_ntz"),
        ("int32", "bigint"),
        ("string", "bigint"),
        ("float64", "bigint"),
        ("timestamp[ms]", "timestamp"),
        ("timestamp[us, tz=UTC]", "timestamp_ntz"),
        ("decimal128(6, 2)", "decimal(7,2)"),
        ("uint8", "bigint"),
    ],
)
def test_types_that_would_have_to_be_changed_are_refused(
    spark: SparkSession, declared: str, given: str
) -> None:
    frame = spark.createDataFrame([], f"x {given}, y bigint")
    plan = ps.stream({"x": declared, "y": "int64"})
    other = ps.stream({"x": declared, "y": "int64"}, name="other")
    cases: list[tuple[ps.Stream, Any]] = [
        (plan, frame),
        (plan.union(other), {"stream": frame, "other": frame}),
    ]
    for each, data in cases:
        with pytest.raises(ps.SchemaMismatchError, match=f"column 'x' of .* is {re.escape(given)}") as raised:
            run(each, data)
        assert raised.value.column == "x"


def test_narrower_types_fit(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1S AS a, 2Y AS b, CAST(0.5 AS float) AS c, CAST(1.25 AS decimal(4,2)) AS d")
    plan = ps.stream({"a": "int64", "b": "uint32", "c": "float64", "d": "decimal128(9, 3)"})
    assert [row.asDict() for row in run(plan, frame).collect()] == [
        {"a": 1, "b": 2, "c": 0.5, "d": Decimal("1.250")}
    ]


def test_what_is_no_pipeline_or_no_data_is_said(spark: SparkSession) -> None:
    frame = rows_of(spark, [(1, "a", 2)])
    with pytest.raises(TypeError, match=r"has several outputs \(a, b\): run each of them by itself"):
        run(ps.outputs(a=VIEWS, b=VIEWS), frame)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a pipeline is a Stream, as ps.stream.. makes it, not str"):
        run("views", frame)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a DataFrame of Spark, not Table"):
        run(VIEWS, table_of([]))
    with pytest.raises(TypeError, match="partitions must be a whole number, not str"):
        run(VIEWS, frame, partitions="4")  # type: ignore[arg-type]
    with pytest.raises(ps.PlanError, match="column '__group': on Spark this name is needed"):
        run(ps.stream({"__group": "int64"}), frame)
    with pytest.raises(ValueError, match="goes by an expression; leave key= out"):
        run(VIEWS.window(ps.tumbling(10), by=(col("x") % 2).alias("odd")).agg(n=ps.count()), frame, key="x")
