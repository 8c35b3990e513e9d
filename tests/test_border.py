"""No panic of the engine reaches Python: whatever is handed in, what comes out is an `Exception`."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference import children

ROOT = Path(__file__).resolve().parents[1]
PLAN = ps.stream({"x": "int64"})


class CSchema(ctypes.Structure):
    """The first fields of an `ArrowSchema`, up to the children."""

    _fields_ = (
        ("format", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.POINTER(ctypes.c_void_p)),
    )


def spoiled(capsule: Any) -> Any:
    """Overwrites the name of the first column with bytes that are no UTF-8."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    schema = CSchema.from_address(pointer(capsule, b"arrow_schema"))
    first = CSchema.from_address(schema.children[0])
    ctypes.memset(first.name, 0xFF, 1)
    return capsule


class Spoiled:
    """A batch whose schema breaks the rules of Arrow."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        schema, array = self._batch.__arrow_c_array__()
        return spoiled(schema), array


class SpoiledSchema:
    """A schema that breaks the rules of Arrow."""

    def __arrow_c_schema__(self) -> Any:
        return spoiled(pa.schema({"x": pa.int64()}).__arrow_c_schema__())


def batch() -> Any:
    return Spoiled(pa.record_batch({"x": [1, 2, 3]}))


def on_engine(data: Any) -> object:
    with ps.Engine(workers=1) as engine:
        return engine.submit(PLAN, source=data, sink="collect").result()


def pushed() -> None:
    with ps.Engine(workers=1) as engine:
        source = ps.PushSource()
        query = engine.submit(PLAN, source=source, sink="collect")
        try:
            source.push(batch())
        finally:
            query.stop()


def two_inputs() -> object:
    left, right = (ps.stream({"x": "int64"}, name=name) for name in ("left", "right"))
    return left.union(right).run({"left": iter([batch()]), "right": iter([])})


READ: dict[str, Callable[[], object]] = {
    "run": lambda: PLAN.run(batch()),
    "run over an iterator": lambda: PLAN.run(iter([batch()])),
    "run over two iterators": two_inputs,
    "an engine": lambda: on_engine(batch()),
    "an engine over an iterator": lambda: on_engine(iter([batch()])),
    "a replay": lambda: ps.replay(batch()),
    "a push": pushed,
    "a lookup table": lambda: PLAN.lookup(batch(), on="x"),
    "a function": lambda: PLAN.map_batches(lambda _: batch()).run(pa.table({"x": [1]})),
    "key groups": lambda: ps._penstock.key_groups(batch(), ["x"]),
    "a schema": lambda: ps.stream(SpoiledSchema()),
}


@pytest.mark.parametrize("how", READ)
def test_data_that_breaks_the_rules_of_arrow_is_an_input_error(how: str) -> None:
    with pytest.raises(ps.InputError, match="utf-?8"):
        READ[how]()
    assert PLAN.run(pa.table({"x": [1]})).rows_out == 1, "and everything works as before"


def test_a_panic_comes_out_as_an_engine_error() -> None:
    result = PLAN.run(pa.table({"x": [1]}))
    asked = spoiled(pa.schema({"x": pa.int64()}).__arrow_c_schema__())
    with pytest.raises(ps.EngineError, match="bug in Penstock"):
        result.__arrow_c_stream__(asked)
    assert pa.table(result).num_rows == 1


ZERO_BYTE = """
def refuse(batch):
    raise ValueError("before" + chr(0) + "behind")

plan = STREAM.map_batches(refuse, schema=SCHEMA)
with ps.Engine(workers=1) as engine:
    query = engine.submit(plan, source=BATCH)
    try:
        pa.table(query.results())
    except (pa.ArrowException, OSError) as error:
        say(text=str(error))
"""


def test_an_arrow_stream_fails_with_words_whatever_they_are() -> None:
    """Words with a zero byte are no string of C: to hand them on as one would abort the process."""
    said = children.run(ZERO_BYTE)
    assert "before" in said
    assert "behind" in said


def test_everything_that_python_calls_is_guarded() -> None:
    """A panic that pyo3 turns into an exception is no `Exception`: nothing may get that far."""
    files = sorted((ROOT / "crates/python/src").rglob("*.rs"))
    doors = [
        (path.name, text[: match.start()].rstrip().rsplit("\n", 1)[-1].strip())
        for path in files
        for text in [path.read_text()]
        for match in re.finditer(r"^#\[(pymethods|pyfunction)\b", text, re.MULTILINE)
    ]
    assert len(doors) > 15
    assert [name for name, before in doors if before != "#[guarded]"] == []


ROWS = pa.StructArray.from_arrays([pa.array([1, 2, 3])], names=["x"])
SOME_ROWS = pa.StructArray.from_arrays(
    [pa.array([1, 2, 3])], names=["x"], mask=pa.array([False, True, False])
)
NO_ROWS: dict[str, tuple[Any, str]] = {
    "an array": (pa.array([1, 2]), "one column, of int64.*table"),
    "a list array": (pa.array([[1], [2]]), "one column.*table"),
    "a chunked array": (pa.chunked_array([[1, 2]]), "one column, of int64.*table"),
    "structs of which one is null": (SOME_ROWS, "row 1 is null"),
    "such structs in a stream": (pa.chunked_array([ROWS, SOME_ROWS]), "row 1 is null"),
}


@pytest.mark.parametrize("what", NO_ROWS)
def test_data_that_is_no_rows_is_an_input_error(what: str) -> None:
    data, words = NO_ROWS[what]
    for read in (PLAN.run, on_engine, lambda data: PLAN.run(iter([data])), ps.replay):
        with pytest.raises(ps.InputError, match=words):
            read(data)


def test_an_array_of_structs_is_rows() -> None:
    assert PLAN.run(ROWS).to_pylist() == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert PLAN.run(pa.chunked_array([ROWS, ROWS])).rows_out == 6


class OwnError(Exception):
    """Raised by code of the user's own."""


def test_what_a_producer_raises_comes_out_as_itself() -> None:
    class Refusing:
        def __arrow_c_schema__(self) -> Any:
            raise OwnError("no schema")

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            raise OwnError("no rows")

    with pytest.raises(OwnError, match="no schema"):
        ps.stream(Refusing())
    with pytest.raises(OwnError, match="no rows"):
        PLAN.run(Refusing())
