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
