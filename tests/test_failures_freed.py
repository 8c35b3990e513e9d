"""A query that has failed is freed like anything else, with its error and the frames that it has passed."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from reference.live import soon
from reference.watchdog import watched

STREAM = ps.stream({"n": "int64"})
DIVIDED = STREAM.select(x=1 // col("n"))
ZERO = pa.table({"n": [0]})


class Large:
    """Stands for what a function has at hand: it can be told whether it is still there."""


class OwnError(Exception):
    """Nothing that the engine knows."""


def failing_rows(noticed: list[weakref.ref[Any]]) -> Iterator[pa.Table]:
    held = Large()
    noticed.append(weakref.ref(held))
    yield ZERO
    raise OwnError("of the rows")


async def _collect(query: ps.Query) -> list[ps.Batch]:
    return [batch async for batch in query]


def read_async(query: ps.Query) -> object:
    return asyncio.run(_collect(query))


def read_in_a_thread(query: ps.Query) -> None:
    raised: list[BaseException] = []

    def read() -> None:
        try:
            list(query.results())
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    if raised:
        raise raised.pop()


def drain(query: ps.Query) -> None:
    assert soon(lambda: query.status != "running"), "rows that were not taken before are none of its own"
    query.stop(drain=True)


WAITS: dict[str, tuple[Any, Callable[[ps.Query], object]]] = {
    "wait": ("discard", ps.Query.wait),
    "result": ("collect", ps.Query.result),
    "results": (None, list),
    "async": (None, read_async),
    "thread": (None, read_in_a_thread),
    "drain": ("discard", drain),
}


def try_it(query: ps.Query, wait: Callable[[ps.Query], object]) -> BaseException:
    """What it raises, and the frame that has seen that holds something large."""
    held = Large()
    try:
        wait(query)
    except Exception as error:
        assert held is not None
        return error
    pytest.fail("it has not failed")


def fail_in_many_ways(
    how: str, submit: Callable[[ps.Engine, Any, list[weakref.ref[Any]]], ps.Query]
) -> list[weakref.ref[Any]]:
    """References to all that a query, which failed three times over for its user, has at hand."""
    sink, wait = WAITS[how]
    noticed: list[weakref.ref[Any]] = []
    held = Large()
    noticed.append(weakref.ref(held))
    with ps.Engine(workers=1) as engine, watched(engine) as queries:
        query = submit(engine, sink, noticed)
        queries.append(query)
        first = try_it(query, wait)
        noticed.append(weakref.ref(first))
        for _ in range(2):
            again = try_it(query, wait)
            assert again is first is query.error
            lines = traceback.extract_tb(again.__traceback__)
            assert [line.name for line in lines].count("try_it") == 1, "of this time, and no time before"
        queries.clear()
    return noticed


def of_the_engine(engine: ps.Engine, sink: Any, noticed: list[weakref.ref[Any]]) -> ps.Query:
    return engine.submit(DIVIDED, source=[ZERO], sink=sink)


def of_the_source(engine: ps.Engine, sink: Any, noticed: list[weakref.ref[Any]]) -> ps.Query:
    return engine.submit(STREAM, source=failing_rows(noticed), sink=sink)


def of_a_function(engine: ps.Engine, sink: Any, noticed: list[weakref.ref[Any]]) -> ps.Query:
    known: list[ps.Query] = []

    def refuse(batch: ps.Batch) -> ps.Batch:
        held = Large()
        noticed.append(weakref.ref(held))
        raise OwnError("of the function", known)

    query = engine.submit(STREAM.map_batches(refuse), source=[ZERO], sink=sink)
    known.append(query)
    return query


def of_letters(engine: ps.Engine, sink: Any, noticed: list[weakref.ref[Any]]) -> ps.Query:
    known: list[ps.Query] = []

    def refuse(batch: ps.Batch) -> None:
        held = Large()
        noticed.append(weakref.ref(held))
        raise OwnError("of the dead letter", known)

    query = engine.submit(DIVIDED, source=[ZERO], sink=sink, on_error=refuse)
    known.append(query)
    return query


@pytest.mark.parametrize("how", WAITS)
@pytest.mark.parametrize("submit", [of_the_engine, of_the_source, of_a_function, of_letters])
def test_nothing_is_left_of_a_query_that_has_failed(how: str, submit: Any) -> None:
    noticed = fail_in_many_ways(how, submit)
    assert len(noticed) >= 2
    assert soon(lambda: gc.collect() >= 0 and all(ref() is None for ref in noticed))


@pytest.mark.parametrize("sink", ["discard", "collect", None])
def test_an_error_of_the_engine_is_freed_without_the_collector(sink: Any) -> None:
    wait: Any = {"discard": ps.Query.wait, "collect": ps.Query.result, None: list}[sink]

    def frame(query: ps.Query) -> weakref.ref[Any]:
        held = Large()
        with pytest.raises(ps.ComputeError):
            wait(query)
        return weakref.ref(held)

    with ps.Engine(workers=1) as engine, watched(engine):
        query = engine.submit(DIVIDED, source=[ZERO], sink=sink)
        assert soon(lambda: query.status == "failed")
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                assert frame(query)() is None, "the query is alive, its error is not"
        finally:
            gc.enable()


def test_a_sink_that_knows_its_query_is_freed() -> None:
    noticed: list[weakref.ref[Any]] = []

    def run(look: bool) -> None:
        known: list[ps.Query] = []

        def sink(batch: ps.Batch) -> None:
            held = Large()
            noticed.append(weakref.ref(held))
            error = OwnError("of the sink", known)
            noticed.append(weakref.ref(error))
            raise error

        with ps.Engine(workers=1) as engine, watched(engine):
            query = engine.submit(STREAM, source=[ZERO], sink=sink)
            known.append(query)
            assert soon(lambda: query.status == "failed")
            if look:
                with pytest.raises(OwnError):
                    query.wait()
            else:
                assert query._native.has_failed_unseen
                with pytest.warns(ps.QueryFailedWarning):
                    engine.stop()

    for look in (True, False):
        run(look)
    assert len(noticed) == 4
    assert soon(lambda: gc.collect() >= 0 and all(ref() is None for ref in noticed))


def test_a_query_that_failed_and_that_nobody_asked_is_freed() -> None:
    noticed: list[weakref.ref[Any]] = []

    def run() -> None:
        known: list[ps.Query] = []

        def sink(batch: ps.Batch) -> None:
            error = OwnError("of the sink", known, engine)
            noticed.append(weakref.ref(error))
            raise error

        engine = ps.Engine(workers=1)
        query = engine.submit(STREAM, source=[ZERO], sink=sink)
        known.append(query)
        assert soon(lambda: query.status == "failed")
        engine._native.stop()

    run()
    assert soon(lambda: len(noticed) == 1 and gc.collect() >= 0 and noticed[0]() is None)


def test_the_error_of_a_shared_source_is_freed_and_the_cause_of_others() -> None:
    def run() -> list[weakref.ref[Any]]:
        noticed: list[weakref.ref[Any]] = []
        with ps.Engine(workers=1) as engine, watched(engine):
            source = engine.source(STREAM, failing_rows(noticed), hold=True)
            queries = [engine.submit(STREAM, source=source, sink="discard") for _ in range(3)]
            source.start()
            errors = [try_it(query, ps.Query.wait) for query in queries]
            assert soon(lambda one=source: one.status == "failed")  # type: ignore[misc]
            own = source.error
            assert isinstance(own, OwnError)
            assert all(error.__cause__ is own for error in errors)
            with pytest.raises(OwnError):
                raise own
            noticed += [weakref.ref(error) for error in [own, *errors]]
            del source, own
            gc.collect()
            with pytest.raises(ps.SourceEndedError) as caught:
                queries[0].wait()
            assert isinstance(caught.value.__cause__, OwnError), "kept for as long as there are its readers"
        return noticed

    noticed = run()
    assert len(noticed) == 5
    assert soon(lambda: gc.collect() >= 0 and all(ref() is None for ref in noticed))


def test_whoever_pushes_learns_why_the_query_has_ended_and_keeps_nothing() -> None:
    def run() -> list[weakref.ref[Any]]:
        noticed: list[weakref.ref[Any]] = []

        def sink(batch: ps.Batch) -> None:
            held = Large()
            error = OwnError("of the sink", source)
            noticed.extend([weakref.ref(held), weakref.ref(error)])
            raise error

        with ps.Engine(workers=1) as engine, watched(engine):
            source = ps.PushSource()
            query = engine.submit(STREAM, source=source, sink=sink)
            assert source.push(ZERO)
            assert soon(lambda one=query: one.status == "failed")  # type: ignore[misc]
            assert isinstance(query.error, OwnError)
            del query
            gc.collect()
            for _ in range(2):
                with pytest.raises(ps.QueryEndedError) as caught:
                    source.push(ZERO)
                assert isinstance(caught.value.__cause__, OwnError)
        return noticed

    noticed = run()
    assert len(noticed) == 2
    assert soon(lambda: gc.collect() >= 0 and all(ref() is None for ref in noticed))


def test_what_was_raised_keeps_its_own_frames_however_often_it_is_raised() -> None:
    with ps.Engine(workers=1) as engine, watched(engine):
        query = engine.submit(STREAM, source=failing_rows([]), sink="discard")
        seen = [try_it(query, ps.Query.wait) for _ in range(5)]
        assert all(error is seen[0] for error in seen)
        names = [line.name for line in traceback.extract_tb(seen[0].__traceback__)]
        assert names[0] == "try_it"
        assert names[-1] == "failing_rows", "where it was raised"
        assert len(names) <= 4
