"""`select` and `with_columns`: which columns come out, in which order, computed from what."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as ps
from reference.engine import rows_of

TABLE = pa.table({"a": [1, 2], "b": [10, 20], "t": pa.array([0, 1], pa.timestamp("s"))})


def stream() -> ps.Stream:
    return ps.stream(TABLE.schema, time="t")


def test_select_orders_and_drops() -> None:
    query = stream().select("b", "a")
    assert query.schema.names == ["b", "a"]
    assert sorted(map(str, rows_of(query.run(TABLE)))) == ["{'b': 10, 'a': 1}", "{'b': 20, 'a': 2}"]


def test_select_may_swap_names() -> None:
    query = stream().select(a=ps.col("b"), b=ps.col("a"))
    assert {(row["a"], row["b"]) for row in rows_of(query.run(TABLE))} == {(10, 1), (20, 2)}


def test_a_column_may_be_selected_twice_under_two_names() -> None:
    query = stream().select("a", again=ps.col("a"))
    assert {(row["a"], row["again"]) for row in rows_of(query.run(TABLE))} == {(1, 1), (2, 2)}


def test_with_columns_appends_at_the_end_and_replaces_in_place() -> None:
    query = stream().with_columns(c=ps.col("a") + ps.col("b"), a=ps.col("a") / 2)
    assert query.schema.names == ["a", "b", "t", "c"]
    assert query.schema.types[0] == "float64"
    assert query.time == "t"


def test_with_columns_sees_the_columns_as_they_were() -> None:
    """All expressions of one call read the input, none reads what another one makes."""
    query = stream().with_columns(a=ps.col("b"), b=ps.col("a"), c=ps.col("a") + 1)
    assert {(row["a"], row["b"], row["c"]) for row in rows_of(query.run(TABLE))} == {(10, 1, 2), (20, 2, 3)}


def test_a_new_column_is_not_known_within_the_same_call() -> None:
    with pytest.raises(ps.UnknownColumnError, match="fresh"):
        stream().with_columns(fresh=ps.col("a"), more=ps.col("fresh") + 1)


def test_a_constant_column() -> None:
    query = stream().select("a", one=ps.lit(1), word=ps.lit("w"), yes=ps.lit(True))
    assert {(row["one"], row["word"], row["yes"]) for row in rows_of(query.run(TABLE))} == {(1, "w", True)}
    assert query.schema.types == ["int64", "int64", "string", "bool"]


def test_select_keeps_the_time_column_only_if_it_is_chosen() -> None:
    assert stream().select("t", "a").time == "t"
    assert stream().select("a").time is None


def test_positional_expressions_keep_their_names() -> None:
    query = stream().with_columns((ps.col("a") * 2).alias("twice"), thrice=ps.col("a") * 3)
    assert query.schema.names == ["a", "b", "t", "twice", "thrice"]


def test_selecting_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="select"):
        stream().select()


def test_a_filter_without_predicates_is_refused_or_keeps_everything() -> None:
    try:
        query = stream().filter()
    except (ValueError, TypeError):
        return
    assert len(query.run(TABLE)) == 2


def test_several_predicates_are_a_conjunction() -> None:
    query = stream().filter(ps.col("a") > 0, ps.col("b") > 10)
    assert [row["a"] for row in rows_of(query.run(TABLE))] == [2]


def test_names_are_any_text() -> None:
    names = ["", " ", "a b", "ü", 'quote"', "new\nline", "\U0001f600", "a.b", "select", "0"]
    table = pa.table({name: [i] for i, name in enumerate(names)})
    query = ps.stream(table.schema).select(*names)
    assert rows_of(query.run(table)) == [{name: i for i, name in enumerate(names)}]


def test_a_name_twice_in_the_schema_is_refused() -> None:
    with pytest.raises(ps.PlanError, match="twin"):
        ps.stream(pa.schema([("twin", pa.int64()), ("twin", pa.string())]))


def test_many_columns() -> None:
    names = [f"column_{i}" for i in range(1000)]
    table = pa.table({name: [i, -i] for i, name in enumerate(names)})
    query = (
        ps.stream(table.schema)
        .filter(ps.col("column_999") > 0)
        .select(total=ps.col("column_1") + ps.col("column_998"))
    )
    assert rows_of(query.run(table)) == [{"total": 999}]
