"""Aggregates over the rows of a window."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference.engine import cells, rows_of


def aggregated(values: pa.Array, *aggs: ps.Aggregate) -> dict[str, Any]:
    """The aggregates of one window over a column `x`."""
    table = pa.table({"t": pa.array([0] * len(values), pa.int64()), "x": values})
    (row,) = rows_of(ps.stream(table.schema, time="t").window(ps.tumbling(1)).agg(*aggs).run(table))
    return {name: value for name, value in row.items() if not name.startswith("window_")}


def output_type(kind: str, agg: ps.Aggregate) -> str:
    stream = ps.stream({"t": "int64", "x": kind}, time="t")
    return stream.window(ps.tumbling(1)).agg(agg.alias("r")).schema.types[2]


def test_count_counts_rows_or_values() -> None:
    found = aggregated(pa.array([1, None, 3]), ps.count(), ps.count("x"))
    assert found == {"count": 3, "x_count": 2}


def test_nulls_are_skipped() -> None:
    found = aggregated(pa.array([4, None, 2]), ps.sum("x"), ps.min("x"), ps.max("x"), ps.mean("x"))
    assert found == {"x_sum": 6, "x_min": 2, "x_max": 4, "x_mean": 3.0}


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.float32(), pa.decimal128(5, 2)])
def test_all_null_gives_null(kind: pa.DataType) -> None:
    found = aggregated(pa.nulls(3, kind), ps.sum("x"), ps.min("x"), ps.max("x"), ps.mean("x"), ps.count("x"))
    assert found == {"x_sum": None, "x_min": None, "x_max": None, "x_mean": None, "x_count": 0}


SUM_TYPES = [
    ("int8", "int64"), ("int16", "int64"), ("int32", "int64"), ("int64", "int64"), ("uint8", "uint64"),
    ("uint32", "uint64"), ("uint64", "uint64"), ("float32", "float64"), ("float64", "float64"),
    ("decimal128(10, 2)", "decimal128(38, 2)"), ("duration[ms]", "duration[ms]"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "total"), SUM_TYPES)
def test_the_type_of_a_sum(given: str, total: str) -> None:
    assert output_type(given, ps.sum("x")) == total


@pytest.mark.parametrize("kind", ["int8", "uint64", "float32", "float64", "decimal128(10, 2)"])
def test_the_type_of_a_mean_is_float64(kind: str) -> None:
    assert output_type(kind, ps.mean("x")) == "float64"


@pytest.mark.parametrize(
    "kind", ["int8", "uint64", "float32", "bool", "date32", "time64[ns]", "timestamp[us, tz=UTC]"]
)
def test_the_type_of_an_extreme_is_that_of_the_input(kind: str) -> None:
    assert output_type(kind, ps.min("x")) == kind
    assert output_type(kind, ps.max("x")) == kind


def test_counts_are_int64() -> None:
    assert output_type("string", ps.count("x")) == output_type("string", ps.count()) == "int64"


REFUSED = [
    *(("sum", kind) for kind in ("bool", "string", "binary", "timestamp[ms]", "date32", "time32[s]")),
    *(("mean", kind) for kind in ("bool", "string", "binary", "timestamp[ms]", "date32", "duration[s]")),
]


@pytest.mark.parametrize(("name", "kind"), REFUSED)
def test_what_cannot_be_added_is_refused(name: str, kind: str) -> None:
    agg = ps.sum("x") if name == "sum" else ps.mean("x")
    with pytest.raises(ps.TypeMismatchError, match=name) as caught:
        output_type(kind, agg)
    assert kind in str(caught.value)


def test_an_integer_sum_fails_only_if_the_total_does_not_fit() -> None:
    top, low = 2**63 - 1, -(2**63)
    assert aggregated(pa.array([top, top, low, low, 5], pa.int64()), ps.sum("x")) == {"x_sum": 3}
    assert aggregated(pa.array([top, 1, -1], pa.int64()), ps.sum("x")) == {"x_sum": top}
    assert aggregated(pa.array([low], pa.int64()), ps.sum("x")) == {"x_sum": low}
    for values in ([top, 1], [low, -1], [top] * 10):
        with pytest.raises(ps.ComputeError, match=r"(?i)overflow"):
            aggregated(pa.array(values, pa.int64()), ps.sum("x"))


def test_an_unsigned_sum_uses_the_whole_range() -> None:
    top = 2**64 - 1
    assert aggregated(pa.array([top - 1, 1], pa.uint64()), ps.sum("x")) == {"x_sum": top}
    with pytest.raises(ps.ComputeError, match=r"(?i)overflow"):
        aggregated(pa.array([top, 1], pa.uint64()), ps.sum("x"))


def test_an_overflow_in_one_window_is_an_error_of_the_run() -> None:
    stream = ps.stream({"t": "int64", "x": "int64"}, time="t").window(ps.tumbling(10)).agg(ps.sum("x"))
    fine = pa.table({"t": [1, 11], "x": [2**63 - 1, 1]})
    assert len(stream.run(fine)) == 2
    with pytest.raises(ps.ComputeError):
        stream.run(pa.table({"t": [1, 11, 12], "x": [1, 2**63 - 1, 1]}))


def test_a_decimal_sum_is_exact() -> None:
    cents = pa.array([Decimal("0.10")] * 30 + [Decimal("-1.00")], pa.decimal128(10, 2))
    assert aggregated(cents, ps.sum("x")) == {"x_sum": Decimal("2.00")}
    half = pa.array([Decimal(5 * 10**37), Decimal(5 * 10**37 - 1)], pa.decimal128(38, 0))
    assert aggregated(half, ps.sum("x")) == {"x_sum": Decimal(10**38 - 1)}
    with pytest.raises(ps.ComputeError, match=r"(?i)overflow"):
        aggregated(pa.array([Decimal(5 * 10**37)] * 2, pa.decimal128(38, 0)), ps.sum("x"))


def test_the_mean_of_large_integers_does_not_overflow() -> None:
    top = 2**63 - 1
    assert aggregated(pa.array([top] * 8, pa.int64()), ps.mean("x"))["x_mean"] == pytest.approx(2.0**63)
    assert aggregated(pa.array([2**64 - 1] * 8, pa.uint64()), ps.mean("x"))["x_mean"] == pytest.approx(
        2.0**64
    )
    assert aggregated(pa.array([Decimal("1.5"), Decimal("2.0")]), ps.mean("x")) == {"x_mean": 1.75}


def test_float_sums_of_many_values_are_close() -> None:
    values = [(-1) ** i * (i % 1000) * 1e-3 + 1e6 for i in range(20_000)]
    total = aggregated(pa.array(values), ps.sum("x"))["x_sum"]
    assert abs(total - math.fsum(values)) <= 1e-9 * math.fsum(map(abs, values))


def test_extremes_of_floats_follow_the_one_order() -> None:
    nan, inf = math.nan, math.inf
    found = aggregated(pa.array([1.0, nan, -inf, inf]), ps.min("x"), ps.max("x"))
    assert found["x_min"] == -inf
    assert math.isnan(found["x_max"])
    assert aggregated(pa.array([nan, 3.0]), ps.min("x")) == {"x_min": 3.0}
    assert math.isnan(aggregated(pa.array([nan, None]), ps.min("x"))["x_min"])
    assert aggregated(pa.array([0.0, -0.0]), ps.min("x"), ps.max("x")) == {"x_min": 0.0, "x_max": 0.0}


def test_sums_of_special_floats() -> None:
    assert aggregated(pa.array([1.0, math.inf]), ps.sum("x"), ps.mean("x")) == {
        "x_sum": math.inf,
        "x_mean": math.inf,
    }
    assert math.isnan(aggregated(pa.array([-math.inf, math.inf]), ps.sum("x"))["x_sum"])
    assert math.isnan(aggregated(pa.array([1.0, math.nan]), ps.mean("x"))["x_mean"])


def test_extremes_of_text_and_truth() -> None:
    text = pa.array(["b", None, "", "\U0001f600", "z", "é"])
    assert aggregated(text, ps.min("x"), ps.max("x")) == {"x_min": "", "x_max": "\U0001f600"}
    assert aggregated(pa.array([b"\x7f", b"\x80"]), ps.min("x"), ps.max("x")) == {
        "x_min": b"\x7f",
        "x_max": b"\x80",
    }
    assert aggregated(pa.array([True, None, False]), ps.min("x"), ps.max("x")) == {
        "x_min": False,
        "x_max": True,
    }


def test_a_duration_sum_keeps_its_unit() -> None:
    table = pa.table({"t": [0, 0], "x": pa.array([1500, 500], pa.duration("ms"))})
    result = ps.stream(table.schema, time="t").window(ps.tumbling(1)).agg(ps.sum("x")).run(table).to_arrow()
    assert result.schema.field("x_sum").type == pa.duration("ms")
    assert cells(result.column("x_sum")) == [2000]
    with pytest.raises(ps.ComputeError):
        aggregated(pa.array([2**63 - 1, 1], pa.duration("s")), ps.sum("x"))


def test_aggregates_of_expressions() -> None:
    found = aggregated(
        pa.array([1, None, 3]), ps.sum(ps.col("x") * 2).alias("twice"), ps.count(ps.col("x") > 1).alias("n")
    )
    assert found == {"twice": 8, "n": 2}


def test_names_of_aggregates() -> None:
    stream = ps.stream({"t": "int64", "x": "int64", "k": "string"}, time="t")
    windowed = stream.window(ps.tumbling(10), by="k")
    result = windowed.agg(
        ps.count(), ps.sum("x"), ps.min("x").alias("least"), top=ps.max("x"), m=ps.mean("x")
    )
    assert result.schema.names == ["window_start", "window_end", "k", "count", "x_sum", "least", "top", "m"]


@pytest.mark.parametrize(
    "aggs",
    [
        [ps.count(), ps.count()],
        [ps.sum("x"), ps.max("x").alias("x_sum")],
        [ps.count().alias("k")],
        [ps.count().alias("window_start")],
    ],
    ids=["twice", "alias", "key", "bound"],
)
def test_names_must_be_unique(aggs: list[ps.Aggregate]) -> None:
    windowed = ps.stream({"t": "int64", "x": "int64", "k": "string"}, time="t").window(
        ps.tumbling(10), by="k"
    )
    with pytest.raises(ps.PlanError, match=r"count|x_sum|k|window_start"):
        windowed.agg(*aggs)


def test_an_aggregate_of_an_unknown_column_is_refused() -> None:
    windowed = ps.stream({"t": "int64", "price": "int64"}, time="t").window(ps.tumbling(10))
    with pytest.raises(ps.UnknownColumnError, match="price") as caught:
        windowed.agg(ps.sum("prise"))
    assert (caught.value.column, caught.value.suggestion) == ("prise", "price")


def test_no_aggregate_is_refused() -> None:
    with pytest.raises(ValueError, match=r"(?i)aggregate"):
        ps.stream({"t": "int64"}, time="t").window(ps.tumbling(10)).agg()


def test_group_keys_with_nulls_and_odd_floats() -> None:
    nan = math.nan
    table = pa.table({"t": [1] * 7, "f": [nan, -0.0, None, 0.0, nan, None, 1.0]})
    rows = rows_of(
        ps.stream(table.schema, time="t").window(ps.tumbling(10), by="f").agg(n=ps.count()).run(table)
    )
    found = {str(row["f"]).replace("-0.0", "0.0"): row["n"] for row in rows}
    assert (len(rows), found) == (4, {"nan": 2, "0.0": 2, "None": 2, "1.0": 1})


def test_null_and_the_empty_text_are_different_keys() -> None:
    table = pa.table({"t": [1] * 4, "a": ["", None, "", None], "b": [None, "", "", None]})
    query = ps.stream(table.schema, time="t").window(ps.tumbling(10), by=["a", "b"]).agg(n=ps.count())
    assert {(row["a"], row["b"]) for row in rows_of(query.run(table))} == {
        ("", None),
        (None, ""),
        ("", ""),
        (None, None),
    }


def test_many_groups_and_windows() -> None:
    n = 20_000
    table = pa.table({"t": list(range(n)), "k": [f"key {i % 997} of many" for i in range(n)]})
    rows = rows_of(
        ps.stream(table.schema, time="t")
        .window(ps.tumbling(5000), by="k")
        .agg(n=ps.count(), s=ps.sum("t"))
        .run(table)
    )
    assert len(rows) == 4 * 997
    assert sum(int(str(row["n"])) for row in rows) == n
    assert sum(int(str(row["s"])) for row in rows) == n * (n - 1) // 2


def test_a_group_by_expression() -> None:
    table = pa.table({"t": [1, 2, 3, 4], "x": [-1, 1, 2, -3]})
    query = (
        ps.stream(table.schema, time="t")
        .window(ps.tumbling(10), by=(ps.col("x") % 2).alias("odd"))
        .agg(n=ps.count())
    )
    assert {row["odd"]: row["n"] for row in rows_of(query.run(table))} == {0: 1, 1: 3}
