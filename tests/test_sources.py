"""What `run` reads: anything that speaks Arrow, and iterables of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
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
    "lazy frame": lambda: pl.LazyFrame({"t": [1, 2, 11, 25], "k": ["a", "b", "a", None]}),
    "lazy frame with steps": lambda: pl.DataFrame(TABLE).lazy().filter(pl.col("t") > 0),
    "dataset": lambda: pyarrow.dataset.dataset(TABLE),
    "scanner": lambda: pyarrow.dataset.dataset(TABLE).scanner(batch_size=2),
    "struct array": lambda: pa.array(TABLE.to_pylist(), pa.struct(TABLE.schema)),
    "chunked struct array": lambda: pa.chunked_array([TABLE.to_struct_array().combine_chunks()]),
    "result": lambda: ps.stream(TABLE.schema).run(TABLE),
    "list of lazy frames' batches": lambda: list(pl.DataFrame(TABLE).lazy().collect_batches()),
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


SINGLE: dict[str, Callable[[], Any]] = {
    "iterator of a list": lambda: iter([BATCH]),
    "iterator of a tuple": lambda: iter((BATCH,)),
    "map": lambda: map(BATCH.slice, [0]),
    "filter": lambda: filter(None, [BATCH]),
    "zip": lambda: (batch for (batch,) in zip([BATCH])),
    "chain": lambda: itertools.chain([BATCH], [BATCH]),
    "generator": generator,
    "reader": lambda: TABLE.to_reader(),
    "empty iterator": lambda: iter([]),
}  # fmt: skip


@pytest.mark.parametrize("source", SINGLE)
def test_what_can_be_read_once_is_refused_the_second_time(source: str) -> None:
    data = SINGLE[source]()
    stream = ps.stream(TABLE.schema)
    stream.run(data)
    with pytest.raises(ps.StreamConsumedError, match="read only once"):
        stream.run(data)
    with ps.Engine(workers=1) as engine, pytest.raises(ps.StreamConsumedError, match="source is a"):
        engine.submit(stream, source=data)
    with pytest.raises(ps.StreamConsumedError):
        ps.replay(data)


def test_two_queries_do_not_share_an_iterator_by_accident() -> None:
    stream = ps.stream(TABLE.schema)
    data = iter([BATCH] * 3)
    with ps.Engine(workers=1) as engine:
        first = engine.submit(stream, source=data, sink="collect")
        assert first.result().rows_in == 12
        with pytest.raises(ps.StreamConsumedError):
            engine.submit(stream, source=data, sink="collect").result()


def test_rows_that_are_null_as_a_whole_are_refused() -> None:
    structs = pa.array([{"t": 1, "k": "a"}, None], pa.struct(TABLE.schema))
    for data in (structs, pa.chunked_array([structs]), [structs]):
        with pytest.raises(ps.InputError, match="row 1 is null as a whole"):
            query().run(data)


def test_files_of_a_dataset_are_read_as_they_go(tmp_path: Path) -> None:
    for part in range(3):
        pyarrow.parquet.write_table(TABLE, tmp_path / f"{part}.parquet")
    result = ps.stream(TABLE.schema).run(pyarrow.dataset.dataset(tmp_path))
    assert result.rows_in == 12
    lazy = pl.scan_parquet(tmp_path / "*.parquet").select("t", "k")
    assert ps.stream(lazy.collect_schema()).run(lazy).rows_in == 12
    with ps.Engine(workers=1) as engine:
        query = engine.submit(ps.stream(TABLE.schema), source=lazy, sink="collect")
        assert query.result().rows_in == 12


def test_a_lookup_table_may_be_lazy() -> None:
    names = pl.LazyFrame({"k": ["a", "b"], "name": ["Anna", "Bert"]})
    stream = ps.stream(TABLE.schema).lookup(names, on="k")
    assert {row["name"] for row in stream.run(TABLE).to_pylist()} == {"Anna", "Bert"}


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
