"""Functions of a pipeline that use engines: what can work does, what cannot is refused, nothing hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference import children

NUMBERS = ps.stream({"n": "int64"})
ONE = pa.table({"n": [1]})
PATIENCE = 30.0
"""Seconds, far above what anything here takes."""


def same(batch: ps.Batch) -> ps.Batch:
    return batch


def in_time(work: Callable[[], Any]) -> Any:
    """Runs it on a thread of its own, so that a hang is a failure."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it hangs"
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


NESTED = """
NUMBERS = ps.stream({{"n": "int64"}})
ONE = pa.table({{"n": [1]}})
depth = 0

def again(batch):
    global depth
    depth += 1
    if depth < {depth}:
        plan = NUMBERS.map_batches(again)
        if {threaded}:
            done = []
            thread = threading.Thread(target=lambda: done.append(plan.run(batch, workers={workers})))
            thread.start()
            thread.join()
            return done[0]
        return plan.run(batch, workers={workers})
    return batch

assert len(NUMBERS.map_batches(again).run(ONE, workers={workers})) == 1
assert len(NUMBERS.map_batches(lambda batch: batch).run(ONE)) == 1
say(depth=depth)
"""


@pytest.mark.parametrize("threaded", [False, True], ids=["here", "on a thread"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_map_runs_pipelines_with_maps(workers: int, threaded: bool) -> None:
    """In a process of its own: what deadlocks here would take every other map along."""
    text = NESTED.format(depth=4, workers=workers, threaded=threaded)
    assert '"depth": 4' in children.run(text, PATIENCE)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_map_may_use_another_engine(workers: int) -> None:
    with ps.Engine(workers=workers) as outer, ps.Engine(workers=workers) as inner:

        def elsewhere(batch: ps.Batch) -> ps.Result:
            return inner.submit(NUMBERS.map_batches(same), source=batch, sink="collect").result()

        query = outer.submit(NUMBERS.map_batches(elsewhere), source=ONE, sink="collect")
        assert len(in_time(query.result)) == 1


FEEDS: list[ps.PushSource] = []


def open_feed() -> ps.PushSource:
    """One that stays: a feed that nobody holds any more ends its query."""
    FEEDS.append(ps.PushSource())
    return FEEDS[-1]


async def first_of(query: ps.Query) -> ps.Batch:
    async for batch in query:
        return batch
    raise AssertionError("it has no results")


def run_over_two(query: ps.Query) -> None:
    left, right = (ps.stream({"n": "int64"}, name=name) for name in ("left", "right"))
    ps.union(left, right).run({"left": ONE, "right": query})


WAITS: dict[str, Callable[[ps.Engine], object]] = {
    "result": lambda engine: engine.submit(NUMBERS, source=ONE, sink="collect").result(),
    "wait": lambda engine: engine.submit(NUMBERS, source=ONE, sink="discard").wait(),
    "drain": lambda engine: engine.submit(NUMBERS, source=ps.PushSource(), sink="discard").stop(drain=True),
    "results": lambda engine: next(engine.submit(NUMBERS, source=open_feed()).results()),
    "async for": lambda engine: asyncio.run(first_of(engine.submit(NUMBERS, source=open_feed()))),
    "run": lambda engine: NUMBERS.run(engine.submit(NUMBERS, source=open_feed())),
    "run over two": lambda engine: run_over_two(engine.submit(NUMBERS, source=open_feed())),
    "stop": lambda engine: engine.stop(),
    "itself": lambda engine: engine.queries[0].wait(),
}


@pytest.mark.parametrize("what", WAITS)
def test_a_map_that_waits_for_its_own_engine_is_refused(engine: ps.Engine, what: str) -> None:
    def wait(batch: ps.Batch) -> ps.Batch:
        WAITS[what](engine)
        return batch

    query = engine.submit(NUMBERS.map_batches(wait), source=ONE, sink="collect")
    with pytest.raises(ps.EngineError, match="wait for itself"):
        in_time(query.result)
    assert len(in_time(lambda: NUMBERS.map_batches(same).run(ONE))) == 1
    assert len(in_time(engine.submit(NUMBERS.map_batches(same), source=ONE, sink="collect").result)) == 1


def test_a_map_may_read_results_that_are_there(engine: ps.Engine) -> None:
    """Behind another engine, so that there is a worker for them."""
    found: list[int] = []
    with ps.Engine(workers=1) as other:

        def read(batch: ps.Batch) -> ps.Batch:
            found.append(len(asyncio.run(first_of(other.submit(NUMBERS, source=ONE))).to_pylist()))
            found.append(len(NUMBERS.run(other.submit(NUMBERS, source=ONE))))
            return batch

        query = engine.submit(NUMBERS.map_batches(read), source=ONE, sink="collect")
        assert len(in_time(query.result)) == 1
    assert found == [1, 1]


SOURCE_WAITS: dict[str, Callable[[ps.Query], object]] = {
    "wait": lambda query: query.wait(),
    "result": lambda query: query.result(),
}


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("what", SOURCE_WAITS)
@pytest.mark.parametrize("kind", ["iterator", "stream", "iterator of streams", "async"])
def test_a_source_that_waits_for_its_own_query_is_refused(
    engine: ps.Engine, kind: str, what: str, shared: bool
) -> None:
    queries: list[ps.Query] = []
    submitted = threading.Event()

    def items() -> Iterator[pa.Table]:
        yield ONE
        assert submitted.wait(PATIENCE)
        SOURCE_WAITS[what](queries[0])

    def batches() -> Iterator[pa.RecordBatch]:
        return (batch for table in items() for batch in table.to_batches())

    async def awaited() -> AsyncIterator[pa.Table]:
        for item in items():
            yield item

    kinds: dict[str, Callable[[], Any]] = {
        "iterator": items,
        "stream": lambda: pa.RecordBatchReader.from_batches(ONE.schema, batches()),
        "iterator of streams": lambda: iter([pa.RecordBatchReader.from_batches(ONE.schema, batches())]),
        "async": awaited,
    }
    source: Any = engine.source(NUMBERS, kinds[kind]()) if shared else kinds[kind]()
    queries.append(engine.submit(NUMBERS, source=source, sink="collect"))
    submitted.set()
    with pytest.raises(ps.PenstockError) as raised:
        in_time(queries[0].result)
    assert isinstance(raised.value, ps.SourceEndedError) == shared
    error = raised.value.__cause__ if shared else raised.value
    # A stream of Arrow has no exceptions: it hands on their words.
    assert isinstance(error, ps.InputError if "stream" in kind else ps.EngineError)
    assert "wait for itself" in str(error)


def test_an_iterable_may_ask_for_the_end_and_wait_for_others(engine: ps.Engine) -> None:
    queries: list[ps.Query] = []
    submitted = threading.Event()
    said: list[object] = []

    def items() -> Iterator[pa.Table]:
        assert submitted.wait(PATIENCE)
        said.append(queries[0].wait(timeout=0.01))
        said.append(len(engine.submit(NUMBERS, source=iter([ONE]), sink="collect").result()))
        yield ONE
        said.append(len(next(queries[0].results()).to_pylist()))
        queries[0].stop()
        said.append(queries[0].wait())

    queries.append(engine.submit(NUMBERS, source=items()))
    submitted.set()
    assert in_time(queries[0].wait)
    deadline = time.monotonic() + PATIENCE
    while len(said) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert said == [False, 1, 1, True]


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("what", SOURCE_WAITS)
def test_a_watermark_function_that_waits_for_its_own_query_is_refused(
    engine: ps.Engine, what: str, shared: bool
) -> None:
    queries: list[ps.Query] = []

    def watermark(batch: ps.Batch) -> int:
        SOURCE_WAITS[what](queries[0])
        return 0

    timed = ps.stream({"n": "int64"}, time="n", watermark=watermark)
    feed = ps.PushSource()
    source: Any = engine.source(timed, feed) if shared else feed
    queries.append(engine.submit(timed, source=source, sink="collect"))
    with pytest.raises(ps.EngineError, match="wait for itself"):
        in_time(lambda: feed.push(ONE))
    feed.close()
    assert len(in_time(queries[0].result)) == 0


def test_a_watermark_function_may_stop_its_query(engine: ps.Engine) -> None:
    queries: list[ps.Query] = []
    seen: list[str] = []

    def watermark(batch: ps.Batch) -> int:
        queries[0].stop()
        seen.append(queries[0].status)
        return 0

    timed, feed = ps.stream({"n": "int64"}, time="n", watermark=watermark), ps.PushSource()
    queries.append(engine.submit(timed, source=feed, sink="discard"))
    with pytest.raises(ps.QueryEndedError):
        in_time(lambda: feed.push(ONE))
    assert seen == ["stopped"]


def test_a_map_that_joins_a_shared_source_of_its_engine_is_refused(engine: ps.Engine) -> None:
    source = engine.source(NUMBERS, ps.PushSource())

    def join(batch: ps.Batch) -> ps.Batch:
        engine.submit(source.stream, source=source, sink="discard")
        return batch

    query = engine.submit(NUMBERS.map_batches(join), source=ONE, sink="collect")
    with pytest.raises(ps.EngineError, match="shared source"):
        in_time(query.result)


def test_a_map_that_pushes_to_its_own_engine_does_not_wait_for_room(engine: ps.Engine) -> None:
    feed = ps.PushSource(capacity=1)
    engine.source(NUMBERS, feed, hold=True)  # takes nothing until it is told to

    def push(batch: ps.Batch) -> ps.Batch:
        while True:
            feed.push(batch)

    query = engine.submit(NUMBERS.map_batches(push), source=ONE, sink="collect")
    with pytest.raises(ps.EngineError, match="wait for itself"):
        in_time(query.result)


def test_a_map_may_stop_and_submit_queries_of_its_engine(engine: ps.Engine) -> None:
    feed = ps.PushSource()
    other = engine.submit(NUMBERS, source=feed)
    found: list[ps.Query] = []

    def use(batch: ps.Batch) -> ps.Batch:
        other.stop()
        found.append(engine.submit(NUMBERS, source=ONE, sink="collect"))
        return batch

    query = engine.submit(NUMBERS.map_batches(use), source=ONE, sink="collect")
    assert len(in_time(query.result)) == 1
    assert len(in_time(found[0].result)) == 1
    assert in_time(other.wait)
    assert other.status == "stopped"


def test_a_map_that_drops_its_engine_does_not_hang() -> None:
    text = """
import gc
before = threads()
engines = [ps.Engine(workers=1)]

def drop(batch):
    engines.clear()
    gc.collect()
    return batch

plan = ps.stream({"n": "int64"}).map_batches(drop)
engines[0].submit(plan, source=pa.table({"n": [1]}), sink="discard")
limit = time.time() + 20
while threads() > before and time.time() < limit:
    time.sleep(0.01)
say(left=threads() - before)
"""
    assert '"left": 0' in children.run(text, PATIENCE)


def test_a_submit_of_a_map_does_not_hold_up_a_stop() -> None:
    """The engine is stopped while a function of it submits."""
    engine = ps.Engine(workers=1)
    entered, stopping = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def submit(batch: ps.Batch) -> ps.Batch:
        entered.set()
        assert stopping.wait(PATIENCE)
        try:
            while True:
                engine.submit(NUMBERS, source=ps.PushSource(), sink="discard")
        except ps.EngineStoppedError as error:
            raised.append(error)
        return batch

    engine.submit(NUMBERS.map_batches(submit), source=ONE, sink="discard")
    assert entered.wait(PATIENCE)
    stopping.set()
    in_time(engine.stop)
    assert raised


class Parting:
    """A function that uses its engine when it is dropped."""

    def __init__(self, engine: ps.Engine, seen: list[str]) -> None:
        self._engine, self._seen = engine, seen

    def __call__(self, batch: ps.Batch) -> ps.Batch:
        return batch

    def __del__(self) -> None:
        self._engine.submit(NUMBERS, source=open_feed(), sink="discard", name="from __del__")
        self._seen.extend(query.name for query in self._engine.queries)


@pytest.mark.parametrize("by", ["submit", "source", "repr"])
def test_a_function_may_use_its_engine_when_it_is_dropped(engine: ps.Engine, by: str) -> None:
    """The engine drops it, with its query, when it is used the next time."""
    seen: list[str] = []
    plan = NUMBERS.map_batches(Parting(engine, seen))
    assert engine.submit(plan, source=ONE, sink="discard").wait(PATIENCE)
    del plan
    assert not seen
    uses: dict[str, Callable[[], object]] = {
        "submit": lambda: engine.submit(NUMBERS, source=open_feed(), sink="discard", name="next"),
        "source": lambda: engine.source(NUMBERS, open_feed(), name="next"),
        "repr": lambda: repr(engine),
    }
    in_time(uses[by])
    assert "from __del__" in seen
    assert engine.query("from __del__").status == "running"
    assert ("next" in [query.name for query in engine.queries]) == (by == "submit")
