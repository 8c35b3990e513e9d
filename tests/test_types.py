"""Every supported type goes through every operator, in every encoding and however the arrays are cut."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference.engine import cells, rows_of
from reference.plans import How
from reference.types import Value

TEXTS = ["", "twelve bytes", "thirteen byte", "é", None, "a much longer text than the others"]
BYTES = [b"", b"twelve bytes", b"\xff\x00", None, b"a much longer value than the others", b"a"]
MOMENTS = [0, 1, None, -1, 86_399_999, 1]
TIMES = [0, 1, None, 59, 86_399, 1]
PRICES = [
    Decimal("-1.50"),
    Decimal("0.00"),
    None,
    Decimal("99999999.99"),
    Decimal("-99999999.99"),
    Decimal("0.01"),
]


def integers(kind: pa.DataType) -> pa.Array:
    signed = pa.types.is_signed_integer(kind)
    low, high = (
        (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
        if signed
        else (0, 2**kind.bit_width - 1)
    )
    return pa.array([0, 1, None, low, high, 1], kind)


def dictionary(values: pa.Array, index: pa.DataType) -> pa.Array:
    """A dictionary with an unused entry, a null entry that is used, and a null index."""
    entries = pa.concat_arrays([values.drop_null().unique(), pa.nulls(1, values.type)])
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, len(entries) - 1, 1, 0], index), entries)


TEXT = pa.array(TEXTS, pa.string())
ARRAYS: dict[str, pa.Array] = {
    **{str(kind): integers(kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): integers(kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "float32": pa.array([0.0, -1.5, None, float("inf"), 1e30, 0.0], pa.float32()),
    "float64": pa.array([0.0, -1.5, None, float("-inf"), 1e300, 0.0], pa.float64()),
    "bool": pa.array([True, False, None, True, True, False]),
    **{f"timestamp[{unit}]": pa.array(MOMENTS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "timestamp[us, tz=UTC]": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
    "timestamp[ms, tz=Europe/Paris]": pa.array(MOMENTS, pa.timestamp("ms", "Europe/Paris")),
    "date32": pa.array([0, 1, None, -1, 20_000, 1], pa.date32()),
    "date64": pa.array([day and day * 86_400_000 for day in [0, 1, None, -1, 20_000, 1]], pa.date64()),
    "time32[s]": pa.array(TIMES, pa.time32("s")),
    "time32[ms]": pa.array(TIMES, pa.time32("ms")),
    "time64[us]": pa.array(TIMES, pa.time64("us")),
    "time64[ns]": pa.array(TIMES, pa.time64("ns")),
    **{f"duration[{unit}]": pa.array(MOMENTS, pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "decimal128(10, 2)": pa.array(PRICES, pa.decimal128(10, 2)),
    "decimal128(38, 10)": pa.array(PRICES, pa.decimal128(38, 10)),
    "string": TEXT,
    "large_string": TEXT.cast(pa.large_string()),
    "string_view": TEXT.cast(pa.string_view()),
    "binary": pa.array(BYTES, pa.binary()),
    "large_binary": pa.array(BYTES, pa.large_binary()),
    "binary_view": pa.array(BYTES, pa.binary_view()),
    "dictionary<values=string, indices=int32>": dictionary(TEXT, pa.int32()),
    "dictionary<values=string, indices=int8>": dictionary(TEXT, pa.int8()),
    "dictionary<values=string, indices=uint16>": dictionary(TEXT, pa.uint16()),
    "dictionary<values=int64, indices=int8>": dictionary(integers(pa.int64()), pa.int8()),
    "dictionary<values=large_string, indices=int64>": dictionary(TEXT.cast(pa.large_string()), pa.int64()),
    "dictionary<values=binary, indices=uint8>": dictionary(pa.array(BYTES, pa.binary()), pa.uint8()),
}  # fmt: skip


def plain(array: pa.Array) -> list[Value]:
    """The cells; dictionaries decoded."""
    return cells(array.dictionary_decode() if pa.types.is_dictionary(array.type) else array)


def forms(array: pa.Array) -> dict[str, pa.ChunkedArray]:
    """The same cells, laid out in every way Arrow allows."""
    padded = pa.concat_arrays([array.slice(3, 3), array, array.slice(0, 2)])
    return {
        "whole": pa.chunked_array([array]),
        "offset": pa.chunked_array([padded.slice(3, len(array))]),
        "chunks": pa.chunked_array([array.slice(0, 1), array.slice(1, 4), array.slice(5)]),
        "empty chunks": pa.chunked_array([array.slice(0, 0), array, array.slice(6)]),
        "one by one": pa.chunked_array([array.slice(i, 1) for i in range(len(array))]),
    }


def in_order(result: ps.Result, name: str) -> list[Value]:
    """A column of the result, in the order of the rows that went in."""
    return [row[name] for row in sorted(rows_of(result), key=lambda row: int(str(row["t"])))]


def stream_of(array: pa.Array) -> ps.Stream:
    return ps.stream(pa.schema([("t", pa.int64()), ("x", array.type), ("flag", pa.bool_())]), time="t")


def tables(array: pa.Array) -> dict[str, pa.Table]:
    """Tables of the forms; `flag` marks every other row and `t` numbers the rows."""
    made = {}
    for name, column in forms(array).items():
        flag = pa.array([False, *(i % 2 == 0 for i in range(len(array)))]).slice(1)
        times = pa.array(range(len(array)), pa.int64())
        made[name] = pa.table({"t": times, "x": column, "flag": flag})
    return made


KINDS = pytest.mark.parametrize("kind", ARRAYS)


@KINDS
def test_it_passes_through(kind: str) -> None:
    array = ARRAYS[kind]
    for form, table in tables(array).items():
        assert in_order(stream_of(array).run(table), "x") == plain(array), form


@KINDS
def test_it_is_filtered_and_selected(kind: str) -> None:
    array = ARRAYS[kind]
    query = (
        stream_of(array).filter(ps.col("flag")).select("t", y=ps.col("x"), known=ps.col("x").is_not_null())
    )
    expected = plain(array)[::2]
    for form, table in tables(array).items():
        found = query.run(table)
        assert in_order(found, "y") == expected, form
        assert in_order(found, "known") == [value is not None for value in expected], form


@KINDS
def test_it_compares_with_itself(kind: str) -> None:
    array = ARRAYS[kind]
    query = stream_of(array).select("t", same=ps.col("x") == ps.col("x"), less=ps.col("x") < ps.col("x"))
    for form, table in tables(array).items():
        found = query.run(table)
        assert in_order(found, "same") == [None if v is None else True for v in plain(array)], form
        assert in_order(found, "less") == [None if v is None else False for v in plain(array)], form


@KINDS
def test_it_is_a_group_key(kind: str) -> None:
    array = ARRAYS[kind]
    query = stream_of(array).window(ps.tumbling(100), by="x").agg(n=ps.count())
    expected = Counter(plain(array))
    for form, table in tables(array).items():
        found = query.run(table).to_arrow()
        assert dict(zip(cells(found.column("x")), cells(found.column("n")), strict=True)) == expected, form


@KINDS
def test_it_is_aggregated(kind: str) -> None:
    array = ARRAYS[kind]
    query = stream_of(array).window(ps.tumbling(100)).agg(ps.min("x"), ps.max("x"), ps.count("x"))
    values: list[Any] = [value for value in plain(array) if value is not None]
    for form, table in tables(array).items():
        found = query.run(table).to_arrow()
        assert cells(found.column("x_min")) == [min(values)], form
        assert cells(found.column("x_max")) == [max(values)], form
        assert cells(found.column("x_count")) == [len(values)], form


@KINDS
@pytest.mark.parametrize("how", ["inner", "left"])
def test_it_is_a_lookup_key_and_a_lookup_value(kind: str, how: How) -> None:
    array = ARRAYS[kind]
    values = [value for value in dict.fromkeys(plain(array)) if value is not None][:2]
    keys = pa.concat_arrays([array.slice(plain(array).index(value), 1) for value in values])
    table = pa.table({"x": keys, "back": keys, "n": list(range(len(values)))})
    query = stream_of(array).lookup(table, on="x", how=how).select("t", "x", "back", "n")
    expected = [
        (i, value, value if value in values else None, values.index(value) if value in values else None)
        for i, value in enumerate(plain(array))
        if how == "left" or value in values
    ]
    for form, given in tables(array).items():
        found = query.run(given)
        assert (
            list(zip(*(in_order(found, name) for name in ("t", "x", "back", "n")), strict=True)) == expected
        ), form


@KINDS
def test_no_rows_of_it(kind: str) -> None:
    array = ARRAYS[kind]
    query = stream_of(array).window(ps.tumbling(100), by="x").agg(ps.max("x"))
    empty = pa.table(
        {"t": pa.array([], pa.int64()), "x": array.slice(0, 0), "flag": pa.array([], pa.bool_())}
    )
    assert len(query.run(empty)) == 0


@KINDS
def test_all_of_it_null(kind: str) -> None:
    array = ARRAYS[kind]
    query = stream_of(array).window(ps.tumbling(100), by="x").agg(ps.min("x").alias("least"), ps.count("x"))
    given = pa.table({"t": [1, 2, 3], "x": pa.nulls(3, array.type), "flag": [True, True, True]})
    found = query.run(given).to_arrow()
    assert (cells(found.column("x")), cells(found.column("least")), cells(found.column("x_count"))) == (
        [None], [None], [0],
    )  # fmt: skip


@KINDS
def test_the_result_has_the_type_that_was_announced(kind: str) -> None:
    array = ARRAYS[kind]
    query = stream_of(array).select("x")
    result = query.run(tables(array)["whole"])
    announced = pa.schema(query.schema)
    assert result.to_arrow().schema.field("x").type == announced.field("x").type
    assert pa.schema(result.schema) == announced
    wanted = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    for family in (("string", "large_string", "string_view"), ("binary", "large_binary", "binary_view")):
        if str(wanted) in family:
            assert str(announced.field("x").type) in family
            return
    assert announced.field("x").type == wanted


@KINDS
def test_the_type_can_be_declared_by_name(kind: str) -> None:
    array = ARRAYS[kind]
    by_name = ps.stream({"t": "int64", "x": kind, "flag": "bool"}, time="t")
    assert by_name == stream_of(array)
    assert by_name.schema.types == stream_of(array).schema.types
