"""Asynchronous iterables as sources: they end, fail, wait and are closed as in `async for`."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

STREAM = ps.stream({"n": "int64"})
# Far above what anything here takes, so that a hang is a failure.
LONG = 60


def table(*numbers: int) -> pa.Table:
    return pa.table({"n": list(numbers)})


async def count_to(last: int) -> AsyncIterator[pa.Table]:
    for n in range(last):
        await asyncio.sleep(0)
        yield table(n)


def numbers(result: ps.Result) -> list[int]:
    return [row["n"] for row in result.to_pylist()]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "penstock-async"]


def test_run_reads_an_async_generator_to_its_end() -> None:
    assert numbers(STREAM.run(count_to(100))) == list(range(100))
    assert threads() == []


def test_run_works_within_a_running_loop() -> None:
    async def work() -> list[int]:
        return numbers(STREAM.run(count_to(10)))

    assert asyncio.run(work()) == list(range(10))


def test_a_query_reads_an_async_generator_to_its_end() -> None:
    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=count_to(50), sink="collect")
        assert query.wait(LONG)
        assert numbers(query.result()) == list(range(50))


def test_several_streams_and_shared_sources_read_them() -> None:
    left, right = (ps.stream({"n": "int64"}, name=name) for name in ("left", "right"))
    both = left.union(right).run({"left": count_to(5), "right": count_to(5)})
    assert sorted(numbers(both)) == sorted([*range(5), *range(5)])
    with ps.Engine(workers=1) as engine:
        source = engine.source(STREAM, count_to(7), hold=True)
        queries = [engine.submit(STREAM, source=source, sink="collect") for _ in range(2)]
        source.start()
        assert [numbers(query.result()) for query in queries] == [list(range(7))] * 2
    assert len(ps.replay(count_to(3))) == 3


class Endless:
    """An asynchronous iterable that is no generator, with a new iterator each time."""

    def __aiter__(self) -> AsyncIterator[pa.Table]:
        return count_to(4)


def test_an_iterable_may_be_read_again_and_a_generator_may_not() -> None:
    again = Endless()
    assert [len(STREAM.run(again)) for _ in range(2)] == [4, 4]
    once = count_to(4)
    assert len(STREAM.run(once)) == 4
    with pytest.raises(ps.StreamConsumedError, match="data is a async_generator that was read before"):
        STREAM.run(once)


class OddityError(Exception):
    """An exception of the user's own."""


async def failing(closed: threading.Event) -> AsyncIterator[pa.Table]:
    try:
        yield table(1)
        await asyncio.sleep(0)
        raise OddityError("from the source")
    finally:
        closed.set()


def test_its_own_exception_comes_out_as_itself() -> None:
    closed = threading.Event()
    with pytest.raises(OddityError, match="from the source") as caught:
        STREAM.run(failing(closed))
    assert any(entry.name == "failing" for entry in caught.traceback)
    assert closed.is_set()
    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=failing(threading.Event()), sink="discard")
        with pytest.raises(OddityError, match="from the source"):
            query.wait(LONG)


def test_an_item_that_is_no_data_fails_and_closes_it() -> None:
    closed = threading.Event()

    async def odd() -> AsyncIterator[Any]:
        try:
            yield table(1)
            yield 3
        finally:
            closed.set()

    with pytest.raises(TypeError, match=r"item 1 of data must be .* not int"):
        STREAM.run(odd())
    assert closed.wait(LONG)


async def silent(
    started: threading.Event, closed: list[str], done: threading.Event
) -> AsyncIterator[pa.Table]:
    try:
        yield table(1)
        started.set()
        await asyncio.Event().wait()  # for ever
    except asyncio.CancelledError:
        closed.append("cancelled")
        raise
    finally:
        await asyncio.sleep(0)  # closing may wait, too
        closed.append("closed")
        done.set()


@pytest.mark.parametrize("way", ["stop", "drain", "engine"])
def test_a_query_that_ends_cancels_and_closes_it(way: str) -> None:
    started, done, closed = threading.Event(), threading.Event(), list[str]()
    engine = ps.Engine(workers=1)
    query = engine.submit(STREAM, source=silent(started, closed, done), sink="discard")
    assert started.wait(LONG)
    if way == "engine":
        engine.stop()
    else:
        query.stop(drain=way == "drain")
    assert done.wait(LONG)
    assert closed == ["cancelled", "closed"]
    engine.stop()


async def beating(started: threading.Event, done: threading.Event) -> AsyncIterator[pa.Table]:
    try:
        while True:
            yield table(1)
            started.set()
            await asyncio.sleep(0.001)
    finally:
        done.set()


@pytest.mark.parametrize("shared", [False, True])
def test_it_is_cancelled_when_the_collector_takes_the_engine(shared: bool) -> None:
    def leave(source: AsyncIterator[pa.Table]) -> None:
        engine = ps.Engine(workers=1)
        data: Any = engine.source(STREAM, source) if shared else source
        query = engine.submit(STREAM, source=data, sink="discard")
        ring: list[Any] = [engine, data if shared else None, query]
        ring.append(ring)

    gc.disable()  # it would take some engines before they have begun
    try:
        for _ in range(20):
            started, done = threading.Event(), threading.Event()
            leave(beating(started, done))
            assert started.wait(LONG)
            gc.collect()
            assert done.wait(LONG)
    finally:
        gc.enable()


@pytest.mark.slow
def test_what_the_collector_takes_is_out_of_reach_for_the_threads(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others run while it finalises: a generator that a thread began only then would be finalised at work."""
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(30):
            ring: list[Any] = []
            for _ in range(4):
                engine = ps.Engine(workers=1)
                source = beating(threading.Event(), threading.Event())
                ring += [engine, engine.submit(STREAM, source=source, sink="discard")]
            ring.append(ring)
            del engine, source, ring
            gc.collect()
    finally:
        sys.setswitchinterval(interval)
    deadline = time.monotonic() + LONG
    while threads() and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert threads() == []
    assert unraisable == []
    assert caplog.records == []


def test_one_that_goes_on_when_it_is_cancelled_ends_at_its_next_item() -> None:
    started, done = threading.Event(), threading.Event()

    async def stubborn() -> AsyncIterator[pa.Table]:
        try:
            yield table(1)
            started.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            yield table(2)
        finally:
            done.set()

    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=stubborn(), sink="discard")
        assert started.wait(LONG)
        query.stop()
        assert done.wait(LONG)


class Closing:
    """An iterable without items that takes a while to clean up."""

    def __init__(self) -> None:
        self.begins, self.may_end, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __aiter__(self) -> Closing:
        return self

    async def __anext__(self) -> pa.Table:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.begins.set()
        while not self.may_end.is_set():
            await asyncio.sleep(0.001)
        self.ended.set()


def test_an_iterable_that_has_ended_cleans_up_although_its_query_is_stopped() -> None:
    closing = Closing()
    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=closing, sink="discard")
        assert closing.begins.wait(LONG)
        threading.Timer(0.2, closing.may_end.set).start()
        query.stop()
    assert closing.ended.wait(LONG)


LEAVING = {
    "script": "",
    "with": "with engine: pass",
    "drain": "query.stop(drain=True)",
}


@pytest.mark.parametrize("way", LEAVING)
def test_it_cleans_up_before_the_interpreter_ends(way: str) -> None:
    script = f"""
import asyncio, threading
import pyarrow as pa
import penstock as ps

started, one = threading.Event(), pa.table({{"n": [1]}})

async def beating():
    try:
        while True:
            yield one
            started.set()
            await asyncio.sleep(0.001)
    finally:
        await asyncio.sleep(2)
        print("closed")

engine = ps.Engine(workers=1)
query = engine.submit(ps.stream({{"n": "int64"}}), source=beating(), sink="discard")
assert started.wait({LONG})
{LEAVING[way]}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert (done.returncode, done.stdout) == (0, "closed\n"), done.stderr


@pytest.mark.parametrize("drain", [False, True])
def test_what_it_raises_when_it_is_closed_is_told(drain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    started = threading.Event()

    async def odd() -> AsyncIterator[pa.Table]:
        try:
            yield table(1)
            started.set()
            await asyncio.Event().wait()
        finally:
            raise OddityError("at the end")

    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=odd(), sink="discard")
        assert started.wait(LONG)
        query.stop(drain=drain)
        assert query.error is None
    deadline = time.monotonic() + LONG
    while not told and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [type(one.exc_value) for one in told] == [OddityError]


def test_a_query_that_fails_closes_it() -> None:
    started, done, closed = threading.Event(), threading.Event(), list[str]()
    failing = STREAM.with_columns(x=1 // (ps.col("n") - 1))
    with pytest.raises(ps.ComputeError):
        failing.run(silent(started, closed, done))
    assert done.wait(LONG)
    assert closed == ["cancelled", "closed"]


def test_a_generator_that_waits_for_room_is_closed_where_it_stands() -> None:
    done = threading.Event()

    async def endless() -> AsyncIterator[pa.Table]:
        try:
            n = 0
            while True:
                yield table(n)
                n += 1
        finally:
            done.set()

    with ps.Engine(workers=1) as engine:
        query = engine.submit(STREAM, source=endless())  # nobody reads its results
        next(query.results())
        query.stop()
        assert done.wait(LONG)


def test_all_of_it_is_one_task_with_timeouts_and_groups() -> None:
    beats: list[int] = []
    tasks = set[object]()

    async def beating() -> None:
        while True:
            beats.append(1)
            await asyncio.sleep(0.001)

    async def grouped() -> AsyncIterator[pa.Table]:
        async with asyncio.timeout(LONG), asyncio.TaskGroup() as group:
            heart = group.create_task(beating())
            for n in range(5):
                tasks.add(asyncio.current_task())
                yield table(n)
                before = len(beats)
                while len(beats) < before + 2:
                    await asyncio.sleep(0.001)
            heart.cancel()

    assert numbers(STREAM.run(grouped())) == list(range(5))
    assert len(tasks) == 1
    assert beats


def test_it_sees_the_context_of_whoever_hands_it_in() -> None:
    name: contextvars.ContextVar[int] = contextvars.ContextVar("name", default=0)

    async def told() -> AsyncIterator[pa.Table]:
        yield table(name.get())

    name.set(7)
    assert numbers(STREAM.run(told())) == [7]


def test_a_cancelled_error_of_its_own_comes_out() -> None:
    async def giving_up() -> AsyncIterator[pa.Table]:
        yield table(1)
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        STREAM.run(giving_up())


def test_windows_close_by_the_time_of_its_rows() -> None:
    counts = ps.stream({"n": "int64"}, time="n").window(ps.tumbling(10)).agg(rows=ps.count())
    with ps.Engine(workers=2) as engine:
        query = engine.submit(counts, source=count_to(30))
        assert [row["rows"] for batch in query for row in batch.to_pylist()] == [10, 10, 10]
