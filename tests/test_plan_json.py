"""Hostile JSON: a PlanError, never a crash, never half a pipeline."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps

HANG_SECONDS = 60


def good() -> ps.Stream:
    stream = ps.stream({"t": "timestamp[ms]", "k": "string", "x": "int64"}, time="t", delay="2s")
    table = pa.table({"k": ["a", "b"], "group": pa.array([1, None], pa.int32())})
    kept = stream.filter((ps.col("x") > 0) & ps.col("k").is_not_null()).lookup(table, on="k", how="left")
    return kept.window(ps.tumbling("10s"), by="group").agg(ps.count(), total=ps.sum(ps.col("x") + 1))


GOOD = good().to_json()


def read(text: str) -> None:
    """A text is a PlanError or a pipeline that explains itself and runs over nothing."""
    try:
        stream = ps.Stream.from_json(text)
    except ps.PlanError:
        return
    stream.explain()
    assert ps.Stream.from_json(stream.to_json()) == stream
    assert len(stream.run([])) == 0


MALFORMED = [
    "", " ", "null", "true", "0", "-1", "1e999", '"text"', "[]", "{}", "[[]]", '{"', "{]", "nul", "NaN",
    "\x00", "\ufeff{}", '{"version": 1}', '{"version": 99999999999999999999999999}', '{"plan": null}',
    '{"steps": []}', '{"source": {}}', '{"a": 1, "a": 2}', "[" * 50, '{"a":' * 50, '"\\ud800"', "1" * 10_000,
    GOOD + GOOD, GOOD + "x", GOOD[:-1], GOOD[1:], "[" + GOOD + "]", json.dumps(GOOD),
    GOOD.replace("{", "[").replace("}", "]"),
]  # fmt: skip


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: repr(text[:24]))
def test_malformed_text_is_a_plan_error(text: str) -> None:
    with pytest.raises(ps.PlanError) as caught:
        ps.Stream.from_json(text)
    assert str(caught.value)


@pytest.mark.parametrize("thing", [None, 1, b"{}", {}, []])
def test_what_is_no_text_is_a_type_error(thing: object) -> None:
    with pytest.raises(TypeError):
        ps.Stream.from_json(thing)  # type: ignore[arg-type]


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read(text)
    except UnicodeEncodeError:
        assert any("\ud800" <= letter <= "\udfff" for letter in text)


@given(st.integers(0, len(GOOD) - 1))
def test_a_truncated_plan_is_refused(length: int) -> None:
    with pytest.raises(ps.PlanError):
        ps.Stream.from_json(GOOD[:length])


@given(st.integers(0, len(GOOD) - 1), st.characters(max_codepoint=127))
def test_a_plan_with_one_letter_changed(place: int, letter: str) -> None:
    read(GOOD[:place] + letter + GOOD[place + 1 :])


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "t", "x", "int64", "+", "count", "tumbling", "AAAA", "\x00", "10s", "-1s", "9" * 30 + "s"]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=3),
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a JSON value."""
    found = [path] if path else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found.extend(places(value, (*path, key)))
    return found


TREE = json.loads(GOOD)
PLACES = places(TREE)


@given(st.sampled_from(PLACES), st.sampled_from(["replace", "remove", "swap", "wrap"]), st.data())
def test_a_plan_with_one_part_changed(path: tuple[Any, ...], how: str, data: st.DataObject) -> None:
    tree = copy.deepcopy(TREE)
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    if how == "replace":
        parent[path[-1]] = data.draw(JUNK)
    elif how == "remove":
        del parent[path[-1]]
    elif how == "wrap":
        parent[path[-1]] = [parent[path[-1]]]
    else:
        other: Any = TREE
        for key in data.draw(st.sampled_from(PLACES)):
            other = other[key]
        parent[path[-1]] = copy.deepcopy(other)
    read(json.dumps(tree))


DEEP = """
import sys
import penstock as ps

def survives(work):
    try:
        work()
    except (ps.PlanError, RecursionError, MemoryError):
        pass

def deep_expression():
    expression = ps.col("a")
    for _ in range(100_000):
        expression = expression + 1
    stream = ps.stream({"a": "int64"}).select(r=expression)
    repr(expression), stream.explain(), stream.to_json(), hash(stream), stream == stream
    stream.run([])

def deep_negation():
    expression = ps.col("a")
    for _ in range(100_000):
        expression = ~expression
    ps.stream({"a": "bool"}).filter(expression).run([])

def deep_plan():
    stream = ps.stream({"a": "bool"})
    for _ in range(5_000):
        stream = stream.filter(ps.col("a"))
    stream.explain(), ps.Stream.from_json(stream.to_json()) == stream
    stream.run([])

for opening, closing in (("[", "]"), ('{"a":', "}"), ('{"binary":[', "]}")):
    survives(lambda: ps.Stream.from_json(opening * 200_000))
    survives(lambda: ps.Stream.from_json(opening * 200_000 + "1" + closing * 200_000))
for work in (deep_expression, deep_negation, deep_plan):
    survives(work)
print("alive")
"""


def test_depth_does_not_overflow_the_stack() -> None:
    """In a process of its own, because a stack overflow would take this one with it."""
    done = subprocess.run(
        [sys.executable, "-c", DEEP], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr[-2000:]


def test_a_deep_expression_in_a_file_is_refused_or_read() -> None:
    """The same depth through JSON: nesting that the reader accepts, it also survives."""
    expression = ps.col("x")
    for _ in range(50):
        expression = expression + 1
    stream = ps.stream({"x": "int64"}).select(r=expression)
    again = ps.Stream.from_json(stream.to_json())
    assert again.run(pa.table({"x": [1]})).to_arrow().column("r").to_pylist() == [51]


def test_a_huge_length_is_not_believed() -> None:
    """Sizes in the text are checked before memory is taken."""
    for size in ("9223372036854775807ns", "18446744073709551616s", "1" + "0" * 400 + "s"):
        tree = json.loads(GOOD)
        for path in PLACES:
            parent: Any = tree
            for key in path[:-1]:
                parent = parent[key]
            if (
                isinstance(parent[path[-1]], str)
                and parent[path[-1]].endswith("s")
                and parent[path[-1]][0].isdigit()
            ):
                parent[path[-1]] = size
        read(json.dumps(tree))
