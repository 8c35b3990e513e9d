"""Functions of text, against Python's own."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps

COL = ps.col
# Python and Rust may know different versions of Unicode: letters that both have known for long. Small letters
# without a capital are left out, since a later version may give them one, as Unicode 16 did to U+019B.
UNPAIRED = [letter for letter in map(chr, range(0x250)) if letter.islower() and letter.upper() == letter]
LETTERS = st.one_of(
    st.text(st.characters(codec="ascii"), max_size=20),
    st.text(st.sampled_from("aAzZéÉßẞ\u03c3ς\u03a3İ\u0131ǅﬁ€日😀@[`{ \x00"), max_size=12),
    st.text(st.characters(max_codepoint=0x24F, exclude_characters=UNPAIRED), max_size=30),
)
CELLS = st.lists(st.one_of(st.none(), LETTERS), max_size=12)
KINDS = st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])


def value_of(expression: ps.Expr, **columns: pa.Array) -> list[Any]:
    rows = next(len(column) for column in columns.values())
    table = pa.table({**columns, "row": pa.array(range(rows), pa.int64())})
    found = ps.stream(table.schema).select("row", r=expression).run(table).to_arrow()
    cells = zip(found.column("row").to_pylist(), found.column("r").to_pylist(), strict=True)
    return [cell for _, cell in sorted(cells, key=lambda pair: pair[0])]


ONE_TEXT: dict[str, Callable[[str], Any]] = {
    "length": len,
    "byte_length": lambda text: len(text.encode()),
    "lower": str.lower,
    "upper": str.upper,
}
TWO_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda text, pattern: pattern in text,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
}


@given(CELLS, KINDS, st.sampled_from(list(ONE_TEXT)))
def test_functions_of_one_text(cells: list[str | None], kind: pa.DataType, name: str) -> None:
    expected = [None if cell is None else ONE_TEXT[name](cell) for cell in cells]
    assert value_of(getattr(COL("s").str, name)(), s=pa.array(cells, kind)) == expected


@given(CELLS, st.text(st.sampled_from("aAé "), max_size=3), st.sampled_from(list(TWO_TEXTS)))
def test_a_pattern_that_is_the_same_for_all(cells: list[str | None], pattern: str, name: str) -> None:
    expected = [None if cell is None else TWO_TEXTS[name](cell, pattern) for cell in cells]
    assert value_of(getattr(COL("s").str, name)(pattern), s=pa.array(cells, pa.string())) == expected


PAIRS = st.lists(
    st.tuples(st.one_of(st.none(), LETTERS), st.one_of(st.none(), LETTERS), st.integers(0, 8)), max_size=12
)


@given(PAIRS, st.sampled_from(list(TWO_TEXTS)))
def test_a_pattern_per_row(cells: list[tuple[str | None, str | None, int]], name: str) -> None:
    texts = [text for text, _, _ in cells]
    # Half of the patterns are parts of their texts.
    patterns = [
        text[cut : cut + 2] if text is not None and pattern is not None and cut % 2 else pattern
        for text, pattern, cut in cells
    ]
    expected = [
        None if text is None or pattern is None else TWO_TEXTS[name](text, pattern)
        for text, pattern in zip(texts, patterns, strict=True)
    ]
    columns = {"s": pa.array(texts, pa.string()), "p": pa.array(patterns, pa.string())}
    assert value_of(getattr(COL("s").str, name)(COL("p")), **columns) == expected


def test_a_null_pattern_is_unknown() -> None:
    assert value_of(COL("s").str.contains(ps.lit(None)), s=pa.array(["a", None])) == [None, None]


def test_every_text_holds_the_empty_one() -> None:
    texts = pa.array(["", "a", "a text of more than twelve bytes"])
    for name in TWO_TEXTS:
        assert value_of(getattr(COL("s").str, name)(""), s=texts) == [True, True, True]


def test_texts_on_both_sides_of_twelve_bytes() -> None:
    texts = ["A" * count for count in range(10, 16)]
    assert value_of(COL("s").str.lower(), s=pa.array(texts)) == [text.lower() for text in texts]
    assert value_of(COL("s").str.contains("A" * 13), s=pa.array(texts)) == [False] * 3 + [True] * 3


def test_types_of_the_results() -> None:
    for kind in ("string", "large_string", "string_view"):
        made = ps.stream({"s": kind}).select(
            a=COL("s").str.length(), b=COL("s").str.upper(), c=COL("s").str.contains("x")
        )
        assert made.schema.types == ["int64", kind, "bool"]


def test_only_text_has_these_functions() -> None:
    stream = ps.stream({"n": "int64", "s": "string"})
    for name in ONE_TEXT:
        with pytest.raises(ps.TypeMismatchError, match=rf"str\.{name}\(\) needs a string, not int64"):
            stream.select(r=getattr(COL("n").str, name)())
    for name in TWO_TEXTS:
        with pytest.raises(ps.TypeMismatchError, match=rf"str\.{name}\(\) needs a string, not int64"):
            stream.select(r=getattr(COL("n").str, name)("x"))
        with pytest.raises(ps.TypeMismatchError, match="string to look for, not int64"):
            stream.select(r=getattr(COL("s").str, name)(COL("n")))
        with pytest.raises(TypeError, match="text or a string expression, not int"):
            getattr(COL("s").str, name)(1)


def test_they_print_as_python_and_survive_json() -> None:
    expression = COL("s").str.lower().str.contains("x") & (COL("s").str.length() > 3)
    assert repr(expression) == 'col("s").str.lower().str.contains("x") & (col("s").str.length() > 3)'
    stream = ps.stream({"s": "string"}).filter(expression)
    assert ps.Stream.from_json(stream.to_json()) == stream
    table = pa.table({"s": ["aXbc", "X", "abcd"]})
    assert pa.table(stream.run(table))["s"].to_pylist() == ["aXbc"]


def under_nulls(kind: pa.DataType) -> pa.Array:
    """A text, a null with bytes under it that are none, and another text."""
    valid = pa.py_buffer(b"\x05")
    if kind == pa.string_view():
        entries = struct.pack("<i12s", 2, b"ok") + struct.pack("<i4sii", 40, b"\xff", 7, 7)
        entries += struct.pack("<i12s", 4, b"fine")
        return pa.Array.from_buffers(kind, 3, [valid, pa.py_buffer(entries)])
    form = "q" if kind == pa.large_string() else "i"
    bounds = pa.py_buffer(struct.pack(f"<4{form}", 0, 2, 4, 8))
    return pa.Array.from_buffers(kind, 3, [valid, bounds, pa.py_buffer(b"ok\xff\xfefine")])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), "dictionary"], ids=str)
def test_what_stands_under_a_null_does_not_matter(kind: Any) -> None:
    if kind == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), under_nulls(pa.string()))
    else:
        column = under_nulls(kind)
    expected = ["ok", None, "fine", None][: len(column)]
    table = pa.table({"x": column, "t": list(range(len(column)))})
    stream = ps.stream({"x": "string", "t": "int64"}, time="t")
    assert [row["x"] for row in stream.run(table).to_pylist()] == expected
    upper = stream.select(y=COL("x").str.upper(), n=COL("x").str.length()).run(table).to_pylist()
    assert upper == [{"y": x and x.upper(), "n": x and len(x)} for x in expected]
    counts = stream.window(ps.tumbling(10), by="x").agg(n=ps.count()).run(table).to_pylist()
    assert {row["x"]: row["n"] for row in counts} == dict(Counter(expected))
    for result in (stream.run(table), stream.filter(COL("x").is_null()).run(table)):
        pa.table(result).validate(full=True)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), "dictionary"], ids=str)
def test_it_does_not_matter_in_tables_that_are_looked_up_or_come_in_chunks(kind: Any) -> None:
    if kind == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), under_nulls(pa.string()))
    else:
        column = under_nulls(kind)
    expected = ["ok", None, "fine"]
    table = pa.table({"k": [0, 1, 2], "x": column})
    rows, keys = pa.table({"k": [0, 1, 2]}), ps.stream({"k": "int64"})
    assert [row["x"] for row in keys.lookup(table, on="k").run(rows).to_pylist()] == expected
    chunked = pa.concat_tables([table, pa.table({"k": [3], "x": pa.array(["more"], type=column.type)})])
    for one in (table, chunked):
        feed = ps.PushSource()
        with ps.Engine(workers=1) as engine:
            plain = pa.table({"k": [0], "x": pa.array(["x"], type=column.type)})
            query = engine.submit(keys.lookup(plain, on="k"), source=feed, sink="collect")
            query.replace_lookup(one)
            assert feed.push(rows)
            feed.close()
            assert [row["x"] for row in query.result().to_pylist()] == expected
            feed = ps.PushSource()
            pushed = engine.submit(ps.stream({"k": "int64", "x": "string"}), source=feed, sink="collect")
            assert feed.push(one)
            feed.close()
            assert [row["x"] for row in pushed.result().to_pylist()][:3] == expected
