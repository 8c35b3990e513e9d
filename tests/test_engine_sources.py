"""Where the rows of a query come from: pushed, pulled, replayed, shared."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from reference.live import COUNTS, HANG_SECONDS, SCHEMA, STREAM, batch, push_for_ever, rows, soon


def test_pushing_waits_for_room_and_gives_up_in_time(engine: ps.Engine) -> None:
    source = ps.PushSource(capacity=2)
    assert source.push(batch(1))
    assert source.push(pa.table({"t": [2], "k": [1]}))
    assert not source.push(batch(3), timeout=0)
    assert not source.push(batch(3), 0.02)
    with source:
        query = engine.submit(STREAM, source=source, sink="collect")
        assert source.push(batch(3))
    assert source.closed
    assert sorted(row["t"] for row in rows([query.result()])) == [1, 2, 3]
    with pytest.raises(ps.SourceEndedError):
        source.push(batch(4))


def test_many_threads_push(engine: ps.Engine) -> None:
    source = ps.PushSource(capacity=1)
    query = engine.submit(STREAM, source=source, sink="collect")

    def push(number: int) -> None:
        for i in range(50):
            assert source.push(batch(number * 50 + i))

    threads = [threading.Thread(target=push, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    source.close()
    assert sorted(row["t"] for row in rows([query.result()])) == list(range(300))


def test_a_table_of_many_chunks_is_pushed_as_one(engine: ps.Engine) -> None:
    source = ps.PushSource(capacity=1)
    table = pa.Table.from_batches([batch(1), batch(2), batch(3)])
    assert source.push(table)
    source.close()
    query = engine.submit(STREAM, source=source, sink="collect")
    assert query.result().metrics()["batches_in"] == 1
    assert query.result().rows_in == 3


def test_pushing_to_a_query_that_failed_says_why(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source, name="bad")
    source.push(pa.table({"t": pa.array([None], pa.int64()), "k": [1]}))
    assert soon(lambda: query.status == "failed")
    with pytest.raises(ps.QueryEndedError, match='the query "bad" has ended') as caught:
        push_for_ever(source)
    assert isinstance(caught.value.__cause__, ps.NullTimeError)
    assert isinstance(query.error, ps.NullTimeError)


def test_what_is_no_arrow_data_is_not_pushed() -> None:
    source = ps.PushSource()
    with pytest.raises(TypeError, match="data must be an object that speaks the Arrow"):
        source.push({"t": [1]})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="capacity takes a whole number"):
        ps.PushSource("4")  # type: ignore[arg-type]
    for capacity in (0, -1, 65_537):
        with pytest.raises(ps.PlanError, match="capacity is from 1 to 65,536 batches"):
            ps.PushSource(capacity)


def test_sources_that_are_read_once_are_refused_the_second_time(engine: ps.Engine) -> None:
    source = ps.PushSource()
    engine.submit(STREAM, source=source)
    with pytest.raises(ps.StreamConsumedError, match="PushSource"):
        engine.submit(STREAM, source=source)
    reader = pa.RecordBatchReader.from_batches(SCHEMA, [batch(1)])
    assert len(engine.submit(STREAM, source=reader, sink="collect").result()) == 1
    with pytest.raises(ps.StreamConsumedError):
        engine.submit(STREAM, source=reader)


def test_an_iterable_is_read_on_its_own_thread_and_raises_as_itself(engine: ps.Engine) -> None:
    class MineError(Exception):
        pass

    seen = []

    def batches() -> Iterator[pa.RecordBatch]:
        seen.append(threading.get_ident())
        yield batch(1)
        raise MineError("the network is gone")

    query = engine.submit(STREAM, source=batches(), sink="collect")
    with pytest.raises(MineError, match="the network is gone") as caught:
        query.wait()
    assert seen != [threading.get_ident()]
    assert query.error is caught.value
    assert query.status == "failed"
    with pytest.raises(MineError):
        query.result()


def test_results_end_with_the_error(engine: ps.Engine) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise OSError("disk")

    query = engine.submit(STREAM, source=batches())
    with pytest.raises(OSError, match="disk"):
        list(query)
    with pytest.raises(OSError, match="disk"):
        list(query)


def test_an_iterable_that_yields_something_else(engine: ps.Engine) -> None:
    query = engine.submit(STREAM, source=iter([batch(1), 7]), sink="discard")
    with pytest.raises(TypeError, match="item 1 of source"):
        query.wait()


def test_replay(engine: ps.Engine) -> None:
    replay = ps.replay([batch(0, 1, 2, 3), batch(4, 5)], rounds=3)
    assert len(replay) == 6
    query = engine.submit(STREAM, source=replay, sink="collect")
    times = sorted(row["t"] for row in rows([query.result()]))
    assert len(times) == 18
    assert times[:6] == [0, 1, 2, 3, 4, 5]
    assert len(set(times)) == 18, "later rounds are later"
    paced = engine.submit(STREAM, source=ps.replay(batch(*range(100)), rate=2_000), sink="collect")
    assert paced.result().seconds > 0.04
    endless = engine.submit(COUNTS, source=ps.replay(batch(*range(100)), rounds=None), sink="discard")
    assert soon(lambda: endless.metrics()["rows_in"] > 1_000)
    endless.stop()
    metrics = endless.metrics()
    assert metrics["rows_late"] == 0


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"rate": 0}, ps.PlanError, "rate is a number of rows per second above zero, not 0"),
        ({"rate": float("inf")}, ps.PlanError, "above zero"),
        ({"rate": "fast"}, TypeError, "rate takes a number"),
        ({"rounds": 0}, ps.PlanError, "rounds is a whole number from 1"),
        ({"rounds": 1.5}, TypeError, "rounds takes a whole number"),
    ],
)
def test_a_replay_that_cannot_be(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        ps.replay(batch(1), **options)


def test_queries_share_a_source(engine: ps.Engine) -> None:
    source = engine.source(STREAM, [batch(*range(50)), batch(*range(50, 100))], name="numbers", hold=True)
    even = engine.submit(source.stream.filter(col("t") % 2 == 0), source=source, sink="collect")
    counts = engine.submit(COUNTS, source=source, sink="collect")
    assert (source.name, source.status) == ("numbers", "running")
    assert source.stream == STREAM
    assert not even.wait(0.05)
    source.start()
    assert len(even.result()) == 50
    assert sum(row["n"] for row in rows([counts.result()])) == 100
    assert soon(lambda: source.status == "finished")
    assert source.metrics()["rows_in"] == 100
    assert source.error is None
    with pytest.raises(ps.SourceEndedError, match='"numbers" has ended'):
        engine.submit(STREAM, source=source)


def test_a_shared_source_is_pushed_to_and_closed(engine: ps.Engine) -> None:
    push = ps.PushSource()
    source = engine.source(STREAM, push)
    query = engine.submit(STREAM, source=source, sink="collect", on_lag="shed")
    assert push.push(batch(1, 2))
    assert soon(lambda: query.metrics()["rows_out"] == 2)
    source.close()
    assert query.result().rows_in == 2
    with pytest.raises(ps.QueryEndedError, match="the shared source .* (has ended|is coming to its end)"):
        push_for_ever(push)


def test_a_failed_source_fails_its_queries(engine: ps.Engine) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise OSError("disk")

    source = engine.source(STREAM, batches())
    query = engine.submit(STREAM, source=source, sink="discard")
    with pytest.raises(ps.SourceEndedError) as caught:
        query.wait()
    assert isinstance(caught.value.__cause__, OSError)
    assert isinstance(source.error, OSError)


def test_a_query_that_lags_fails_or_sheds(engine: ps.Engine) -> None:
    data = ps.replay([batch(*range(1000))] * 100, rounds=None)
    source = engine.source(STREAM, data, hold=True)
    fast = engine.submit(STREAM, source=source, sink="discard")
    failing = engine.submit(STREAM, source=source, on_lag="fail", name="failing")
    shedding = engine.submit(STREAM, source=source, on_lag="shed", name="shedding")
    source.start()
    with pytest.raises(ps.LaggedError) as caught:
        failing.wait(HANG_SECONDS)
    assert caught.value.rows > 0
    assert soon(lambda: shedding.metrics()["rows_shed"] > 0)
    assert fast.status == shedding.status == "running"
    source.close()
    for _ in shedding:
        pass
    assert fast.wait(HANG_SECONDS)
    metrics = shedding.metrics()
    assert metrics["rows_in"] == metrics["rows_contributed"] + metrics["rows_shed"]


def test_shared_sources_that_cannot_be(engine: ps.Engine) -> None:
    with pytest.raises(ps.PlanError, match="only declared"):
        engine.source(COUNTS, [])
    source = engine.source({"t": "int64"}, [])
    with pytest.raises(TypeError, match="not another shared source"):
        engine.source(STREAM, source)  # type: ignore[arg-type]
    with ps.Engine(workers=1) as other, pytest.raises(ps.PlanError, match="belongs to another engine"):
        other.submit(source.stream, source=source)
    with pytest.raises(ps.PlanError):
        engine.submit(STREAM, source=source)
    with pytest.raises(ps.PlanError, match="on_lag= is for queries that read a shared source"):
        engine.submit(STREAM, source=[], on_lag="shed")
    with pytest.raises(
        ps.PlanError, match='on_lag is "wait", "fail" or "shed", not "shred"; did you mean "shed"'
    ):
        engine.submit(source.stream, source=source, on_lag="shred")  # type: ignore[arg-type]
