"""What can be read only once: refused the second time, and free again if the first time did not begin."""

from __future__ import annotations

import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.io import _claims

TABLE = pa.table({"n": pa.array([1, 2, 3, 4], pa.int64())})
BATCH = TABLE.combine_chunks().to_batches()[0]
STREAM = ps.stream(TABLE.schema)
LONG = 60


def generator() -> Iterator[pa.RecordBatch]:
    yield BATCH


async def awaited() -> AsyncIterator[pa.RecordBatch]:
    yield BATCH


def pushed(engine: ps.Engine) -> ps.PushSource:
    with ps.PushSource() as source:
        assert source.push(BATCH)
    return source


# Each is read by one query, and gives four rows.
SOURCES: dict[str, Callable[[ps.Engine], Any]] = {
    "iterator of a list": lambda engine: iter([BATCH]),
    "map": lambda engine: map(BATCH.slice, [0]),
    "generator": lambda engine: generator(),
    "asynchronous generator": lambda engine: awaited(),
    "reader": lambda engine: TABLE.to_reader(),
    "query": lambda engine: engine.submit(STREAM, source=TABLE),
    "results of a query": lambda engine: engine.submit(STREAM, source=TABLE).results(),
    "push source": pushed,
}


def name_taken(engine: ps.Engine, source: Any) -> None:
    waiting = ps.PushSource()
    engine.submit(STREAM, source=waiting, name="taken")
    with pytest.raises(ps.NameTakenError):
        engine.submit(STREAM, source=source, name="taken")
    with pytest.raises(ps.NameTakenError):
        engine.source(STREAM, source, name="taken")


def no_memory(engine: ps.Engine, source: Any) -> None:
    numbers = pa.array(range(1_000_000), pa.int64())
    large = STREAM.lookup(pa.table({"n": numbers, "m": numbers}), on="n")
    with pytest.raises(ps.MemoryLimitExceeded):
        engine.submit(large, source=source)


def no_shared_source(engine: ps.Engine, source: Any) -> None:
    with pytest.raises(ps.PlanError, match="on_lag"):
        engine.submit(STREAM, source=source, on_lag="shed")


def no_such_stream(engine: ps.Engine, source: Any) -> None:
    with pytest.raises(ps.PlanError, match="steam"):
        engine.submit(STREAM, source={"steam": source})


def no_second_stream(engine: ps.Engine, source: Any) -> None:
    both = ps.union(ps.stream(TABLE.schema, name="a"), ps.stream(TABLE.schema, name="b"))
    with pytest.raises(ps.PlanError, match='"b"'):
        engine.submit(both, source={"a": source})


def other_columns(engine: ps.Engine, source: Any) -> None:
    both = ps.union(ps.stream(TABLE.schema, name="a"), ps.stream(TABLE.schema, name="b"))
    other = ps.PushSource()
    assert other.push(pa.table({"m": [1]}))
    for given in ({"a": source, "b": other}, {"b": other, "a": source}):
        with pytest.raises(ps.SchemaMismatchError):
            engine.submit(both, source=given)


def the_same_twice(engine: ps.Engine, source: Any) -> None:
    both = ps.union(ps.stream(TABLE.schema, name="a"), ps.stream(TABLE.schema, name="b"))
    with pytest.raises(ps.StreamConsumedError):
        engine.submit(both, source={"a": source, "b": source})


def shared_source_ended(engine: ps.Engine, source: Any) -> None:
    shared = engine.source(ps.stream(TABLE.schema, name="b"), TABLE)
    assert engine.submit(shared.stream, source=shared, sink="discard").wait(LONG)
    both = ps.union(ps.stream(TABLE.schema, name="a"), shared.stream)
    with pytest.raises(ps.SourceEndedError):
        engine.submit(both, source={"a": source, "b": shared})


def engine_stopped(engine: ps.Engine, source: Any) -> None:
    other = ps.Engine(workers=1)
    other.stop()
    with pytest.raises(ps.EngineStoppedError):
        other.submit(STREAM, source=source)
    with pytest.raises(ps.EngineStoppedError):
        other.source(STREAM, source)


FAILURES = (
    name_taken,
    no_memory,
    no_shared_source,
    no_such_stream,
    no_second_stream,
    other_columns,
    the_same_twice,
    shared_source_ended,
    engine_stopped,
)


@pytest.mark.parametrize("failing", FAILURES)
@pytest.mark.parametrize("source", SOURCES)
def test_a_query_that_does_not_start_leaves_its_source(
    source: str, failing: Callable[[ps.Engine, Any], None]
) -> None:
    with ps.Engine(workers=1, budget="8MiB") as engine:
        data = SOURCES[source](engine)
        failing(engine, data)
        failing(engine, data) if failing is not name_taken else None
        assert engine.submit(STREAM, source=data, sink="collect").result().rows_in == 4
        with pytest.raises(ps.StreamConsumedError):
            engine.submit(STREAM, source=data)


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "push source"])
def test_a_run_that_does_not_start_leaves_its_data(source: str) -> None:
    numbers = pa.array(range(1_000_000), pa.int64())
    large = STREAM.lookup(pa.table({"n": numbers, "m": numbers}), on="n")
    with ps.Engine(workers=1) as engine:
        data = SOURCES[source](engine)
        with pytest.raises(ps.MemoryLimitExceeded):
            large.run(data, budget="8MiB")
        assert STREAM.run(data).rows_in == 4
        with pytest.raises(ps.StreamConsumedError):
            STREAM.run(data)


def test_a_shared_source_that_does_not_start_leaves_its_data() -> None:
    with ps.Engine(workers=1) as engine:
        data = TABLE.to_reader()
        name_taken(engine, data)
        shared = engine.source(STREAM, data)
        assert engine.submit(STREAM, source=shared, sink="collect").result().rows_in == 4


def test_a_push_source_takes_other_columns_after_a_query_that_did_not_start() -> None:
    with ps.Engine(workers=1) as engine, ps.PushSource() as source:
        name_taken(engine, source)
        no_such_stream(engine, source)
        no_shared_source(engine, source)
        assert source.push(pa.table({"m": [1.5]}))
        query = engine.submit(ps.stream({"m": "float64"}), source=source, sink="collect")
        with pytest.raises(ps.SchemaMismatchError):
            source.push(BATCH)
        source.close()
        assert query.result().to_pylist() == [{"m": 1.5}]


def test_a_push_source_goes_on_while_queries_do_not_start() -> None:
    """Batches are pushed by another thread all the while; none is lost, and none comes twice."""
    source, done = ps.PushSource(capacity=2), threading.Event()

    def push() -> None:
        for n in range(100):
            source.push(pa.table({"n": [n]}))
        source.close()
        done.set()

    numbers = pa.array(range(1_000_000), pa.int64())
    large = STREAM.lookup(pa.table({"n": numbers, "m": numbers}), on="n")
    with ps.Engine(workers=2, budget="8MiB") as engine:
        pusher = threading.Thread(target=push)
        pusher.start()
        for _ in range(20):
            with pytest.raises(ps.MemoryLimitExceeded):
                engine.submit(large, source=source)
        assert not done.is_set()
        result = engine.submit(STREAM, source=source, sink="collect").result()
        pusher.join(LONG)
        assert [row["n"] for row in result.to_pylist()] == list(range(100))


def test_a_function_that_fails_leaves_the_push_source_to_another() -> None:
    calls: list[str] = []

    def failing(batch: ps.Batch) -> int:
        calls.append("failing")
        if len(calls) == 2:
            raise ZeroDivisionError
        return 1_000_000

    def sound(batch: ps.Batch) -> int:
        calls.append("sound")
        return 0

    def counts(watermark: Callable[[ps.Batch], int]) -> ps.Stream:
        declared = ps.stream(TABLE.schema, time="n", watermark=watermark)
        return declared.window(ps.tumbling(10)).agg(rows=ps.count())

    with ps.Engine(workers=1) as engine, ps.PushSource() as source:
        for _ in range(3):
            assert source.push(BATCH)
        with pytest.raises(ZeroDivisionError):
            engine.submit(counts(failing), source=source)
        assert source.push(BATCH)
        query = engine.submit(counts(sound), source=source, sink="collect")
        source.close()
        # By the other function, rows of all batches but the first would be late.
        assert [row["rows"] for row in query.result().to_pylist()] == [16]
        assert calls == ["failing"] * 2 + ["sound"] * 4


def test_a_query_that_started_keeps_its_source() -> None:
    with ps.Engine(workers=1) as engine:
        data = iter([BATCH])
        query = engine.submit(STREAM, source=data)
        with pytest.raises(ps.StreamConsumedError):
            engine.submit(STREAM, source=data)
        query.stop()
        with pytest.raises(ps.StreamConsumedError):
            engine.submit(STREAM, source=data)


def test_what_raised_at_once_was_read() -> None:
    class Failing(Iterator[pa.RecordBatch]):
        def __next__(self) -> pa.RecordBatch:
            raise ZeroDivisionError

    data = Failing()
    with pytest.raises(ZeroDivisionError):
        STREAM.run(data)
    with pytest.raises(ps.StreamConsumedError):
        STREAM.run(data)


def test_iterators_that_somebody_holds_are_remembered_while_others_come() -> None:
    data = iter([BATCH])
    assert STREAM.run(data).rows_in == 4
    for _ in range(3):
        STREAM.run(iter([BATCH]))
        STREAM.run(map(BATCH.slice, [0]))
        with pytest.raises(ps.StreamConsumedError):
            STREAM.run(data)


def test_iterators_that_nobody_holds_are_let_go() -> None:
    for _ in range(5):
        STREAM.run(iter([BATCH]))
        STREAM.run(map(BATCH.slice, [0]))
        STREAM.run(generator())
    STREAM.run(iter([BATCH]))
    assert len(_claims._kept) <= 1
    assert not [one for one in _claims._read.values() if one() is None]


def test_iterators_are_remembered_by_threads_at_a_time() -> None:
    """No claim is lost to another one that is made at the same time."""
    argument = "data"
    rounds, threads = 300, 4
    held: list[list[Iterator[int]]] = [[iter([1]) for _ in range(rounds)] for _ in range(threads)]

    def claim(own: list[Iterator[int]]) -> None:
        for one in own:
            _claims.claim(one, argument)

    claiming = [threading.Thread(target=claim, args=(own,)) for own in held]
    for thread in claiming:
        thread.start()
    for thread in claiming:
        thread.join(LONG)
    for one in itertools.chain(*held):
        with pytest.raises(ps.StreamConsumedError):
            _claims.check_unread(one, argument)


@dataclass(frozen=True)
class Equal(Iterator[pa.RecordBatch]):
    """Iterators of which any two are equal."""

    name: str = "equal"

    def __next__(self) -> pa.RecordBatch:
        left = LEFT.pop(id(self), None)
        if left is None:
            raise StopIteration
        return left


LEFT: dict[int, pa.RecordBatch] = {}


def test_iterators_that_are_equal_are_not_the_same() -> None:
    first, second = Equal(), Equal()
    assert (first, hash(first)) == (second, hash(second))
    LEFT[id(first)] = LEFT[id(second)] = BATCH
    assert STREAM.run(first).rows_in == STREAM.run(second).rows_in == 4
    for again in (first, second):
        with pytest.raises(ps.StreamConsumedError):
            STREAM.run(again)


def test_iterators_that_cannot_be_hashed_are_remembered() -> None:
    class Unhashed(Iterator[pa.RecordBatch]):
        __hash__ = None  # type: ignore[assignment]

        def __init__(self) -> None:
            self.left = [BATCH]

        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

        def __next__(self) -> pa.RecordBatch:
            if not self.left:
                raise StopIteration
            return self.left.pop()

    data = Unhashed()
    assert STREAM.run(data).rows_in == 4
    with pytest.raises(ps.StreamConsumedError):
        STREAM.run(data)
