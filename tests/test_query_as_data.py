"""A query as data: for whoever reads Arrow streams, and as the source of another query."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pytest

import penstock as ps
from penstock import col

STREAM = ps.stream({"n": "int64"})
TABLE = pa.table({"n": list(range(1000))})
LONG = 60


def test_libraries_read_a_query_and_its_results() -> None:
    with ps.Engine(workers=1) as engine:
        evens = STREAM.filter(col("n") % 2 == 0)
        assert pa.table(engine.submit(evens, source=TABLE))["n"].to_pylist() == list(range(0, 1000, 2))
        assert pa.table(engine.submit(evens, source=TABLE).results()).num_rows == 500
        assert pl.DataFrame(engine.submit(evens, source=TABLE))["n"].sum() == sum(range(0, 1000, 2))
        assert pl.DataFrame(engine.submit(evens, source=TABLE).results()).shape == (500, 1)
        reader = pa.RecordBatchReader.from_stream(engine.submit(evens, source=TABLE))
        assert sum(batch.num_rows for batch in reader) == 500
        assert len(pa.table(engine.submit(evens, source=TABLE)).to_pandas()) == 500


def test_a_reader_waits_for_rows_that_are_pushed_meanwhile() -> None:
    source = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=source)

        def push() -> None:
            for n in range(20):
                source.push(pa.table({"n": [n]}))
            source.close()

        pusher = threading.Thread(target=push)
        pusher.start()
        assert sorted(pa.table(query)["n"].to_pylist()) == list(range(20))
        pusher.join(LONG)


def test_python_code_of_the_query_runs_while_a_reader_waits() -> None:
    doubled = STREAM.map_batches(lambda batch: pa.table({"n": [2 * row["n"] for row in batch.to_pylist()]}))
    with ps.Engine(workers=1) as engine:
        for _ in range(3):
            read = pa.table(engine.submit(doubled, source=(one for one in [TABLE])))
            assert sum(read["n"].to_pylist()) == 2 * sum(range(1000))
            frame = pl.DataFrame(engine.submit(doubled, source=(one for one in [TABLE])))
            assert frame["n"].sum() == 2 * sum(range(1000))


def test_results_are_read_once_unless_they_are_kept() -> None:
    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=TABLE)
        assert pa.table(query).num_rows == 1000
        for again in (pa.table, pl.DataFrame, STREAM.run):
            with pytest.raises(ps.StreamConsumedError, match=r'sink="collect"'):
                again(query)
        kept = engine.submit(STREAM, source=TABLE, sink="collect")
        assert [pa.table(kept).num_rows for _ in range(2)] == [1000, 1000]
        assert STREAM.run(kept).rows_in == 1000
        with pytest.raises(ps.PlanError, match="go to its sink"):
            pa.table(engine.submit(STREAM, source=TABLE, sink="discard"))


def test_several_outputs_are_read_by_name() -> None:
    both = ps.outputs(small=STREAM.filter(col("n") < 10), large=STREAM.filter(col("n") >= 10))
    with ps.Engine(workers=1) as engine:
        query = engine.submit(both, source=TABLE)
        with pytest.raises(ps.PlanError, match="say which output"):
            pa.table(query)
        assert pa.table(query.results("small")).num_rows == 10
        assert pa.table(query.results("large")).num_rows == 990


def test_a_query_is_the_source_of_another() -> None:
    with ps.Engine(workers=2) as engine:
        first = engine.submit(STREAM.with_columns(m=col("n") * 2), source=TABLE)
        second = engine.submit(ps.stream(first.schema).filter(col("m") >= 1000), source=first)
        third = engine.submit(ps.stream(second.schema).select("n"), source=second.results(), sink="collect")
        assert sorted(row["n"] for row in third.result().to_pylist()) == list(range(500, 1000))
        assert (first.status, second.status) == ("finished", "finished")


def test_a_computed_time_column_is_declared_by_a_second_query() -> None:
    raw = ps.stream({"at": "string", "price": "int64"}).with_columns(ts=col("at").cast("timestamp[ms]"))
    data = pa.table(
        {"at": ["2024-05-01T00:00:01", "2024-05-01T00:00:02", "2024-05-01T00:00:11"], "price": [1, 2, 3]}
    )
    with pytest.raises(ps.MissingTimeColumnError, match=r'time="ts"\) and source=query'):
        raw.window(ps.tumbling("10s"))
    with ps.Engine(workers=1) as engine:
        query = engine.submit(raw, source=data)
        totals = ps.stream(query.schema, time="ts").window(ps.tumbling("10s")).agg(total=ps.sum("price"))
        result = engine.submit(totals, source=query, sink="collect").result()
        assert [row["total"] for row in result.to_pylist()] == [3, 3]


def test_queries_of_two_engines_and_shared_sources_are_chained() -> None:
    with ps.Engine(workers=1) as one, ps.Engine(workers=1) as other:
        first = one.submit(STREAM, source=TABLE)
        shared = other.source(STREAM, first, hold=True)
        readers = [other.submit(STREAM, source=shared, sink="collect") for _ in range(2)]
        shared.start()
        assert [len(reader.result()) for reader in readers] == [1000, 1000]


def test_the_error_of_the_first_query_is_that_of_the_second() -> None:
    failing = STREAM.with_columns(x=1 // (col("n") - 5))
    with ps.Engine(workers=1) as engine:
        first = engine.submit(failing, source=TABLE)
        second = engine.submit(ps.stream(first.schema), source=first, sink="discard")
        with pytest.raises(ps.ComputeError):
            second.wait(LONG)
        with pytest.raises(ps.ComputeError):
            ps.stream(failing.schema).run(engine.submit(failing, source=TABLE))


def test_a_reader_of_a_query_that_fails_or_is_stopped_gets_an_error() -> None:
    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM.with_columns(x=1 // (col("n") - 5)), source=TABLE)
        with pytest.raises(Exception, match="ComputeError"):
            pa.table(query)
        feed = ps.PushSource()
        stopped = engine.submit(STREAM, source=feed)
        stopped.stop()
        with pytest.raises(Exception, match="QueryStoppedError"):
            pa.table(stopped)


def test_a_second_query_that_is_stopped_leaves_the_first_at_work() -> None:
    feed = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        first = engine.submit(STREAM, source=feed)
        second = engine.submit(STREAM, source=first)
        assert feed.push(pa.table({"n": [1]}))
        assert next(second.results()).num_rows == 1
        second.stop()
        assert first.status == "running"
        first.stop()


def test_the_stream_keeps_the_engine() -> None:
    def made() -> ps.Query:
        return ps.Engine(workers=1).submit(STREAM, source=TABLE)

    assert pa.table(made().results()).num_rows == 1000
    reader = pa.RecordBatchReader.from_stream(made())
    assert reader.read_all().num_rows == 1000


@pytest.mark.parametrize("place", ["map", "sink", "letters", "source"])
@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_a_function_of_an_engine_reads_a_query_of_another(place: str, library: str) -> None:
    """Libraries let go of the interpreter while they read, also inside of a function of an engine."""
    read: list[int] = []

    def rows_of_another() -> int:
        with ps.Engine(workers=1) as other:
            query = other.submit(STREAM, source=TABLE)
            return pa.table(query).num_rows if library == "pyarrow" else pl.DataFrame(query).height

    def function(batch: ps.Batch) -> pa.Table:
        read.append(rows_of_another())
        return pa.table(batch)

    def source() -> Iterator[pa.Table]:
        read.append(rows_of_another())
        yield TABLE

    plan = {"map": STREAM.map_batches(function), "letters": STREAM.filter(1 // col("n") >= 0)}.get(
        place, STREAM
    )
    with ps.Engine(workers=1) as engine:
        engine.submit(
            plan,
            source=source() if place == "source" else TABLE,
            sink=function if place == "sink" else "discard",
            on_error=function if place == "letters" else "fail",
        ).wait()
    assert read
    assert set(read) == {1000}
