"""A drain, or the close of a shared source, cuts the input off: what was pushed before counts, no more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps

NUMBERS = ps.stream({"n": "int64"})
PATIENCE = 30.0
"""Seconds, far above what anything here takes."""


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, "int64")})


class Pushing:
    """Pushes single rows, one after the other, as fast as they are taken."""

    def __init__(self, source: ps.PushSource) -> None:
        self.taken = 0
        self.error: BaseException | None = None
        self._source = source
        self._many = threading.Event()
        self._thread = threading.Thread(target=self._push, daemon=True)
        self._thread.start()

    def _push(self) -> None:
        try:
            while self._source.push(numbers(self.taken)):
                self.taken += 1
                if self.taken >= 100:
                    self._many.set()
        except BaseException as error:
            self.error = error

    def wait_for_many(self) -> None:
        assert self._many.wait(PATIENCE)

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def push_for_ever(source: ps.PushSource) -> None:
    while source.push(numbers(2)):
        pass


def in_time(work: Callable[[], object]) -> None:
    """Runs it on a thread of its own, so that a hang is a failure."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it hangs"
    if raised:
        raise raised[0]


@pytest.mark.parametrize("capacity", [1, 4, 64])
@pytest.mark.parametrize("plan", [NUMBERS, NUMBERS.map_batches(lambda batch: batch)], ids=["plain", "map"])
def test_a_drain_ends_while_somebody_keeps_pushing(engine: ps.Engine, capacity: int, plan: ps.Stream) -> None:
    source = ps.PushSource(capacity)
    query = engine.submit(plan, source=source, sink="collect")
    pushing = Pushing(source)
    pushing.wait_for_many()
    in_time(lambda: query.stop(drain=True))
    pushing.join()
    assert isinstance(pushing.error, ps.QueryEndedError)
    rows = query.result().to_pylist()
    assert [row["n"] for row in rows] == list(range(pushing.taken)), (
        "what was taken was processed, and no more"
    )


@pytest.mark.parametrize("capacity", [1, 64])
def test_the_close_of_a_shared_source_cuts_it_off(engine: ps.Engine, capacity: int) -> None:
    feed = ps.PushSource(capacity)
    source = engine.source(NUMBERS, feed)
    query = engine.submit(source.stream, source=source, sink="collect")
    pushing = Pushing(feed)
    pushing.wait_for_many()
    source.close()
    in_time(query.wait)
    pushing.join()
    assert isinstance(pushing.error, ps.QueryEndedError)
    rows = query.result().to_pylist()
    assert [row["n"] for row in rows] == list(range(pushing.taken))


def test_a_push_behind_a_drain_says_so_at_once() -> None:
    feed = ps.PushSource(capacity=2)
    with ps.Engine(workers=1) as engine:
        # Nobody reads its results: it stays.
        query = engine.submit(NUMBERS, source=feed, name="unread")
        assert feed.push(numbers(1))
        drain = threading.Thread(target=query.stop, args=(True,), daemon=True)
        drain.start()
        with pytest.raises(ps.QueryEndedError, match='"unread"'):
            push_for_ever(feed)
        for _ in query:
            pass
        drain.join(PATIENCE)
        assert query.status == "finished"


def test_a_push_behind_the_close_of_a_shared_source_names_it() -> None:
    feed = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        source = engine.source(NUMBERS, feed, name="prices")
        query = engine.submit(source.stream, source=source, sink="collect")
        assert feed.push(numbers(1))
        source.close()
        with pytest.raises(ps.QueryEndedError, match='"prices"'):
            feed.push(numbers(2))
        assert query.result().to_pylist() == [{"n": 1}]


def test_what_was_pushed_before_a_held_source_is_closed_counts() -> None:
    feed = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        source = engine.source(NUMBERS, feed, hold=True)
        query = engine.submit(source.stream, source=source, sink="collect")
        assert feed.push(numbers(1, 2))
        source.close()
        assert query.result().to_pylist() == [{"n": 1}, {"n": 2}]


def test_a_drain_of_an_iterator_leaves_what_it_has_not_given() -> None:
    given = 0

    def endless() -> Iterator[pa.Table]:
        nonlocal given
        while True:
            given += 1
            yield numbers(given)

    with ps.Engine(workers=2) as engine:
        query = engine.submit(NUMBERS, source=endless(), sink="collect")
        while query.metrics()["rows_in"] < 100:
            pass
        in_time(lambda: query.stop(drain=True))
        rows = [row["n"] for row in query.result().to_pylist()]
        assert rows == list(range(1, len(rows) + 1)), "none is missing in between"


@pytest.mark.parametrize("rate", [None, 1e6])
def test_a_drain_of_a_replay_does_not_wait_for_its_batch(rate: float | None) -> None:
    """One batch that would take minutes."""
    slow = NUMBERS.map_batches(lambda batch: (threading.Event().wait(0.1), batch)[1])
    table = pa.table({"n": np.arange(4_000_000)})
    with ps.Engine(workers=1) as engine:
        query = engine.submit(slow, source=ps.replay(table, rate=rate, rounds=None), sink="discard")
        while query.metrics()["rows_in"] == 0:
            pass
        in_time(lambda: query.stop(drain=True))
        metrics = query.metrics()
        assert 0 < metrics["rows_in"] == metrics["rows_out"] < 4_000_000


def test_a_drained_reader_takes_what_its_shared_source_had_read() -> None:
    """It ends where the source stands, however fast that goes on; others read on."""
    feed = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        source = engine.source(NUMBERS, feed)
        slow = engine.submit(source.stream, source=source)
        other = engine.submit(source.stream, source=source, sink="collect")
        for n in range(40):
            assert feed.push(numbers(n))
        while source.metrics()["rows_in"] < 40:
            pass
        drain = threading.Thread(target=slow.stop, args=(True,), daemon=True)
        drain.start()
        rows = [row["n"] for batch in slow for row in batch.to_pylist()]
        drain.join(PATIENCE)
        assert rows == list(range(40))
        assert feed.push(numbers(40))
        feed.close()
        assert len(other.result()) == 41


@pytest.mark.parametrize("on_lag", ["wait", "shed"])
def test_a_drained_reader_of_a_busy_shared_source_ends(engine: ps.Engine, on_lag: Any) -> None:
    source = engine.source(NUMBERS, ps.replay(numbers(*range(1000)), rounds=None))
    query = engine.submit(source.stream, source=source, sink="discard", on_lag=on_lag)
    while query.metrics()["rows_in"] < 10_000:
        pass
    in_time(lambda: query.stop(drain=True))
    assert query.status == "finished"
    metrics = query.metrics()
    assert metrics["rows_in"] == metrics["rows_out"] + metrics["rows_shed"]


def test_a_shared_source_that_does_not_answer_holds_nobody_else_up() -> None:
    """The only worker stands in a function: whoever joins a shared source waits, all others do not."""
    entered, go_on = threading.Event(), threading.Event()

    def stand(batch: ps.Batch) -> ps.Batch:
        entered.set()
        assert go_on.wait(PATIENCE)
        return batch

    feed = ps.PushSource()
    engine = ps.Engine(workers=1)
    try:
        source = engine.source(NUMBERS, feed)
        busy = engine.submit(NUMBERS.map_batches(stand), source=numbers(1), sink="discard")
        assert entered.wait(PATIENCE)
        joined: list[object] = []

        def join() -> None:
            try:
                joined.append(engine.submit(source.stream, source=source, sink="discard"))
            except ps.PenstockError as error:
                joined.append(error)

        joining = threading.Thread(target=join, daemon=True)
        joining.start()
        joining.join(0.2)  # a moment, so that it has begun to wait; nothing depends on it
        in_time(lambda: engine.submit(NUMBERS, source=ps.PushSource(), sink="discard"))
        in_time(engine.metrics)
        stopping = threading.Thread(target=engine.stop, daemon=True)
        stopping.start()
        # The engine is being stopped: that is known at once, although it cannot end yet.
        in_time(lambda: refused(engine))
        go_on.set()
        stopping.join(PATIENCE)
        joining.join(PATIENCE)
        assert not stopping.is_alive()
        assert isinstance(joined[0], ps.EngineStoppedError), joined
        assert busy.status == "stopped"
    finally:
        go_on.set()


def refused(engine: ps.Engine) -> None:
    while True:
        try:
            engine.submit(NUMBERS, source=ps.PushSource(), sink="discard")
        except ps.EngineStoppedError:
            return


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("chain", ["auto", "off"])
def test_a_drained_reader_of_a_shared_source_that_has_failed_hears_of_it(workers: int, chain: Any) -> None:
    timed = ps.stream({"n": "int64"}, time="n")
    data = pa.table({"n": pa.array([*range(16), None], pa.int64())})
    with ps.Engine(workers=workers, chain=chain, block_rows=1) as engine:
        for _ in range(30):
            source = engine.source(timed, [data], hold=True)
            query = engine.submit(timed, source=source, sink="collect")
            source.start()
            deadline = time.monotonic() + PATIENCE
            while source.status != "failed":
                assert time.monotonic() < deadline
            with pytest.raises(ps.SourceEndedError):
                query.stop(drain=True)
            assert query.status == "failed"


@pytest.mark.parametrize("kind", ["generator", "tables of batches"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_batch_that_an_iterable_has_given_comes_in(shared: bool, kind: str) -> None:
    """It waits for room when the drain begins; the iterable will not give it a second time."""
    go, given = threading.Event(), []
    table = pa.table({"n": np.arange(50_000)})

    def tables() -> Iterator[pa.Table]:
        while True:
            given.append(len(table))
            yield table

    data = (
        tables() if kind == "generator" else pa.RecordBatchReader.from_batches(table.schema, batches(given))
    )
    with ps.Engine(workers=1, budget="8MiB") as engine:
        source: Any = engine.source(NUMBERS, data) if shared else data
        query = engine.submit(NUMBERS, source=source, sink=lambda batch: go.wait(PATIENCE))
        before = -1
        while before != len(given) or not given:
            before = len(given)
            threading.Event().wait(0.2)
        drain = source.close if shared else lambda: query.stop(drain=True)
        draining = threading.Thread(target=drain, daemon=True)
        draining.start()
        threading.Event().wait(0.05)
        go.set()
        draining.join(PATIENCE)
        in_time(query.wait)
        assert query.metrics()["rows_in"] == sum(given[:before])


def batches(given: list[int]) -> Iterator[pa.RecordBatch]:
    while True:
        given.append(50_000)
        yield pa.record_batch({"n": np.arange(50_000)})
