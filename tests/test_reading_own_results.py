"""Results that are read where the next of them depends on the reader, or that another query reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

NUMBERS = ps.stream({"n": "int64"})
ONE = pa.table({"n": [1]})
PATIENCE = 30.0
"""Seconds, far above what anything here takes."""

# Of a query that fails, and of those that are stopped, results are left behind.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.RowsDiscardedWarning")


@pytest.fixture(params=[1, 2])
def engine(request: pytest.FixtureRequest) -> Iterator[ps.Engine]:
    with ps.Engine(workers=request.param) as engine:
        yield engine


def ended(query: ps.Query) -> bool:
    """Waits on a thread of its own, so that a hang is a failure."""

    def wait() -> None:
        with suppress(ps.PenstockError):
            query.wait()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


def read_all(query: ps.Query) -> int:
    return sum(len(batch.to_pylist()) for batch in query)


def read_awaited(query: ps.Query) -> int:
    async def read() -> int:
        return sum([len(batch.to_pylist()) async for batch in query])

    return asyncio.run(read())


WAYS: dict[str, Callable[[ps.Query], int]] = {
    "for": read_all,
    "async for": read_awaited,
    "results": lambda query: sum(len(batch.to_pylist()) for batch in query.results()),
    "table": lambda query: pa.table(query).num_rows,
    "run": lambda query: len(NUMBERS.run(query)),
    "run results": lambda query: len(NUMBERS.run(query.results())),
}


@pytest.mark.parametrize("shape", ["own", "shared", "chained", "chained and shared"])
@pytest.mark.parametrize("kind", ["iterator", "async"])
@pytest.mark.parametrize("way", WAYS)
def test_results_that_wait_for_their_own_reader_are_refused(
    engine: ps.Engine, way: str, kind: str, shape: str
) -> None:
    queries: list[ps.Query] = []
    submitted = threading.Event()
    refused: list[BaseException] = []

    def items() -> Iterator[pa.Table]:
        yield ONE
        assert submitted.wait(PATIENCE)
        try:
            WAYS[way](queries[-1])
        except Exception as error:
            refused.append(error)

    async def awaited() -> AsyncIterator[pa.Table]:
        yield ONE
        assert submitted.wait(PATIENCE)
        try:
            if way == "async for":
                async for _ in queries[-1]:
                    pass
            else:
                WAYS[way](queries[-1])
        except Exception as error:
            refused.append(error)

    given: Any = items() if kind == "iterator" else awaited()
    source: Any = engine.source(NUMBERS, given) if shape == "shared" else given
    queries.append(engine.submit(NUMBERS, source=source))
    if shape == "chained":
        queries.append(engine.submit(NUMBERS, source=queries[0]))
    elif shape == "chained and shared":
        again = engine.source(NUMBERS, queries[0])
        queries.append(engine.submit(NUMBERS, source=again))
    submitted.set()
    # Nobody reads the results but the source itself, and it goes on once it was refused.
    assert ended(queries[-1])
    (error,) = refused
    assert isinstance(error, ps.EngineError) or way == "table", error
    assert "wait for itself" in str(error)


def test_a_source_may_read_what_its_query_has_made_of_what_it_gave(engine: ps.Engine) -> None:
    """It only has no result to wait for when it has read all of them."""
    queries: list[ps.Query] = []
    submitted = threading.Event()
    read: list[int] = []

    def items() -> Iterator[pa.Table]:
        assert submitted.wait(PATIENCE)
        results = iter(queries[0])
        for n in range(200):
            yield pa.table({"n": [n]})
            # No item is asked for before the one before it was taken, but it may not have gone all the way.
            read.extend(row["n"] for row in next(results).to_pylist())

    queries.append(engine.submit(NUMBERS.filter(ps.col("n") >= 0), source=items()))
    submitted.set()
    assert ended(queries[0])
    assert queries[0].status == "finished", queries[0].error
    assert read == list(range(200))


def test_a_reader_with_another_input_waits_for_it(engine: ps.Engine) -> None:
    """Results may come by the other input at any time: such a reader is not refused."""
    queries: list[ps.Query] = []
    submitted, go = threading.Event(), threading.Event()
    read: list[int] = []

    def items() -> Iterator[pa.Table]:
        yield ONE
        assert submitted.wait(PATIENCE)
        results = iter(queries[0])
        read.extend(row["n"] for row in next(results).to_pylist())
        go.set()
        read.extend(row["n"] for row in next(results).to_pylist())

    feed = ps.PushSource()
    left, right = ps.stream({"n": "int64"}, name="left"), ps.stream({"n": "int64"}, name="right")
    sources: dict[str, Any] = {"left": items(), "right": feed}
    queries.append(engine.submit(left.union(right), source=sources))
    submitted.set()
    assert go.wait(PATIENCE)
    threading.Event().wait(0.3)  # long enough to be refused
    feed.push(pa.table({"n": [2]}))
    feed.close()
    assert ended(queries[0])
    assert read == [1, 2]


@pytest.mark.parametrize("way", ["for", "async for", "results"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_watermark_function_that_reads_results_that_wait_for_it_is_refused(
    engine: ps.Engine, way: str, shared: bool
) -> None:
    queries: list[ps.Query] = []
    submitted = threading.Event()
    refused: list[BaseException] = []

    def watermark(batch: ps.Batch) -> int:
        assert submitted.wait(PATIENCE)
        try:
            WAYS[way](queries[0])
        except ps.EngineError as error:
            refused.append(error)
        return 0

    timed = ps.stream({"n": "int64"}, time="n", watermark=watermark)
    source: Any = engine.source(timed, [ONE]) if shared else [ONE]
    queries.append(engine.submit(timed, source=source))
    submitted.set()
    assert ended(queries[0])
    (error,) = refused
    assert "wait for itself" in str(error)


def test_a_task_beside_an_asynchronous_source_may_read_its_results(engine: ps.Engine) -> None:
    """The source goes on while that one waits."""
    queries: list[ps.Query] = []
    submitted = threading.Event()
    read: list[int] = []
    in_time: list[bool] = []

    async def listen() -> None:
        async for batch in queries[0]:
            read.extend(row["n"] for row in batch.to_pylist())

    async def items() -> AsyncIterator[pa.Table]:
        assert submitted.wait(PATIENCE)
        listening = asyncio.create_task(listen())
        for n in range(3):
            yield pa.table({"n": [n]})
            await asyncio.sleep(0.3)  # long enough to be refused
        try:
            await asyncio.wait_for(asyncio.create_task(anext(queries[0].results())), 0.3)
        except TimeoutError:
            in_time.append(False)
        listening.cancel()

    queries.append(engine.submit(NUMBERS, source=items()))
    submitted.set()
    assert ended(queries[0])
    assert (read, in_time) == ([0, 1, 2], [False])


READERS: dict[str, Callable[[ps.Engine, ps.Query], object]] = {
    "query": lambda engine, query: engine.submit(NUMBERS, source=query, sink="collect").result(),
    "results": lambda engine, query: engine.submit(NUMBERS, source=query.results(), sink="collect").result(),
    "shared": lambda engine, query: engine.submit(
        NUMBERS, source=engine.source(NUMBERS, query), sink="collect"
    ).result(),
    "run": lambda engine, query: NUMBERS.run(query),
    "replay": lambda engine, query: ps.replay(query),
    "table": lambda engine, query: pa.table(query),
}


@pytest.mark.parametrize("way", READERS)
def test_who_reads_a_query_that_is_stopped_does_not_take_that_for_its_end(
    engine: ps.Engine, way: str
) -> None:
    feed = ps.PushSource()
    query = engine.submit(NUMBERS, source=feed)
    feed.push(ONE)
    stopping = threading.Timer(0.2, query.stop)
    stopping.start()
    with pytest.raises(Exception, match="stopped") as caught:  # an Arrow stream passes on words only
        READERS[way](engine, query)
    stopping.join()
    assert way == "table" or any(
        isinstance(error, ps.QueryStoppedError) for error in (caught.value, caught.value.__cause__)
    )


def test_results_that_another_query_reads_are_its_alone(engine: ps.Engine) -> None:
    feed = ps.PushSource()
    first = engine.submit(NUMBERS, source=feed)
    second = engine.submit(NUMBERS, source=first, name="reader", sink="collect")
    for way in (read_all, read_awaited):
        with pytest.raises(ps.StreamConsumedError, match='go to "reader"'):
            way(first)
    feed.push(ONE)
    feed.close()
    assert len(second.result()) == 1
    # It has ended, and left nothing.
    assert read_all(first) == 0


def test_what_a_reader_that_was_stopped_has_left_is_anybodys(engine: ps.Engine) -> None:
    feed = ps.PushSource(capacity=16)
    first = engine.submit(NUMBERS, source=feed)
    second = engine.submit(NUMBERS, source=first, sink="discard")
    second.stop()
    assert second.status == "stopped"
    feed.push(ONE)
    feed.close()
    assert read_all(first) <= 1


def test_a_query_whose_function_has_not_taken_all_is_stopped() -> None:
    entered, go = threading.Event(), threading.Event()

    def sink(batch: ps.Batch) -> None:
        entered.set()
        assert go.wait(PATIENCE)

    with ps.Engine(workers=1, block_rows=1) as engine:
        query = engine.submit(NUMBERS, source=[ONE] * 50, sink=sink)
        assert entered.wait(PATIENCE)
        stopping = threading.Thread(target=query.stop, daemon=True)
        stopping.start()
        threading.Event().wait(0.05)
        go.set()
        stopping.join(PATIENCE)
        assert ended(query)
        assert query.status == "stopped"


def test_a_drain_asks_an_iterable_for_nothing_more() -> None:
    entered, go = threading.Event(), threading.Event()
    asked: list[int] = []

    def items() -> Iterator[pa.Table]:
        n = 0
        while True:
            asked.append(n)
            entered.set()
            if n == 3:
                assert go.wait(PATIENCE)
            yield ONE
            n += 1

    with ps.Engine(workers=1) as engine:
        query = engine.submit(NUMBERS, source=items(), sink="discard")
        deadline = threading.Event()
        while len(asked) < 4:
            assert not deadline.wait(0.001)
        query.stop(drain=True)
        assert query.metrics()["rows_in"] == 3
        go.set()
    assert asked == [0, 1, 2, 3]


def test_a_drain_does_not_wait_for_the_first_batch_of_a_reader_that_was_given() -> None:
    entered, go = threading.Event(), threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        entered.set()
        assert go.wait(PATIENCE)
        yield from ONE.to_batches()

    def items() -> Iterator[pa.RecordBatchReader]:
        yield pa.RecordBatchReader.from_batches(ONE.schema, batches())

    async def awaited() -> AsyncIterator[pa.RecordBatchReader]:
        for item in items():
            yield item

    for source in (items(), awaited()):
        entered.clear()
        go.clear()
        with ps.Engine(workers=1) as engine:
            query = engine.submit(NUMBERS, source=source, sink="collect")
            assert entered.wait(PATIENCE)
            draining = threading.Thread(target=query.stop, args=(True,), daemon=True)
            draining.start()
            draining.join(PATIENCE)
            assert not draining.is_alive()
            assert len(query.result()) == 0
            go.set()


def test_an_asynchronous_source_is_asked_when_somebody_waits() -> None:
    """It is not read ahead: what a query that is stopped never asked for is still there."""
    given: list[int] = []

    async def items() -> AsyncIterator[pa.Table]:
        for n in range(100):
            given.append(n)
            yield ONE

    with ps.Engine(workers=1) as engine:
        query = engine.submit(NUMBERS, source=items(), sink="collect")
        assert ended(query)
        assert len(query.result()) == 100
    assert given == list(range(100))
