"""Results: handed out as Arrow any number of times, shown in a notebook, counted."""

from __future__ import annotations

import re
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa

import penstock as ps
from reference.engine import assert_nothing_lost, rows_of, run_quietly

TABLE = pa.table(
    {
        "t": pa.array([1, 2, 11], pa.timestamp("ms")),
        "k": ["a", None, "b"],
        "x": pa.array([1, None, 3], pa.int32()),
        "f": [0.5, None, -1.0],
        "d": pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(5, 2)),
        "b": [True, None, False],
    }
)


def result() -> ps.Result:
    return ps.stream(TABLE.schema, time="t").filter(ps.col("t").is_not_null()).run(TABLE)


def test_the_length_is_the_number_of_rows() -> None:
    assert len(result()) == result().rows_out == 3


def test_it_can_be_read_any_number_of_times() -> None:
    found = result()
    tables = [pa.table(found) for _ in range(3)]
    assert tables[0].equals(tables[1])
    assert tables[1].equals(tables[2])
    assert tables[0].num_rows == 3


def test_a_capsule_can_outlive_the_result() -> None:
    reader = pa.RecordBatchReader.from_stream(result())
    assert reader.read_all().num_rows == 3


def test_two_readers_do_not_disturb_each_other() -> None:
    found = result()
    first, second = (pa.RecordBatchReader.from_stream(found) for _ in range(2))
    assert second.read_all().equals(first.read_all())


def test_arrow_pandas_and_polars_agree() -> None:
    found = result()
    table = found.to_arrow()
    assert isinstance(table, pa.Table)
    frame, polars = found.to_pandas(), found.to_polars()
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert list(frame.columns) == polars.columns == table.column_names
    assert len(frame) == len(polars) == table.num_rows
    assert rows_of(polars.to_arrow()) == rows_of(table)
    for name in ("x", "f"):
        expected = [value for value in table.column(name).to_pylist() if value is not None]
        assert frame[name].dropna().tolist() == expected


def test_foreign_readers_take_it() -> None:
    assert pl.DataFrame(result()).shape == (3, 6)
    assert pa.schema(result().schema) == result().to_arrow().schema


def test_the_result_is_valid_arrow() -> None:
    result().to_arrow().validate(full=True)
    windowed = (
        ps.stream(TABLE.schema, time="t")
        .window(ps.tumbling("10ms"), by=["k", "b", "d"])
        .agg(ps.max("k").alias("m"))
    )
    windowed.run(TABLE).to_arrow().validate(full=True)


def test_the_result_survives_its_input() -> None:
    """Nothing in the result points into memory that goes away with the input."""
    data = pa.table({"s": [f"text number {i} that does not fit into a view" for i in range(1000)]})
    found = ps.stream(data.schema).run(data)
    expected = data.column("s").to_pylist()
    del data
    assert sorted(str(row["s"]) for row in rows_of(found)) == sorted(expected)


def test_repr_shows_the_size_and_the_columns() -> None:
    text = repr(result())
    assert "3" in text
    assert "k" in text


def test_html_is_a_table() -> None:
    html = result()._repr_html_()
    assert "<table" in html
    assert "</table>" in html
    assert re.search(r">\s*k\b", html)
    assert "1.25" in html


def test_html_escapes_names_and_values() -> None:
    name = '<img src=x onerror="alert(1)">'
    data = pa.table({name: ["<script>alert('x')</script>", "a & b", None]})
    html = ps.stream(data.schema).run(data)._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
    assert "&lt;img" in html
    assert "a &amp; b" in html


def test_html_of_a_large_result_is_short() -> None:
    data = pa.table({"x": list(range(100_000))})
    html = ps.stream(data.schema).run(data)._repr_html_()
    assert len(html) < 100_000
    assert re.search(r"100[,\u202f_ ]?000", html)


def test_html_and_repr_of_an_empty_result() -> None:
    empty = ps.stream(TABLE.schema).run([])
    assert "<table" in empty._repr_html_()
    assert repr(empty)


def test_metrics_account_for_every_row() -> None:
    stream = ps.stream({"t": "int64", "x": "int64"}, time="t").filter(ps.col("x") > 0)
    query = stream.window(ps.tumbling(10)).agg(n=ps.count()).filter(ps.col("n") > 1)
    data = pa.table({"t": [5, 6, 25, 3, 26, 27], "x": [1, 1, 1, 1, 0, None]})
    found = run_quietly(query, data)
    metrics = assert_nothing_lost(found)
    assert (found.rows_in, found.rows_filtered, found.rows_late, metrics["rows_contributed"]) == (6, 2, 1, 3)
    assert found.rows_out == 1, "windows dropped behind the aggregation are no rows of the input"


def test_metrics_are_plain_values() -> None:
    metrics = result().metrics()
    assert isinstance(metrics, dict)
    for name in ("rows_in", "rows_out", "rows_late", "rows_filtered", "rows_contributed"):
        assert type(metrics[name]) is int, name
    assert result().seconds >= 0.0


def test_results_do_not_change() -> None:
    found = result()
    before = found.metrics()
    rows_of(found)
    assert found.metrics() == before
