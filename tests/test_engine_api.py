"""The engine from Python: queries that come and go, their sources, sinks, errors and counters.

Faults and interleavings have files of their own; here every part of the interface is used once, as its
documentation says.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from penstock.options import read_options

HANG_SECONDS = 20.0
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
STREAM = ps.stream(SCHEMA, time="t")
COUNTS = STREAM.window(ps.tumbling(10), by="k").agg(n=ps.count())


def batch(*times: int, key: int = 1) -> pa.RecordBatch:
    return pa.record_batch([pa.array(times, pa.int64()), pa.array([key] * len(times), pa.int64())], SCHEMA)


def rows(batches: Any) -> list[dict[str, Any]]:
    return [row for one in batches for row in one.to_pylist()]


def push_for_ever(source: ps.PushSource) -> None:
    while source.push(batch(1)):
        pass


def soon(condition: Callable[[], bool]) -> bool:
    """Whether it comes true before anybody would call it a hang."""
    limit = time.monotonic() + HANG_SECONDS
    while not condition() and time.monotonic() < limit:
        time.sleep(0.005)
    return condition()


@pytest.fixture(params=["state", "threads"])
def engine(request: pytest.FixtureRequest) -> Iterator[ps.Engine]:
    with ps.Engine(workers=2, mode=request.param, budget="64MiB") as engine:
        yield engine


# Queries


def test_a_query_runs_to_its_end(engine: ps.Engine) -> None:
    query = engine.submit(COUNTS, source=[batch(1, 2), batch(11)], name="counts")
    assert query.name == "counts"
    assert query.schema.names == ["window_start", "window_end", "k", "n"]
    assert [row["n"] for row in rows(query)] == [2, 1]
    assert query.wait(HANG_SECONDS)
    assert query.status == "finished"
    assert query.error is None
    metrics = query.metrics()
    assert (metrics["rows_in"], metrics["rows_contributed"], metrics["rows_out"]) == (3, 3, 2)
    assert list(query) == [], "results are read once"


def test_many_queries_at_a_time(engine: ps.Engine) -> None:
    queries = [
        engine.submit(STREAM.filter(col("k") == key), source=[batch(1, 2, key=key)] * 5, sink="collect")
        for key in range(20)
    ]
    assert [len(query.result()) for query in queries] == [10] * 20
    assert len({query.name for query in queries}) == 20
    assert engine.queries == ()


def test_queries_that_run_are_listed_and_found(engine: ps.Engine) -> None:
    sources = [ps.PushSource() for _ in range(3)]
    queries = [engine.submit(STREAM, source=source, name=f"q{i}") for i, source in enumerate(sources)]
    assert engine.queries == tuple(queries)
    assert engine.query("q1") is queries[1]
    queries[1].stop()
    assert engine.queries == (queries[0], queries[2])
    with pytest.raises(KeyError, match=r"no query named 'q1' runs; there are \['q0', 'q2'\]"):
        engine.query("q1")
    assert "q0" in repr(engine)
    assert "q2" in engine._repr_html_()
    assert "running" in repr(queries[0])
    assert "<table" in queries[0]._repr_html_()


def test_stop_ends_a_query_now_and_drain_lets_it_finish(engine: ps.Engine) -> None:
    sources = [ps.PushSource(), ps.PushSource()]
    stopped, drained = (engine.submit(COUNTS, source=source, sink="collect") for source in sources)
    for source in sources:
        assert source.push(batch(1, 2, 3))
    stopped.stop()
    drained.stop(drain=True)
    assert (stopped.status, drained.status) == ("stopped", "finished")
    assert rows([drained.result()]) == [{"window_start": 0, "window_end": 10, "k": 1, "n": 3}]
    assert stopped.wait()
    assert stopped.error is None
    with pytest.raises(ps.QueryStoppedError):
        stopped.result()
    for query in (stopped, drained):
        query.stop()
        query.stop(drain=True)


def test_the_results_of_a_stopped_query_just_end(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source)
    source.push(batch(1))
    results = query.results()
    assert next(results).num_rows == 1
    threading.Timer(0.05, query.stop).start()
    assert list(results) == []
    assert list(query.results()) == []


def test_wait_gives_up_in_time(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source)
    before = time.monotonic()
    assert not query.wait(0.05)
    assert not query.wait(0)
    assert not query.wait(-1)
    assert time.monotonic() - before < HANG_SECONDS
    with pytest.raises(ValueError, match="nan"):
        query.wait(float("nan"))


def test_a_result_is_the_same_each_time_and_counts_all_rows(engine: ps.Engine) -> None:
    query = engine.submit(COUNTS, source=[batch(5), batch(25), batch(3)], sink="collect")
    first, second = query.result(), query.result()
    assert first.to_pylist() == second.to_pylist()
    metrics = first.metrics()
    assert (metrics["rows_in"], metrics["rows_contributed"], metrics["rows_late"]) == (3, 2, 1)
    assert metrics["rows_shed"] == 0
    assert metrics["seconds"] > 0
    assert set(metrics["event_latency"]) == set(metrics["output_latency"])


def test_an_engine_that_was_stopped_takes_nothing() -> None:
    engine = ps.Engine(workers=1)
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source)
    engine.stop()
    engine.stop()
    assert query.status == "stopped"
    with pytest.raises(ps.EngineStoppedError):
        engine.submit(STREAM, source=[])
    with pytest.raises(ps.EngineStoppedError):
        engine.source(STREAM, [])
    assert engine.queries == ()
    assert "0 queries run" in repr(engine)


def test_names_are_taken_while_a_query_runs(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source, name="one")
    with pytest.raises(ps.NameTakenError) as caught:
        engine.submit(STREAM, source=[], name="one")
    assert caught.value.name == "one"
    assert pickle.loads(pickle.dumps(caught.value)).name == "one"
    query.stop()
    engine.submit(STREAM, source=[], name="one", sink="discard").wait()


def test_an_engine_that_nobody_holds_is_kept_by_its_queries() -> None:
    query = ps.Engine(workers=1).submit(COUNTS, source=[batch(1)], sink="collect")
    assert len(query.result()) == 1


# Sources


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
    source.push(pa.table({"t": ["no number"], "k": [1]}))
    assert soon(lambda: query.status == "failed")
    with pytest.raises(ps.QueryEndedError, match='the query "bad" has ended') as caught:
        push_for_ever(source)
    assert isinstance(caught.value.__cause__, ps.SchemaMismatchError)
    assert isinstance(query.error, ps.SchemaMismatchError)


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


# Shared sources


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
    with pytest.raises(ps.QueryEndedError, match="the shared source .* has ended"):
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


# Sinks


def test_a_function_takes_the_batches(engine: ps.Engine) -> None:
    found: list[ps.Batch] = []
    names = set()

    def sink(batch: ps.Batch) -> None:
        names.add(threading.get_ident())
        time.sleep(0.002)
        found.append(batch)

    query = engine.submit(STREAM, source=[batch(i) for i in range(20)], sink=sink)
    assert query.wait(HANG_SECONDS)
    assert sorted(row["t"] for row in rows(found)) == list(range(20)), "all of them, before wait() returns"
    assert len(names) == 1
    assert threading.get_ident() not in names
    with pytest.raises(ps.PlanError, match="go to its sink"):
        query.results()
    with pytest.raises(ps.PlanError, match="collect"):
        query.result()


def test_what_a_sink_raises_comes_back_as_itself(engine: ps.Engine) -> None:
    class FullError(Exception):
        pass

    def sink(batch: ps.Batch) -> None:
        raise FullError(str(batch.num_rows))

    source = ps.PushSource()
    early = engine.submit(STREAM, source=source, sink=sink)
    source.push(batch(1, 2))
    with pytest.raises(FullError, match="2"):
        early.wait()
    late = engine.submit(STREAM, source=[batch(1)], sink=sink)
    with pytest.raises(FullError, match="1"):
        late.wait()
    assert early.status == late.status == "failed"
    assert isinstance(late.error, FullError)


def test_a_sink_may_stop_its_query_but_not_wait_for_it(engine: ps.Engine) -> None:
    errors: list[Exception] = []
    there = threading.Event()

    def sink(_: ps.Batch) -> None:
        assert there.wait(HANG_SECONDS)
        for call in (query.wait, lambda: query.stop(drain=True)):
            try:
                call()
            except ps.EngineError as error:
                errors.append(error)
        query.stop()

    query = engine.submit(STREAM, source=ps.replay(batch(1), rounds=None), sink=sink)
    there.set()
    assert query.wait(HANG_SECONDS)
    assert query.status == "stopped"
    assert ["cannot wait for itself" in str(error) for error in errors] == [True, True]


def test_no_sink_is_called_once_the_engine_has_stopped() -> None:
    calls: list[int] = []

    def sink(batch: ps.Batch) -> None:
        time.sleep(0.01)
        calls.append(len(batch))

    with ps.Engine(workers=1) as engine:
        engine.submit(STREAM, source=ps.replay(batch(1), rounds=None), sink=sink)
        assert soon(lambda: bool(calls))
    count = len(calls)
    time.sleep(0.05)
    assert len(calls) == count


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (
            {"sink": "colect"},
            ps.PlanError,
            'sink is "collect" or "discard", not "colect"; did you mean "collect"?',
        ),
        ({"sink": 7}, TypeError, 'sink takes "collect", "discard" or a function, not int'),
        ({"name": 7}, TypeError, "name takes a string"),
        ({"name": ""}, ps.PlanError, "name is empty"),
        ({"on_lag": None}, TypeError, "on_lag takes a name"),
        ({"source": "file.parquet"}, TypeError, "source must be"),
        ({"source": 7}, TypeError, "source must be"),
        ({"plan": "SELECT 1"}, TypeError, "takes a Stream"),
    ],
    ids=str,
)
def test_arguments_that_cannot_be(
    engine: ps.Engine, arguments: dict[str, Any], kind: type[Exception], words: str
) -> None:
    given: dict[str, Any] = {"plan": STREAM, "source": [], **arguments}
    with pytest.raises(kind, match=words.replace("?", r"\?")):
        engine.submit(**given)
    assert engine.queries == ()


# Results


def test_a_batch_is_arrow_data() -> None:
    with ps.Engine(workers=1, memory="blocks", block_rows=64) as engine:
        (found,) = engine.submit(STREAM, source=batch(1, 2, 3))
    assert len(found) == found.num_rows == 3
    assert pa.record_batch(found).equals(batch(1, 2, 3))
    assert pa.table(found).num_rows == found.to_polars().height == len(found.to_pandas()) == 3
    assert found.schema.names == ["t", "k"]
    assert "3 rows of 2 columns" in repr(found)
    assert "<table" in found._repr_html_()
    assert len(STREAM.run(found)) == 3
    with pytest.raises(AttributeError, match="immutable"):
        found.x = 1
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(found)


def test_an_unread_query_waits_within_its_memory(engine: ps.Engine) -> None:
    query = engine.submit(STREAM, source=ps.replay(batch(*range(1000)), rounds=None))
    assert soon(lambda: query.metrics()["rows_in"] > 0)
    time.sleep(0.2)
    memory = engine.metrics()["memory"]
    assert memory["used_bytes"] <= memory["budget_bytes"]
    taken = query.metrics()["rows_in"]
    for _, _found in zip(range(50), query, strict=False):
        pass
    assert soon(lambda: query.metrics()["rows_in"] > taken), "it goes on when it is read"


def test_async_iteration(engine: ps.Engine) -> None:
    async def read(query: ps.Query) -> list[int]:
        return [row["t"] async for one in query for row in one.to_pylist()]

    async def main() -> list[list[int]]:
        queries = [engine.submit(STREAM, source=[batch(i), batch(i + 10)]) for i in range(8)]
        return await asyncio.gather(*map(read, queries))

    assert asyncio.run(main()) == [[i, i + 10] for i in range(8)]


def test_async_iteration_loses_nothing_when_it_is_cancelled(engine: ps.Engine) -> None:
    source = ps.PushSource(capacity=64)
    query = engine.submit(STREAM, source=source)

    async def main() -> list[int]:
        found = []
        results = query.results()
        for number in range(40):
            if number % 2:
                source.push(batch(number))
            with suppress(TimeoutError):
                one = await asyncio.wait_for(anext(results), 0.003)
                found += [row["t"] for row in one.to_pylist()]
        source.close()
        async for one in results:
            found += [row["t"] for row in one.to_pylist()]
        return found

    assert asyncio.run(main()) == list(range(1, 40, 2))


def test_async_iteration_raises_what_the_query_failed_with(engine: ps.Engine) -> None:
    async def main() -> None:
        async for _ in engine.submit(STREAM, source=pa.table({"t": [1]})):
            pass

    with pytest.raises(ps.SchemaMismatchError):
        asyncio.run(main())


# Failures


def test_a_failure_that_nobody_looked_at_is_a_warning() -> None:
    engine = ps.Engine(workers=1)
    engine.submit(STREAM, source=pa.table({"t": [1]}), name="bad")
    assert soon(lambda: engine.queries == ())
    engine.submit(STREAM, source=[], sink="discard").wait()
    with pytest.warns(ps.QueryFailedWarning, match='"bad" failed.*SchemaMismatchError') as caught:
        engine.stop()
    assert caught[0].filename == __file__


def test_a_failure_that_was_looked_at_is_none() -> None:
    looks: list[Callable[[ps.Query], object]] = [
        lambda query: query.error,
        lambda query: list(query),
        lambda query: query.wait(),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ps.Engine(workers=1) as engine:
            for look in looks:
                query = engine.submit(STREAM, source=pa.table({"t": [1]}))
                assert soon(lambda query=query: query.status == "failed")  # type: ignore[misc]
                with suppress(ps.SchemaMismatchError):
                    look(query)


def test_one_failure_leaves_the_others_alone(engine: ps.Engine) -> None:
    source = ps.PushSource()
    good = engine.submit(STREAM, source=source, sink="collect")
    bad = engine.submit(STREAM.select(x=col("t") // (col("k") - 1)), source=[batch(1)], sink="collect")
    with pytest.raises(ps.ComputeError):
        bad.result()
    source.push(batch(1))
    source.close()
    assert len(good.result()) == 1


# Metrics and options


def test_metrics_are_plain_values(engine: ps.Engine) -> None:
    query = engine.submit(COUNTS, source=[batch(*range(100))], sink="discard")
    query.wait()
    metrics = engine.metrics()
    json.dumps([metrics, query.metrics()])
    assert set(metrics) >= {
        "seconds", "queries", "tasks", "workers", "scheduling_share", "epochs", "planning_seconds", "memory",
        "process",
    }  # fmt: skip
    assert set(metrics["process"]) == {"cpu_seconds", "minor_faults", "major_faults", "resident_bytes"}
    assert metrics["memory"].keys() == STREAM.run([]).memory.keys()
    for worker in metrics["workers"]:
        assert set(worker) == {"runs", "busy_seconds", "parked_seconds", "overhead_seconds", "parks"}
    found = query.metrics()
    assert set(found["event_latency"]) == {
        "count", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms",
    }  # fmt: skip
    assert found["event_latency"]["p50_ms"] <= found["event_latency"]["max_ms"]
    assert {"name", "rows_in", "rows_out", "runs", "seconds"} == set(found["operators"][0])
    assert {"name", "pending_rows", "signals", "runs", "seconds", "blocked_seconds", "time_share", "cost_ns",
            "selectivity"} == set(found["tasks"][0])  # fmt: skip


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("policy", "adaptiv", 'is "adaptive", "fcfs" or "rr", not "adaptiv"; did you mean "adaptive"?'),
        ("mode", "thread", 'is "state" or "threads", not "thread"; did you mean "threads"?'),
        ("workers", 0, "is from 1 to 64 workers, not 0"),
        ("workers", 65, "is from 1 to 64 workers, not 65"),
    ],
)
def test_options_that_cannot_be(option: str, value: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in (lambda **options: ps.Engine(**options), lambda **options: STREAM.run([], **options)):
        with pytest.raises(ps.PlanError) as caught:
            call(**{option: value})
        assert str(caught.value) == f"{option} {words}"
    monkeypatch.setenv(f"PENSTOCK_{option.upper()}", str(value))
    with pytest.raises(ps.PlanError) as caught:
        ps.Engine()
    assert str(caught.value) == f"PENSTOCK_{option.upper()} {words}"


@pytest.mark.parametrize("policy", ["adaptive", "fcfs", "rr"])
@pytest.mark.parametrize("workers", [1, 3])
def test_every_policy_gives_the_same_answer(
    policy: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [batch(*range(i, i + 100)) for i in range(0, 1000, 100)]
    expected = sorted(map(str, COUNTS.run(data).to_pylist()))
    for mode in ("state", "threads"):
        found = COUNTS.run(data, policy=policy, workers=workers, mode=mode, chain="off")
        assert sorted(map(str, found.to_pylist())) == expected
    monkeypatch.setenv("PENSTOCK_POLICY", policy)
    monkeypatch.setenv("PENSTOCK_WORKERS", str(workers))
    monkeypatch.setenv("PENSTOCK_MODE", "threads")
    options = read_options()
    assert (options.policy, options.workers, options.mode) == (policy, workers, "threads")


# Threads, processes, and the end of the interpreter


def test_foreign_memory_is_released_on_a_thread_of_its_own() -> None:
    """Not on a worker, which must never want the interpreter."""
    import ctypes

    released: list[str] = []
    libc = ctypes.CDLL(None)
    libc.pthread_self.restype = ctypes.c_void_p
    libc.pthread_getname_np.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]

    class Owner(bytearray):
        def __del__(self) -> None:
            name = ctypes.create_string_buffer(64)
            libc.pthread_getname_np(libc.pthread_self(), name, 64)
            released.append(name.value.decode())

    def made(_: int) -> pa.RecordBatch:
        column = pa.Array.from_buffers(pa.int64(), 100, [None, pa.py_buffer(Owner(8 * 100))])
        return pa.record_batch([column, column], SCHEMA)

    with ps.Engine(workers=2) as engine:
        assert engine.submit(STREAM, source=map(made, range(20)), sink="discard").wait(HANG_SECONDS)
    assert soon(lambda: len(released) == 20)
    # The system cuts names at 15 characters. The other is the thread that iterates, and drops what it got.
    assert set(released) <= {"penstock-releas", "penstock-source"}
    assert "penstock-releas" in released


def run_script(script: str, timeout: float = HANG_SECONDS) -> subprocess.CompletedProcess[str]:
    prelude = """
import itertools, os, signal, sys, threading, time
import pyarrow as pa
import penstock as ps
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
STREAM = ps.stream(SCHEMA, time="t")
BATCH = pa.record_batch([pa.array(range(100), pa.int64())] * 2, SCHEMA)
"""
    command = [sys.executable, "-X", "faulthandler", "-c", prelude + script]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


LEAVING = {
    "a running query": "engine.submit(STREAM, source=ps.replay(BATCH, rounds=None), sink='discard')",
    "an unread query": "engine.submit(STREAM, source=itertools.repeat(BATCH))",
    "a generator": "engine.submit(STREAM, source=(BATCH for _ in itertools.count()), sink='discard')",
    "a generator asleep": "engine.submit(STREAM, source=asleep(), sink='discard')",
    "a function as sink": "engine.submit(STREAM, source=itertools.repeat(BATCH), sink=len)",
    "a function asleep": "engine.submit(STREAM, source=[BATCH], sink=lambda _: time.sleep(3600))",
    "a C stream asleep": "engine.submit(STREAM, source=pa.RecordBatchReader.from_batches(SCHEMA, asleep()))",
    "a thread that pushes": "threading.Thread(target=push, daemon=True).start()",
    "a thread that reads": (
        "threading.Thread(target=list, args=[engine.submit(STREAM, source=itertools.repeat(BATCH))],"
        " daemon=True).start()"
    ),
    "a shared source": (
        "engine.submit(STREAM, source=engine.source(STREAM, itertools.repeat(BATCH)), sink='discard')"
    ),
}


@pytest.mark.parametrize("case", LEAVING)
def test_leaving_the_interpreter_is_clean(case: str) -> None:
    script = f"""
def asleep():
    yield BATCH
    time.sleep(3600)

source = ps.PushSource()

def push():
    engine.submit(STREAM, source=source, sink="discard")
    try:
        while True:
            source.push(BATCH)
    except ps.QueryEndedError:
        pass  # the end of the interpreter stops the engine

engine = ps.Engine(workers=2)
{LEAVING[case]}
time.sleep(0.2)
"""
    done = run_script(script)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_a_clear_error_and_can_start_its_own() -> None:
    script = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
idle = ps.Engine(workers=1)
engine = ps.Engine(workers=2)
push = ps.PushSource()
source = engine.source(STREAM, ps.replay(BATCH, rounds=None))
query = engine.submit(STREAM, source=push)
other = engine.submit(STREAM, source=source, sink="discard")
push.push(BATCH)
calls = [
    lambda: engine.submit(STREAM, source=[]), lambda: engine.source(STREAM, []), engine.metrics, engine.stop,
    lambda: engine.queries, lambda: repr(engine), query.wait, query.stop, lambda: query.stop(drain=True),
    query.metrics, lambda: query.status, lambda: query.name, lambda: query.error, lambda: query.schema,
    lambda: next(iter(query)), query.result, lambda: push.push(BATCH), push.close, lambda: push.closed,
    source.metrics, source.start, source.close, lambda: source.status, lambda: source.name,
]
for number in range(20):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        signal.alarm(15)
        for number, call in enumerate(calls):
            try:
                call()
            except ps.EngineError as error:
                assert "started in another process; start a new one here" in str(error)
            else:
                print("no error from", number, flush=True)
                os._exit(3)
        assert len(STREAM.run(BATCH)) == 100
        try:
            idle.queries
        except ps.EngineError:
            pass
        else:
            os._exit(4)
        with ps.Engine(workers=1) as mine:
            assert len(mine.submit(STREAM, source=[BATCH], sink="collect").result()) == 100
        del engine, query, other, push, source, calls, call
        import gc
        gc.collect()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
assert next(iter(query)).num_rows > 0
engine.stop()
print("fine")
"""
    done = run_script(script, timeout=120)
    assert done.returncode == 0, (done.stdout, done.stderr[-3000:])
    assert done.stdout.split()[-1] == "fine"


@pytest.mark.parametrize(
    "call",
    [
        "query.wait()",
        "next(iter(query))",
        "[source.push(BATCH) for _ in range(999)]",
        "query.stop(drain=True)",
    ],
)
def test_ctrl_c_interrupts_every_call_that_waits(call: str) -> None:
    script = f"""
with ps.Engine(workers=2) as engine:
    source = ps.PushSource()
    query = engine.submit(STREAM.filter(ps.col("k") >= 0), source=source)
    if "next" not in {call!r}:
        while source.push(BATCH, timeout=0.2):
            pass
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        {call}
    except KeyboardInterrupt:
        print("interrupted", query.status)
"""
    done = run_script(script)
    assert done.stdout.split() == ["interrupted", "running"], (done.stdout, done.stderr[-2000:])
    assert done.returncode == 0


def test_other_threads_run_while_a_query_is_waited_for(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source, sink="collect")

    def push() -> None:
        source.push(batch(1))
        source.close()

    threading.Timer(0.05, push).start()
    assert query.wait(HANG_SECONDS)
    assert len(query.result()) == 1
    assert signal.getsignal(signal.SIGINT) is not None
