"""What `run` reads: anything that speaks Arrow, and iterables of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import penstock as ps
from reference.engine import rows_of

TABLE = pa.table({"t": pa.array([1, 2, 11, 25], pa.int64()), "k": ["a", "b", "a", None]})
BATCH = TABLE.combine_chunks().to_batches()[0]
EXPECTED = {(0, "a", 1), (0, "b", 1), (10, "a", 1), (20, None, 1)}


class OnlyArray:
    """Speaks `__arrow_c_array__` and nothing else."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.batch.__arrow_c_array__(requested_schema)


class OnlyStream:
    """Speaks `__arrow_c_stream__` and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def generator() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches(max_chunksize=1)


SOURCES: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "chunked table": lambda: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 2), TABLE.slice(3)]),
    "batch": lambda: BATCH,
    "sliced batch": lambda: pa.concat_batches([BATCH, BATCH]).slice(4, 4),
    "reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, generator()),
    "table reader": lambda: TABLE.to_reader(max_chunksize=2),
    "pandas": lambda: TABLE.to_pandas(),
    "pandas with arrow columns": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame({"t": [1, 2, 11, 25], "k": ["a", "b", "a", None]}),
    "list of batches": lambda: TABLE.to_batches(max_chunksize=1),
    "tuple of batches": lambda: tuple(TABLE.to_batches(max_chunksize=3)),
    "generator": generator,
    "list of tables and batches": lambda: [TABLE.slice(0, 1), BATCH.slice(1, 2), TABLE.slice(3)],
    "iterator of frames": lambda: iter([pl.from_arrow(TABLE.slice(0, 3)), TABLE.slice(3).to_pandas()]),
    "only an array": lambda: OnlyArray(BATCH),
    "only a stream": lambda: OnlyStream(TABLE),
    "list of only arrays": lambda: [OnlyArray(BATCH.slice(0, 2)), OnlyArray(BATCH.slice(2))],
    "list of readers": lambda: [TABLE.slice(0, 2).to_reader(), TABLE.slice(2).to_reader()],
    "map": lambda: map(BATCH.slice, range(4), [1] * 4),
    "with empty batches": lambda: [BATCH.slice(0, 0), BATCH.slice(0, 2), BATCH.slice(2, 0), BATCH.slice(2)],
}  # fmt: skip


def query() -> ps.Stream:
    return (
        ps.stream({"t": "int64", "k": "string"}, time="t").window(ps.tumbling(10), by="k").agg(n=ps.count())
    )


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same(source: str) -> None:
    result = query().run(SOURCES[source]())
    assert {(row["window_start"], row["k"], row["n"]) for row in rows_of(result)} == EXPECTED
    assert result.rows_in == 4


@pytest.mark.parametrize("data", [None, 1, "table", b"bytes", object(), {"t": [1]}, 3.5])
def test_what_is_no_data_is_a_type_error(data: Any) -> None:
    with pytest.raises(TypeError, match=r"__arrow_c_|Arrow"):
        query().run(data)


@pytest.mark.parametrize("item", [None, 1, "x", {"t": [1], "k": ["a"]}])
def test_an_item_that_is_no_data_is_a_type_error(item: Any) -> None:
    with pytest.raises(TypeError, match=r"__arrow_c_|Arrow"):
        query().run([BATCH, item])


def test_columns_are_matched_by_name() -> None:
    shuffled = pa.table(
        {"extra": [[1]] * 4, "k": TABLE.column("k"), "more": [1.5] * 4, "t": TABLE.column("t")}
    )
    mixed = query().run([BATCH.slice(0, 2), shuffled.slice(2)])
    assert {(row["window_start"], row["k"], row["n"]) for row in rows_of(mixed)} == EXPECTED
    alone = query().run(shuffled)
    assert {(row["window_start"], row["k"], row["n"]) for row in rows_of(alone)} == EXPECTED


def test_a_missing_column_names_itself() -> None:
    with pytest.raises(ps.SchemaMismatchError, match="k") as caught:
        query().run(TABLE.select(["t"]))
    assert caught.value.column == "k"


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint64(), pa.float64(), pa.timestamp("ms"), pa.string()])
def test_another_type_is_refused(kind: pa.DataType) -> None:
    other = pa.table({"t": TABLE.column("t").cast(kind), "k": TABLE.column("k")})
    with pytest.raises(ps.SchemaMismatchError, match="t") as caught:
        query().run(other)
    assert caught.value.column == "t"
    assert "int64" in str(caught.value)


def test_units_and_zones_are_part_of_the_type() -> None:
    stream = ps.stream({"t": "timestamp[ms]"})
    for kind in (pa.timestamp("us"), pa.timestamp("ms", "UTC")):
        with pytest.raises(ps.SchemaMismatchError):
            stream.run(pa.table({"t": pa.array([1], kind)}))


def test_a_later_batch_is_checked_as_well() -> None:
    with pytest.raises(ps.SchemaMismatchError):
        query().run([BATCH, TABLE.select(["t"])])


def test_a_null_in_a_column_declared_without_is_refused() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    stream = ps.stream(schema)
    assert len(stream.run(pa.table({"a": [1, 2], "b": [None, 1]}))) == 2
    with pytest.raises(ps.SchemaMismatchError, match="a") as caught:
        stream.run(pa.table({"a": [1, None], "b": [1, 1]}))
    assert caught.value.column == "a"


def test_a_reader_can_be_read_once() -> None:
    reader = TABLE.to_reader()
    query().run(reader)
    with pytest.raises(ps.StreamConsumedError):
        query().run(reader)


def test_a_table_can_be_read_again_and_again() -> None:
    stream = query()
    assert [len(stream.run(TABLE)) for _ in range(3)] == [4, 4, 4]


class OddityError(Exception):
    """An exception of the user's own."""


def test_the_users_own_exception_comes_out_as_itself() -> None:
    raised = OddityError("from the source")

    def failing() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise raised

    with pytest.raises(OddityError) as caught:
        query().run(failing())
    assert caught.value is raised
    assert any(entry.name == "failing" for entry in caught.traceback)


def test_an_exception_of_the_arrow_method_comes_out_as_itself() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            raise OddityError("no stream today")

    with pytest.raises(OddityError, match="no stream today"):
        query().run(Broken())


def test_an_error_of_a_foreign_stream_is_an_input_error() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise pa.ArrowInvalid("the disk is on fire")

    with pytest.raises(ps.InputError, match="the disk is on fire"):
        query().run(pa.RecordBatchReader.from_batches(TABLE.schema, failing()))


def test_a_source_is_read_lazily_and_to_the_end() -> None:
    taken: list[int] = []

    def counted() -> Iterator[pa.RecordBatch]:
        for i in range(50):
            taken.append(i)
            yield BATCH.slice(i % 4, 1)

    stream = ps.stream(TABLE.schema)
    assert len(stream.run(counted())) == 50
    assert taken == list(range(50))


def test_an_arrow_schema_declares_as_well_as_a_mapping() -> None:
    by_mapping = ps.stream({"t": "int64", "k": "string"}, time="t")
    assert by_mapping == ps.stream(TABLE.schema, time="t")
    assert by_mapping == ps.stream(by_mapping.schema, time="t")
    assert pa.schema(by_mapping.schema) == TABLE.schema
