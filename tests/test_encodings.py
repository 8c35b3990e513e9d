"""Encodings of one type are interchangeable; types the engine does not support are refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as ps
from reference.engine import rows_of

STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
BINARIES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]
WORDS = ["view", "click", None, "view", "a purchase that is long"]
PAIRS = [(a, b) for family in (STRINGS, BINARIES) for a in family for b in family]


def encoded(kind: pa.DataType) -> pa.Array:
    """The words in an encoding."""
    text = pa.array(WORDS, pa.string())
    if pa.types.is_dictionary(kind):
        return encoded(kind.value_type).dictionary_encode().cast(kind)
    if kind in STRINGS:
        return text.cast(kind)
    return text.cast(pa.binary()).cast(kind)


@pytest.mark.parametrize(("declared", "given"), PAIRS, ids=str)
def test_any_encoding_fits_any_other(declared: pa.DataType, given: pa.DataType) -> None:
    word = "view" if declared in STRINGS else b"view"
    query = ps.stream(pa.schema([("w", declared)])).filter(ps.col("w") == word)
    assert len(query.run(pa.table({"w": encoded(given)}))) == 2


@pytest.mark.parametrize(("declared", "given"), PAIRS, ids=str)
def test_a_lookup_table_may_use_another_encoding(declared: pa.DataType, given: pa.DataType) -> None:
    table = pa.table({"w": encoded(given).slice(0, 2), "n": [1, 2]})
    query = ps.stream(pa.schema([("w", declared)])).lookup(table, on="w").select("n")
    found = [row["n"] for row in rows_of(query.run(pa.table({"w": encoded(declared)})))]
    assert sorted(map(str, found)) == ["1", "1", "2"]


def test_batches_of_one_run_may_differ_in_encoding() -> None:
    query = (
        ps.stream({"w": "string", "t": "int64"}, time="t").window(ps.tumbling(10), by="w").agg(n=ps.count())
    )
    batches = [pa.table({"w": encoded(kind), "t": [1] * len(WORDS)}) for kind in STRINGS]
    found = {row["w"]: row["n"] for row in rows_of(query.run(batches))}
    assert found == {"view": 8, "click": 4, None: 4, "a purchase that is long": 4}


def test_a_dictionary_stands_for_its_values() -> None:
    numbers = pa.array([10, None, 30], pa.int64())
    query = ps.stream({"n": "int64"}).select(m=ps.col("n") + 1)
    given = pa.table({"n": numbers.dictionary_encode()})
    assert sorted(str(row["m"]) for row in rows_of(query.run(given))) == ["11", "31", "None"]
    declared = ps.stream(pa.schema([("n", pa.dictionary(pa.int16(), pa.int64()))])).select(m=ps.col("n") + 1)
    assert sorted(str(row["m"]) for row in rows_of(declared.run(pa.table({"n": numbers})))) == [
        "11",
        "31",
        "None",
    ]
    assert declared.schema.types == ["int64"]


def test_dictionaries_may_change_from_batch_to_batch() -> None:
    def words(entries: list[str], places: list[int]) -> pa.Table:
        column = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(entries))
        return pa.table({"w": column, "t": [1] * len(places)})

    query = (
        ps.stream({"w": "string", "t": "int64"}, time="t").window(ps.tumbling(10), by="w").agg(n=ps.count())
    )
    result = query.run(
        [words(["a", "b"], [0, 1, 1]), words(["b", "a"], [0, 1, 1]), words(["c", "c"], [0, 1])]
    )
    assert {row["w"]: row["n"] for row in rows_of(result)} == {"a": 3, "b": 3, "c": 2}


def test_a_long_view_may_share_its_buffer() -> None:
    """Slices of a view array still point into buffers that hold more than they show."""
    long = pa.array([f"value number {i:05} in a shared buffer" for i in range(100)], pa.string_view())
    query = ps.stream(pa.schema([("w", pa.string_view())]))
    found = rows_of(query.run(pa.table({"w": long.slice(90, 5)})))
    assert sorted(str(row["w"]) for row in found) == [
        f"value number {i:05} in a shared buffer" for i in range(90, 95)
    ]


@pytest.mark.parametrize("offset", [1, 3, 7, 8, 9, 15])
def test_bitmaps_at_odd_offsets(offset: int) -> None:
    bits = pa.array([None if i % 5 == 0 else i % 3 == 0 for i in range(64)])
    numbers = pa.array([None if i % 7 == 0 else i for i in range(64)], pa.int32())
    part = pa.table({"id": list(range(64)), "b": bits, "n": numbers}).slice(offset, 20)
    query = ps.stream(part.schema).filter(ps.col("b") | ps.col("n").is_null())
    kept = [row["id"] for row in rows_of(query.run(part))]
    expected = [i for i in range(offset, offset + 20) if (i % 5 != 0 and i % 3 == 0) or i % 7 == 0]
    assert sorted(map(int, map(str, kept))) == expected


UNSUPPORTED = [
    pa.float16(), pa.decimal256(40, 2), pa.list_(pa.int64()), pa.large_list(pa.int64()),
    pa.list_(pa.int64(), 2), pa.sparse_union([pa.field("a", pa.int64())]),
    pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64()),
    pa.dense_union([pa.field("a", pa.int64())]), pa.month_day_nano_interval(), pa.binary(4), pa.null(),
    pa.run_end_encoded(pa.int32(), pa.int64()), pa.dictionary(pa.int8(), pa.list_(pa.int64())),
]  # fmt: skip


@pytest.mark.parametrize("kind", UNSUPPORTED, ids=str)
def test_an_unsupported_type_is_refused_by_name(kind: pa.DataType) -> None:
    schema = pa.schema([("fine", pa.int64()), ("strange_column", kind)])
    with pytest.raises(ps.UnsupportedTypeError, match="strange_column") as caught:
        ps.stream(schema)
    assert isinstance(caught.value, ps.PlanError)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (pa.float16(), "float16"),
        (pa.list_(pa.int64()), "list"),
        (pa.decimal256(40, 2), "decimal256"),
        (pa.null(), "null"),
    ],
    ids=str,
)
def test_the_refusal_names_the_type(kind: pa.DataType, word: str) -> None:
    with pytest.raises(ps.UnsupportedTypeError, match=f"(?i){word}"):
        ps.stream(pa.schema([("x", kind)]))


@pytest.mark.parametrize(
    "name", ["float16", "list<int64>", "nonsense", "", "int65", "timestamp[h]", "decimal128(39, 2)"]
)
def test_an_unknown_type_name_is_refused(name: str) -> None:
    with pytest.raises(ps.PlanError, match="x"):
        ps.stream({"x": name})


def test_an_unsupported_lookup_column_is_refused() -> None:
    table = pa.table({"k": [1], "nested": [[1, 2]]})
    with pytest.raises(ps.UnsupportedTypeError, match="nested"):
        ps.stream({"k": "int64"}).lookup(table, on="k")
