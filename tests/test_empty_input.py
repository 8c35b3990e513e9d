"""No rows in: no rows out, with the columns and types of the plan, for every shape of plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

SCHEMA = pa.schema(
    [
        ("t", pa.timestamp("ms")),
        ("k", pa.string()),
        ("v", pa.int32()),
        ("f", pa.float64()),
        ("keep", pa.bool_()),
    ]
)
TABLE = pa.table({"k": ["a"], "g": pa.array([1], pa.int16())})

BY = ["k", "keep"]

SHAPES: dict[str, tuple[Callable[[ps.Stream], ps.Stream], list[tuple[str, pa.DataType]]]] = {
    "source": (lambda s: s, [(field.name, field.type) for field in SCHEMA]),
    "filter": (lambda s: s.filter(ps.col("keep")), [(field.name, field.type) for field in SCHEMA]),
    "select": (lambda s: s.select("v", d=ps.col("v") / 2), [("v", pa.int32()), ("d", pa.float64())]),
    "with columns": (
        lambda s: s.select("k").with_columns(known=ps.col("k").is_not_null()),
        [("k", pa.string()), ("known", pa.bool_())],
    ),
    "inner lookup": (lambda s: s.select("k").lookup(TABLE, on="k"), [("k", pa.string()), ("g", pa.int16())]),
    "left lookup": (
        lambda s: s.select("k").lookup(TABLE, on="k", how="left"),
        [("k", pa.string()), ("g", pa.int16())],
    ),
    "window": (
        lambda s: s.window(ps.tumbling("1s")).agg(ps.count()),
        [("window_start", pa.timestamp("ms")), ("window_end", pa.timestamp("ms")), ("count", pa.int64())],
    ),
    "window by key": (
        lambda s: s.window(ps.tumbling("1s"), by=BY).agg(ps.sum("v"), m=ps.mean("v"), x=ps.max("f")),
        [
            ("window_start", pa.timestamp("ms")), ("window_end", pa.timestamp("ms")), ("k", pa.string()),
            ("keep", pa.bool_()), ("v_sum", pa.int64()), ("m", pa.float64()), ("x", pa.float64()),
        ],
    ),
    "behind a window": (
        lambda s: s.window(ps.tumbling("1s"), by="k").agg(n=ps.count()).filter(ps.col("n") > 1).select("n"),
        [("n", pa.int64())],
    ),
}  # fmt: skip

INPUTS: dict[str, Callable[[], Any]] = {
    "an empty table": lambda: SCHEMA.empty_table(),
    "an empty batch": lambda: pa.RecordBatch.from_pylist([], schema=SCHEMA),
    "several empty batches": lambda: [pa.RecordBatch.from_pylist([], schema=SCHEMA)] * 3,
    "no batch": lambda: [],
    "a reader without batches": lambda: pa.RecordBatchReader.from_batches(SCHEMA, iter([])),
    "an empty generator": lambda: iter(()),
}


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_empty_input_keeps_the_schema(shape: str, given: str) -> None:
    build, expected = SHAPES[shape]
    query = build(ps.stream(SCHEMA, time="t"))
    result = query.run(INPUTS[given]())
    table = result.to_arrow()
    assert table.num_rows == len(result) == 0
    assert [(field.name, field.type) for field in table.schema] == expected
    assert query.schema.names == [name for name, _ in expected]
    assert (result.rows_in, result.rows_out, result.rows_late, result.rows_filtered) == (0, 0, 0, 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_all_rows_filtered_out_is_as_good_as_empty(shape: str) -> None:
    build, expected = SHAPES[shape]
    query = build(ps.stream(SCHEMA, time="t").filter(ps.col("v") > 100))
    rows = pa.Table.from_pylist([{"t": 1, "k": "a", "v": 1, "f": 0.5, "keep": True}], schema=SCHEMA)
    result = query.run(rows)
    assert [(field.name, field.type) for field in result.to_arrow().schema] == expected
    assert (len(result), result.rows_in, result.rows_filtered) == (0, 1, 1)
