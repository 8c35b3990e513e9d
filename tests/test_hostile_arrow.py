"""Arrow from outside is not believed: arrays that break Arrow's own rules are an error, never a crash.

Each case runs in a process of its own, because reading out of bounds could take this one with it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HANG_SECONDS = 60

PRELUDE = """
import struct, sys
import pyarrow as pa
import penstock as ps

def buffer(form, *values):
    return pa.py_buffer(struct.pack("<" + form * len(values), *values))

def text(offsets, data, kind=pa.string()):
    form = "q" if kind == pa.large_string() else "i"
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, buffer(form, *offsets), pa.py_buffer(data)])

def view(length, index, offset):
    entry = pa.py_buffer(struct.pack("<i4sii", length, b"long", index, offset))
    return pa.Array.from_buffers(pa.string_view(), 1, [None, entry, pa.py_buffer(b"long enough for a view")])

def dictionary(index):
    return pa.DictionaryArray.from_arrays(pa.array([index], pa.int8()), pa.array(["only"]), safe=False)
"""

TAIL = """
table = pa.Table.from_arrays([array, pa.array([1] * len(array), pa.int64())], names=["x", "t"])
schema = pa.schema([("x", pa.string()), ("t", pa.int64())])
base = ps.stream(schema, time="t")
queries = [
    base,
    base.filter(ps.col("x") == "only"),
    base.window(ps.tumbling(10), by="x").agg(ps.max("x").alias("m")),
]
for query in queries:
    try:
        query.run(table).to_arrow().validate(full=True)
    except ps.DataError:
        continue
    print("accepted")
print("alive")
"""

CASES = {
    "text that is not UTF-8": r'text([0, 2], b"\xff\xfe")',
    "text cut inside a letter": r'text([0, 1, 2], "é".encode())',
    "offsets that go back": 'text([0, 4, 2, 4], b"abcd")',
    "offsets below zero": 'text([0, -4, 4], b"abcd")',
    "offsets past the end": 'text([0, 1000000, 4], b"abcd")',
    "large offsets past the end": 'text([0, 2**40, 4], b"abcd", pa.large_string())',
    "a view into no buffer": "view(20, 7, 0)",
    "a view past the end of its buffer": "view(2000, 0, 0)",
    "a view with a negative offset": "view(20, 0, -8)",
    "a view with another prefix": "view(20, 0, 5)",
    "a dictionary index past the end": "dictionary(5)",
    "a negative dictionary index": "dictionary(-1)",
}


@pytest.mark.parametrize("case", CASES)
def test_broken_arrays_are_refused(case: str) -> None:
    script = f"{PRELUDE}\narray = {CASES[case]}\n{TAIL}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["alive"]), done.stderr[-2000:]


def test_valid_arrays_pass_the_same_script() -> None:
    """The script accepts what is fine, so that the refusals above mean something."""
    script = f'{PRELUDE}\narray = text([0, 2, 4], b"abcd")\n{TAIL}'
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["accepted"] * 3 + ["alive"]), done.stderr[-2000:]


# Tables of several chunks become one batch where they are pushed, looked up, or given back by a function.
CHUNKED = """
good = pa.array(["good"], type=array.type)
numbers = pa.chunked_array([pa.array([0], pa.int64()), pa.array(range(1, len(array) + 1), pa.int64())])
table = pa.table({"x": pa.chunked_array([good, array]), "t": numbers})
schema = pa.schema([("x", pa.string()), ("t", pa.int64())])
base, keys = ps.stream(schema), ps.stream({"t": "int64"})
feed = ps.PushSource()
feed_of_keys = ps.PushSource()

def wants_rows(batch):
    return max(len(row["x"] or "") for row in batch.to_pylist())

marked = ps.PushSource()

with ps.Engine(workers=1) as engine:
    query = engine.submit(base, source=feed, sink="collect")
    looked_up = keys.lookup(pa.table({"t": [1], "x": pa.array(["one"], type=array.type)}), on="t")
    replaced = engine.submit(looked_up, source=feed_of_keys, sink="discard")
    asked = engine.submit(ps.stream(schema, time="t", watermark=wants_rows), source=marked, sink="discard")
    ways = {
        "push": lambda: feed.push(table),
        "lookup": lambda: keys.lookup(table, on="t"),
        "replace": lambda: replaced.replace_lookup(table),
        "given back": lambda: base.map_batches(lambda batch: table).run(pa.table({"x": ["a"], "t": [1]})),
        "asked": lambda: marked.push(table.to_batches()[1]),
        "whole": lambda: keys.lookup(table.slice(1), on="t"),
    }
    for name, way in ways.items():
        try:
            way()
        except (ps.InputError, ps.PlanError) as error:
            print("InputError" if name != "whole" else "refused")
            continue
        print("accepted")
    feed.close()
    assert query.result().rows_in in (0, len(table))
print("alive")
"""


def ran(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.parametrize("case", CASES)
def test_a_broken_chunk_is_refused_before_it_is_copied(case: str) -> None:
    said = ran(f"{PRELUDE}\narray = {CASES[case]}\n{CHUNKED}")
    assert said == ["InputError"] * 5 + ["refused", "alive"]


def test_valid_chunks_pass_the_same_script() -> None:
    said = ran(f'{PRELUDE}\narray = text([0, 2, 4], b"abcd")\n{CHUNKED}')
    assert said == ["accepted"] * 6 + ["alive"]


@pytest.mark.parametrize("index", [5, -1])
def test_keys_of_a_dictionary_are_checked_before_its_nulls_are_counted(index: int) -> None:
    said = ran(f"""{PRELUDE}
values = pa.array(["only", None])
array = pa.DictionaryArray.from_arrays(pa.array([{index}], pa.int8()), values, safe=False)
table = pa.Table.from_arrays([array], names=["x"])
feed = ps.PushSource()
stream = ps.stream(pa.schema([pa.field("x", pa.string(), nullable=False)]))
with ps.Engine(workers=1) as engine:
    query = engine.submit(stream, source=feed, sink="discard")
    for way in (lambda: stream.run(table), lambda: feed.push(table)):
        try:
            way()
        except ps.SchemaMismatchError as error:
            print("valid" if "not valid Arrow data" in str(error) else error)
""")
    assert said == ["valid", "valid"]
