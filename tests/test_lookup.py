"""Lookups: a small table joined to each row."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import penstock as ps
from reference.engine import assert_nothing_lost, rows_of
from reference.plans import How

ADS = pa.table({"ad": pa.array([1, 2, 3], pa.int64()), "campaign": ["x", "y", None]})
ROWS = pa.table({"id": [0, 1, 2, 3, 4], "ad": pa.array([2, 9, None, 3, 1], pa.int64())})


def joined(how: How, table: Any = ADS, rows: pa.Table = ROWS, on: str | list[str] = "ad") -> dict[Any, Any]:
    result = ps.stream(rows.schema).lookup(table, on=on, how=how).run(rows)
    assert_nothing_lost(result)
    return {row["id"]: row["campaign"] for row in rows_of(result)}


def test_inner_drops_rows_without_a_match() -> None:
    assert joined("inner") == {0: "y", 3: None, 4: "x"}


def test_left_keeps_them_with_nulls() -> None:
    assert joined("left") == {0: "y", 1: None, 2: None, 3: None, 4: "x"}


def test_inner_is_the_default() -> None:
    assert ps.stream(ROWS.schema).lookup(ADS, on="ad") == ps.stream(ROWS.schema).lookup(
        ADS, on="ad", how="inner"
    )


def test_misses_count_as_filtered() -> None:
    result = ps.stream(ROWS.schema).lookup(ADS, on="ad").run(ROWS)
    assert (result.rows_in, result.rows_filtered, result.rows_out) == (5, 2, 3)


def test_a_null_key_in_the_table_matches_nothing() -> None:
    table = pa.table({"ad": pa.array([1, None], pa.int64()), "campaign": ["x", "nobody"]})
    assert joined("inner", table) == {4: "x"}
    assert joined("left", table)[2] is None


@pytest.mark.parametrize("how", ["inner", "left"])
def test_an_empty_table_matches_nothing(how: How) -> None:
    assert joined(how, ADS.slice(0, 0)) == ({} if how == "inner" else dict.fromkeys(range(5)))


def test_several_keys() -> None:
    table = pa.table(
        {"b": ["p", "q", "p"], "a": pa.array([1, 1, 2], pa.int64()), "campaign": ["1p", "1q", "2p"]}
    )
    rows = pa.table(
        {"id": [0, 1, 2, 3], "a": pa.array([1, 2, 2, None], pa.int64()), "b": ["q", "p", "q", "p"]}
    )
    assert joined("inner", table, rows, ["a", "b"]) == {0: "1q", 1: "2p"}
    assert joined("left", table, rows, ["b", "a"]) == {0: "1q", 1: "2p", 2: None, 3: None}


def test_columns_of_the_table_are_appended_in_order() -> None:
    table = ADS.append_column("weight", pa.array([0.5, 1.5, 2.5])).select(["weight", "ad", "campaign"])
    stream = ps.stream(ROWS.schema).lookup(table, on="ad")
    assert stream.schema.names == ["id", "ad", "weight", "campaign"]
    assert pa.schema(stream.schema).field("weight").type == pa.float64()


@pytest.mark.parametrize(
    "table",
    [
        ADS.combine_chunks().to_batches()[0],
        pl.from_arrow(ADS),
        ADS.to_pandas(),
        ADS.to_pandas(types_mapper=pd.ArrowDtype),
        pa.concat_tables([ADS.slice(0, 1), ADS.slice(1)]),
        pa.concat_tables([ADS, ADS]).slice(3, 3),
    ],
    ids=["batch", "polars", "pandas", "pandas arrow", "chunks", "slice"],
)
def test_the_table_may_be_anything_arrow(table: Any) -> None:
    assert joined("inner", table) == {0: "y", 3: None, 4: "x"}


def test_a_reader_as_a_table_is_read_once_for_all_runs() -> None:
    stream = ps.stream(ROWS.schema).lookup(ADS.to_reader(), on="ad")
    assert len(stream.run(ROWS)) == len(stream.run(ROWS)) == 3


def test_float_keys_follow_the_one_order() -> None:
    nan = float("nan")
    table = pa.table({"f": [nan, 0.0], "campaign": ["not a number", "zero"]})
    rows = pa.table({"id": [0, 1, 2], "f": [-0.0, nan, 1.0]})
    assert joined("inner", table, rows, "f") == {0: "zero", 1: "not a number"}


def test_equal_floats_in_the_table_are_one_key() -> None:
    for keys in ([0.0, -0.0], [float("nan"), -float("nan")]):
        with pytest.raises(ps.PlanError, match="key"):
            ps.stream({"f": "float64"}).lookup(pa.table({"f": keys, "n": [1, 2]}), on="f")


def test_a_key_twice_is_refused_and_named() -> None:
    table = pa.table({"ad": pa.array([7, 42, 42], pa.int64()), "campaign": ["x", "y", "z"]})
    with pytest.raises(ps.PlanError, match=r"42|rows 1 and 2"):
        ps.stream(ROWS.schema).lookup(table, on="ad")


def test_a_pair_of_keys_may_share_one_part() -> None:
    table = pa.table({"a": [1, 1, 2], "b": [1, 2, 1], "campaign": ["x", "y", "z"]})
    rows = pa.table({"id": [0], "a": [2], "b": [1]})
    assert joined("inner", table, rows, ["a", "b"]) == {0: "z"}
    with pytest.raises(ps.PlanError):
        ps.stream(rows.schema).lookup(pa.concat_tables([table, table.slice(2)]), on=["a", "b"])


def test_a_name_clash_is_refused() -> None:
    with pytest.raises(ps.PlanError, match="id"):
        ps.stream(ROWS.schema).lookup(ADS.rename_columns(["ad", "id"]), on="ad")


def test_an_unknown_key_is_named_with_the_closest_match() -> None:
    with pytest.raises(ps.UnknownColumnError, match="add") as caught:
        ps.stream(ROWS.schema).lookup(ADS, on="add")
    assert (caught.value.column, caught.value.suggestion) == ("add", "ad")


def test_a_key_missing_in_the_table_is_refused() -> None:
    with pytest.raises(ps.PlanError, match="id"):
        ps.stream(ROWS.schema).lookup(ADS, on="id")


def test_keys_of_other_types_are_refused() -> None:
    with pytest.raises(ps.TypeMismatchError, match="string") as caught:
        ps.stream(ROWS.schema).lookup(pa.table({"ad": ["1"], "campaign": ["x"]}), on="ad")
    assert "int64" in str(caught.value)


def test_an_unknown_kind_of_lookup_is_refused() -> None:
    with pytest.raises(ValueError, match="outer"):
        ps.stream(ROWS.schema).lookup(ADS, on="ad", how="outer")  # type: ignore[arg-type]


def test_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match="on"):
        ps.stream(ROWS.schema).lookup(ADS, on=[])


def test_a_table_that_is_none_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        ps.stream(ROWS.schema).lookup({"ad": [1]}, on="ad")  # type: ignore[dict-item]


def test_two_lookups_one_after_the_other() -> None:
    names = pa.table({"campaign": ["x", "y"], "owner": ["ann", "bob"]})
    stream = ps.stream(ROWS.schema).lookup(ADS, on="ad").lookup(names, on="campaign", how="left")
    assert {row["id"]: row["owner"] for row in rows_of(stream.run(ROWS))} == {0: "bob", 3: None, 4: "ann"}


def test_a_table_of_keys_alone_is_a_filter() -> None:
    stream = ps.stream(ROWS.schema).lookup(ADS.select(["ad"]), on="ad")
    assert stream.schema.names == ["id", "ad"]
    assert sorted(int(str(row["id"])) for row in rows_of(stream.run(ROWS))) == [0, 3, 4]


def test_a_large_sparse_table() -> None:
    keys = [(i * 2_654_435_761) % 2**40 - 2**39 for i in range(5000)]
    table = pa.table({"ad": pa.array(keys, pa.int64()), "campaign": [str(i) for i in range(5000)]})
    rows = pa.table({"id": list(range(5000)), "ad": pa.array(list(reversed(keys)), pa.int64())})
    assert joined("inner", table, rows) == {i: str(4999 - i) for i in range(5000)}


def test_extreme_keys() -> None:
    keys = [-(2**63), 2**63 - 1, 0, -1]
    table = pa.table({"ad": pa.array(keys, pa.int64()), "campaign": ["a", "b", "c", "d"]})
    rows = pa.table({"id": [0, 1, 2, 3], "ad": pa.array(keys, pa.int64())})
    assert joined("inner", table, rows) == {0: "a", 1: "b", 2: "c", 3: "d"}
