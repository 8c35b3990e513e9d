"""`when`, `coalesce` and `fill_null`: one value or another, and what is not taken cannot fail."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps

COL = ps.col
LONG = "a text of more than twelve bytes"


def value_of(expression: ps.Expr, **columns: pa.Array) -> list[Any]:
    """The values of an expression over the given columns, in the order of the rows."""
    rows = next(len(column) for column in columns.values())
    table = pa.table({**columns, "row": pa.array(range(rows), pa.int64())})
    found = ps.stream(table.schema).select("row", r=expression).run(table).to_arrow().sort_by("row")
    values: list[Any] = found.column("r").to_pylist()
    return values


def type_of(expression: ps.Expr, **types: str) -> str:
    return ps.stream(types).select(r=expression).schema.types[0]


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def test_the_first_condition_that_holds_counts() -> None:
    size = ps.when(COL("n") > 100).then("large").when(COL("n") > 10).then("middling").otherwise("small")
    assert value_of(size, n=ints(5, 50, 500, None)) == ["small", "middling", "large", "small"]


def test_without_otherwise_the_rest_is_null() -> None:
    assert value_of(ps.when(COL("n") > 10).then(COL("n")), n=ints(5, 50, None)) == [None, 50, None]
    nested = ps.when(COL("n") > 10).then(COL("n")).when(COL("n") > 4).then(0)
    assert value_of(nested + 1, n=ints(5, 50, 3)) == [1, 51, None]


def test_a_condition_that_is_null_does_not_hold() -> None:
    flags = pa.array([True, False, None])
    assert value_of(ps.when(COL("f")).then(1).otherwise(2), f=flags) == [1, 2, 2]
    assert value_of(ps.when(~COL("f")).then(1).otherwise(2), f=flags) == [2, 1, 2]
    assert value_of(ps.when(COL("f") & ps.lit(None)).then(1).otherwise(2), f=flags) == [2, 2, 2]
    assert value_of(ps.when(ps.lit(True)).then(1).otherwise(2), f=flags) == [1, 1, 1]


def test_a_branch_that_is_not_taken_cannot_fail() -> None:
    n = ints(0, 5, None, 2**63 - 1)
    share = ps.when(COL("n") != 0).then(10 // COL("n"))
    assert value_of(share, n=n) == [None, 2, None, 0]
    assert value_of(share.otherwise(COL("n")), n=n) == [0, 2, None, 0]
    larger = ps.when(COL("n") < 2**62).then(COL("n") + 1).otherwise(COL("n"))
    assert value_of(larger, n=n) == [1, 6, None, 2**63 - 1]
    with pytest.raises(ps.ComputeError, match="overflow"):
        value_of(ps.when(COL("n") > 0).then(COL("n") + 1), n=n)


def test_a_condition_behind_the_one_that_holds_cannot_fail() -> None:
    chain = ps.when(COL("n") == 0).then(-1).when(10 // COL("n") > 1).then(1).otherwise(0)
    assert value_of(chain, n=ints(0, 5, 50)) == [-1, 1, 0]
    with pytest.raises(ps.ComputeError, match="zero"):
        value_of(ps.when(10 // COL("n") > 1).then(1), n=ints(0))


def test_branches_within_branches() -> None:
    inner = ps.when(COL("n") > 0).then(100 // COL("n")).otherwise(-1)
    outer = ps.when(COL("n") >= 0).then(inner).otherwise(ps.when(COL("n") == -1).then(7))
    assert value_of(outer, n=ints(0, 5, -1, -2)) == [-1, 20, 7, None]


def test_text_is_read_only_where_it_is_a_number() -> None:
    texts = pa.array(["1", "x", None, "3"])
    number = ps.when(COL("s") != "x").then(COL("s").cast("int64")).otherwise(-1)
    assert value_of(number, s=texts) == [1, -1, -1, 3]
    with pytest.raises(ps.ComputeError, match='"x"'):
        value_of(COL("s").cast("int64"), s=texts)


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ("int8", "int64", "int64"), ("int8", "uint8", "int16"), ("int32", "float32", "float64"),
        ("float32", "float64", "float64"), ("int64", "decimal128(10, 2)", "decimal128(21, 2)"),
        ("decimal128(5, 3)", "decimal128(5, 1)", "decimal128(7, 3)"),
        ("timestamp[s]", "timestamp[us]", "timestamp[us]"), ("duration[ms]", "duration[s]", "duration[ms]"),
        ("date32", "date64", "date64"), ("string", "string", "string"), ("bool", "bool", "bool"),
        ("time32[s]", "time64[ns]", "time64[ns]"),
    ],
)  # fmt: skip
def test_values_meet_in_one_type(left: str, right: str, common: str) -> None:
    types = {"f": "bool", "a": left, "b": right}
    assert type_of(ps.when(COL("f")).then(COL("a")).otherwise(COL("b")), **types) == common
    assert type_of(ps.coalesce(COL("b"), COL("a")), **types) == common
    assert type_of(COL("a").fill_null(COL("b")), **types) == common


def test_literals_take_the_type_of_the_others() -> None:
    assert type_of(ps.when(COL("a") > 1).then(0).otherwise(COL("a")), a="int8") == "int8"
    assert type_of(ps.when(COL("a") > 1).then(1000).otherwise(COL("a")), a="int8") == "int64"
    assert type_of(ps.when(COL("a") > 1).then(0.5).otherwise(COL("a")), a="int8") == "float64"
    assert type_of(COL("a").fill_null(0.5), a="float32") == "float32"
    assert type_of(ps.when(COL("a") > 1).then(None).otherwise("x"), a="int8") == "string"
    assert type_of(ps.coalesce(None, 1), a="int8") == "int64"
    assert value_of(COL("d").fill_null(Decimal("0.5")), d=pa.array([None], pa.decimal128(4, 2))) == [
        Decimal("0.50")
    ]


@pytest.mark.parametrize(
    ("left", "right"),
    [("int64", "uint64"), ("string", "int64"), ("bool", "int8"), ("timestamp[s]", "timestamp[s, tz=UTC]"),
     ("string", "binary"), ("date32", "timestamp[s]")],
)  # fmt: skip
def test_values_without_a_common_type_are_refused(left: str, right: str) -> None:
    stream = ps.stream({"a": left, "b": right})
    for expression in (
        ps.when(COL("a").is_null()).then(COL("a")).otherwise(COL("b")),
        ps.coalesce(COL("a"), COL("b")),
    ):
        with pytest.raises(ps.TypeMismatchError) as caught:
            stream.select(r=expression)
        for words in (left, right, repr(expression), "cast()"):
            assert words in str(caught.value)


def test_units_that_do_not_fit_fail_only_where_they_are_taken() -> None:
    far, near = pa.array([2**62, 1], pa.timestamp("s")), pa.array([1, 2], pa.timestamp("ns"))
    small = ps.when(COL("a").cast("int64") < 10).then(COL("a")).otherwise(COL("b"))
    table = pa.table({"a": far, "b": near})
    found = ps.stream(table.schema).select(r=small.cast("int64")).run(table).to_arrow()
    assert found.column("r").to_pylist() == [1, 10**9]
    with pytest.raises(ps.ComputeError, match=r"timestamp\[ns\] overflow"):
        value_of(ps.coalesce(COL("a"), COL("b")), a=far, b=near)


def test_a_condition_must_be_a_truth_value() -> None:
    with pytest.raises(ps.TypeMismatchError, match=r"when\(\) needs a bool.*int64"):
        ps.stream({"a": "int64"}).select(r=ps.when(COL("a")).then(1))
    for wrong in ("a", 1, None):
        with pytest.raises(TypeError, match="condition"):
            ps.when(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="condition"):
            ps.when(ps.lit(True)).then(1).when(wrong)  # type: ignore[arg-type]


def test_nulls_alone_have_no_type() -> None:
    for expression in (ps.when(COL("a") > 1).then(None), ps.coalesce(None, None)):
        with pytest.raises(ps.TypeMismatchError, match="null"):
            ps.stream({"a": "int64"}).select(r=expression)


def test_coalesce_takes_the_first_that_is_there() -> None:
    a, b = ints(1, None, None), ints(4, 5, None)
    assert value_of(ps.coalesce(COL("a"), COL("b"), 9), a=a, b=b) == [1, 5, 9]
    assert value_of(ps.coalesce(COL("a"), COL("b")), a=a, b=b) == [1, 5, None]
    assert value_of(ps.coalesce(COL("a")), a=a) == [1, None, None]
    assert value_of(COL("a").fill_null(0).fill_null(1), a=a) == [1, 0, 0]
    assert value_of(ps.coalesce(ps.lit(None), COL("a")), a=a) == [1, None, None]
    schema = ps.stream(pa.schema([pa.field("a", pa.int64())])).select(r=COL("a").fill_null(0)).schema
    assert schema.nullable == [False]


def test_what_stands_behind_a_value_cannot_fail() -> None:
    assert value_of(COL("a").fill_null(10 // COL("b")), a=ints(1, None), b=ints(0, 5)) == [1, 2]
    with pytest.raises(ps.ComputeError, match="zero"):
        value_of(COL("a").fill_null(10 // COL("b")), a=ints(1, None), b=ints(0, 0))


def test_long_texts_keep_their_bytes() -> None:
    a, b = pa.array([LONG, None, "short", LONG * 2]), pa.array(["x" * 30, "y" * 30, None, "z"])
    assert value_of(ps.coalesce(COL("a").str.upper(), COL("b")), a=a, b=b) == [
        LONG.upper(), "y" * 30, "SHORT", LONG.upper() * 2,
    ]  # fmt: skip
    swapped = ps.when(COL("a").str.length() > 40).then(COL("b")).otherwise(COL("a"))
    assert value_of(swapped, a=a, b=b) == [LONG, None, "short", "z"]
    assert value_of(ps.when(COL("a").is_null()).then(LONG).otherwise(COL("b")), a=a, b=b) == [
        "x" * 30, LONG, None, "z",
    ]  # fmt: skip


OPS: dict[str, Callable[[Any, Any], Any]] = {"<": operator.lt, "==": operator.eq, ">=": operator.ge}
CELLS = st.one_of(st.none(), st.integers(-3, 3))


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=20),
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(list(OPS)), st.integers(-2, 2)),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.sampled_from(["a", "b", "c", "7 // c", "null"]), min_size=5, max_size=5),
)
def test_random_choices(
    rows: list[tuple[int | None, ...]], conditions: list[tuple[str, str, int]], values: list[str]
) -> None:
    """A choice is what Python's if and elif make of it."""

    def expression(text: str) -> Any:
        return {"7 // c": 7 // COL("c"), "null": None}.get(text, COL(text) if text in "abc" else None)

    def cell(text: str, row: dict[str, int | None]) -> int | None:
        if text == "null":
            return None
        if text != "7 // c":
            return row[text]
        divisor = row["c"]
        return None if divisor is None else 7 // divisor

    made: Any = ps
    for (name, op, bound), value in zip(conditions, values, strict=False):
        made = made.when(OPS[op](COL(name), bound)).then(expression(value))
    made = made.otherwise(expression(values[-1]))
    expected: list[int | None] | None = []
    for numbers in rows:
        row = dict(zip("abc", numbers, strict=True))
        taken = values[-1]
        for (name, op, bound), value in zip(conditions, values, strict=False):
            have = row[name]
            if have is not None and OPS[op](have, bound):
                taken = value
                break
        try:
            if expected is not None:
                expected.append(cell(taken, row))
        except ZeroDivisionError:
            expected = None
    if set(values[: len(conditions)]) | {values[-1]} == {"null"}:
        return
    columns = {name: ints(*(numbers[i] for numbers in rows)) for i, name in enumerate("abc")}
    if expected is None:
        with pytest.raises(ps.ComputeError, match="zero"):
            value_of(made, **columns)
    else:
        assert value_of(made, **columns) == expected


def test_it_prints_as_python_and_survives_json() -> None:
    made = ps.when(COL("a") > 1).then(2).when(COL("a").is_null()).then(None).otherwise(COL("a") + 3)
    text = 'when(col("a") > 1).then(2).when(col("a").is_null()).then(None).otherwise(col("a") + 3)'
    assert repr(made) == text
    assert repr(eval(text, {"when": ps.when, "col": ps.col})) == text
    assert (
        repr(ps.when(COL("a") > 1).then(2).when(COL("a") < 0))
        == 'when(col("a") > 1).then(2).when(col("a") < 0)'
    )
    assert repr(COL("a").fill_null(0)) == 'coalesce(col("a"), 0)'
    stream = ps.stream({"a": "int64"}).select(r=made, s=ps.coalesce(COL("a"), 1))
    assert ps.Stream.from_json(stream.to_json()) == stream


def test_choices_nest_only_so_deep() -> None:
    expression: ps.Expr = COL("a")
    for _ in range(126):
        expression = ps.when(COL("a") > 1).then(expression)
    with pytest.raises(ps.PlanError, match="deep"):
        ps.when(COL("a") > 1).then(expression)
    chain: Any = ps
    for bound in range(300):
        chain = chain.when(COL("a") == bound).then(-bound)
    assert value_of(chain.otherwise(1), a=ints(299, 300)) == [-299, 1]


def test_conditions_are_immutable() -> None:
    waiting = ps.when(COL("a") > 1)
    with pytest.raises(AttributeError, match="immutable"):
        waiting._condition = COL("b")
    first, second = waiting.then(1), waiting.then(2)
    assert repr(first.otherwise(3)) != repr(second.otherwise(3))
    assert isinstance(first, ps.Expr)
