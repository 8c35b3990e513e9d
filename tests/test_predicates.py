"""Predicates that are written as text: the hint is an expression that does what the text says."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.plan.predicates import predicate_hint

TABLE = pa.table(
    {
        "v": [1, 4, 5, None],
        "w": [2, 3, 5, 1],
        "k": [1, 1, 3, 0],
        "s": ["a", "a=b", "x and y", None],
        "flag": [True, False, None, True],
    }
)
COLUMNS = TABLE.schema.names
GENERIC = 'a predicate is written with col("..."), as in col("price") > 3'
# What was written, what to write, and the values of "w" in the rows that are kept.
WRITTEN: dict[str, tuple[str, list[int]]] = {
    "v > 3": ('col("v") > 3', [3, 5]),
    "v = 4": ('col("v") == 4', [3]),
    "v==4": ('col("v") == 4', [3]),
    "v <> 4": ('col("v") != 4', [2, 5]),
    "3 < v": ('3 < col("v")', [3, 5]),
    "v > w": ('col("v") > col("w")', [3]),
    "v > 3 and k < 2": ('(col("v") > 3) & (col("k") < 2)', [3]),
    "v > 3 AND k < 2": ('(col("v") > 3) & (col("k") < 2)', [3]),
    "v > 4 || k = 0": ('(col("v") > 4) | (col("k") == 0)', [5, 1]),
    "v > 3 && (k < 2 or w = 5)": ('(col("v") > 3) & ((col("k") < 2) | (col("w") == 5))', [3, 5]),
    "not v > 3": ('~(col("v") > 3)', [2]),
    "not flag": ('~col("flag")', [3]),
    "flag and v > 0": ('col("flag") & (col("v") > 0)', [2]),
    "v == null": ('col("v").is_null()', [1]),
    "v IS NULL": ('col("v").is_null()', [1]),
    "v is not None": ('col("v").is_not_null()', [2, 3, 5]),
    "None != v": ('col("v").is_not_null()', [2, 3, 5]),
    "v is null or k = 3": ('col("v").is_null() | (col("k") == 3)', [5, 1]),
    "v + w is null": ('(col("v") + col("w")).is_null()', [1]),
    "k in (1, 3)": ('col("k").is_in([1, 3])', [2, 3, 5]),
    "k NOT IN [1]": ('~col("k").is_in([1])', [5, 1]),
    "1 < v <= 4": ('(1 < col("v")) & (col("v") <= 4)', [3]),
    "v * 2 - 1 >= -w": ('((col("v") * 2) - 1) >= -col("w")', [2, 3, 5]),
    "v - 5 > -2": ('col("v") - 5 > -2', [3, 5]),
    "s = 'a=b'": ("col(\"s\") == 'a=b'", [3]),
    's == "x and y"': ("col(\"s\") == 'x and y'", [5]),
    "flag = true": ('col("flag") == True', [2, 1]),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_text_is_rewritten(text: str) -> None:
    written, kept = WRITTEN[text]
    found = predicate_hint(text, COLUMNS)
    assert found.startswith("write ")
    assert found.removeprefix("write ").replace("(", "").replace(")", "") == re.sub(r"[()]", "", written)
    scope: dict[str, Any] = {"col": ps.col}
    rows = ps.stream(TABLE.schema).filter(eval(found.removeprefix("write "), scope)).run(TABLE)
    assert [row["w"] for row in rows.to_pylist()] == kept


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "v >", "unknown > 3", "v > unknown", "v > 3 and unknown < 2", "f(v) > 3", "v.x > 3",
        "v < null", "v is 3", "v in w", "v like 'a%'", "v > 3; import os", "(" * 10_000, "v" + "+v" * 100_000,
        "v\0 > 3", "lambda v: v > 3", "None is None", "not 3", "3 < 4", "v", "s",
    ],
)  # fmt: skip
def test_other_text_leads_to_an_example(text: str) -> None:
    hint = f'a column is written col("{text}")' if text in COLUMNS else GENERIC
    assert predicate_hint(text, COLUMNS) == hint


def test_words_of_sql_may_be_names_of_columns() -> None:
    assert predicate_hint("null > 3 and true", ["null", "true"]) == 'write (col("null") > 3) & col("true")'
