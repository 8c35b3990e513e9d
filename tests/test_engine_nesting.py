"""Functions of a pipeline that use engines: what can work does, what cannot is refused, nothing hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
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


WAITS: dict[str, Callable[[ps.Engine], object]] = {
    "result": lambda engine: engine.submit(NUMBERS, source=ONE, sink="collect").result(),
    "wait": lambda engine: engine.submit(NUMBERS, source=ONE, sink="discard").wait(),
    "drain": lambda engine: engine.submit(NUMBERS, source=ps.PushSource(), sink="discard").stop(drain=True),
    "results": lambda engine: next(engine.submit(NUMBERS, source=open_feed()).results()),
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
