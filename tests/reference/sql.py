"""Answers by SQL, and rows that arrive out of order by no more than a stream allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from reference.aggregates import Approximate
from reference.engine import rows_of
from reference.published import find_published
from reference.types import Value

Numbers = npt.NDArray[np.int64]


def answer(
    query: str, tables: dict[str, pa.Table], approximate: Sequence[str] = ()
) -> list[dict[str, Value]]:
    """The rows of a query over tables. Columns that are approximate hold totals or means of floats.

    Those floats are not negative, so that a total is as large as all that went into it.
    """
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        rows = rows_of(connection.sql(query).to_arrow_table())
    for row in rows:
        for name in approximate:
            value = row[name]
            assert isinstance(value, float)
            row[name] = Approximate(value, abs(value))
    return rows


def arriving(rng: np.random.Generator, times: Numbers, delay: int) -> npt.NDArray[np.intp]:
    """The order in which rows of these times arrive, each later than it might by up to the delay."""
    return np.argsort(times + rng.integers(0, delay + 1, len(times)), kind="stable")


def tables(
    schema: Any, delay: int, *cells: st.SearchStrategy[Any], most: int = 40
) -> st.SearchStrategy[pa.Table]:
    """Random tables of a schema whose first column is the time, with a strategy for each column."""

    def build(rows: list[tuple[int, tuple[Any, ...]]]) -> pa.Table:
        arrived = [row for _, row in sorted(rows, key=lambda one: one[0] + one[1][0])]
        columns = zip(*arrived, strict=True) if arrived else [()] * len(cells)
        kinds = pa.schema(schema)
        arrays = [pa.array(values, kind.type) for values, kind in zip(columns, kinds, strict=True)]
        return pa.Table.from_arrays(arrays, schema=kinds)

    row = st.tuples(st.integers(0, delay), st.tuples(*cells))
    return st.lists(row, max_size=most).map(build)


def published(path: str) -> Path:
    """A published file; where it is not at hand, the test is skipped."""
    found = find_published(path)
    if found is None:
        pytest.skip(f"neither PENSTOCK_DATA nor shared/data beside the project has {path}")
    return found
