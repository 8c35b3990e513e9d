"""Watermarks that a function says, batch by batch."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")

START = datetime(2026, 1, 1, tzinfo=UTC)


def batch(*times: int) -> pa.Table:
    return pa.table({"t": pa.array(times, "int64")})


def latest_so_far(lag: int) -> Any:
    seen: list[int] = []

    def watermark(batch: ps.Batch) -> int | None:
        seen.extend(row["t"] for row in batch.to_pylist())
        return max(seen) - lag if seen else None

    return watermark


def counts(stream: ps.Stream) -> ps.Stream:
    return stream.window(ps.tumbling(10)).agg(n=ps.count())


def as_dict(rows: list[dict[str, Any]]) -> dict[int, int]:
    return {row["window_start"]: row["n"] for row in rows}


@pytest.mark.parametrize("chain", ["auto", "off"])
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_are_judged_by_what_was_said_of_the_batches_before(chain: Any, workers: int) -> None:
    stream = ps.stream({"t": "int64"}, time="t", watermark=latest_so_far(5))
    with pytest.warns(ps.LateRowsWarning):
        result = counts(stream).run([batch(1, 30, 2), batch(3, 31)], chain=chain, workers=workers)
    # In its own batch 2 is not late, although 30 came before it; 3 is: event time has come to 25.
    assert (as_dict(result.to_pylist()), result.rows_late) == ({0: 2, 30: 2}, 1)


def test_an_empty_batch_may_bring_news() -> None:
    marks = iter([None, 10])
    stream = ps.stream({"t": "int64"}, time="t", watermark=lambda batch: next(marks))
    feed = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        query = engine.submit(counts(stream), source=feed)
        assert feed.push(batch(1, 50))
        assert feed.push(batch())
        assert as_dict(next(query.results()).to_pylist()) == {0: 1}


def test_batches_that_came_before_the_query_are_asked_about() -> None:
    feed = ps.PushSource()
    assert feed.push(batch(1, 30))
    assert feed.push(batch(2))
    with ps.Engine(workers=1) as engine:
        stream = ps.stream({"t": "int64"}, time="t", watermark=latest_so_far(0))
        query = engine.submit(counts(stream), source=feed, sink="collect")
        feed.close()
        result = query.result()
        assert (as_dict(result.to_pylist()), result.rows_late) == ({0: 1, 30: 1}, 1)


def test_a_replay_is_marked_round_by_round() -> None:
    stream = ps.stream({"t": "int64"}, time="t", watermark=lambda batch: 8)
    with ps.Engine(workers=1) as engine:
        source = ps.replay(batch(1, 9), rounds=3)
        result = engine.submit(counts(stream), source=source, sink="collect").result()
    assert sum(row["n"] for row in result.to_pylist()) + result.rows_late == 6


def test_datetimes_are_taken_for_timestamps() -> None:
    stream = ps.stream(
        {"t": "timestamp[ms, tz=UTC]"}, time="t", watermark=lambda batch: START + timedelta(seconds=30)
    )
    times = pa.array([START, START + timedelta(seconds=1)], pa.timestamp("ms", "UTC"))
    late = pa.array([START + timedelta(seconds=2)], pa.timestamp("ms", "UTC"))
    plan = stream.window(ps.tumbling("10s")).agg(n=ps.count())
    with pytest.warns(ps.LateRowsWarning):
        result = plan.run([pa.table({"t": times}), pa.table({"t": late})])
    assert (result.rows_out, result.rows_late) == (1, 1)


def test_what_the_function_raises_comes_out_of_whoever_brings_the_batch() -> None:
    def refuse(batch: ps.Batch) -> int:
        raise ZeroDivisionError("no time for this")

    stream = ps.stream({"t": "int64"}, time="t", watermark=refuse)
    with pytest.raises(ZeroDivisionError, match="no time"):
        counts(stream).run(batch(1))
    with pytest.raises(ZeroDivisionError, match="no time"):
        counts(stream).run(iter([batch(1)]))
    with ps.Engine(workers=1) as engine:
        feed = ps.PushSource()
        query = engine.submit(counts(stream), source=feed, sink="collect")
        with pytest.raises(ZeroDivisionError, match="no time"):
            feed.push(batch(1))
        assert query.status == "running", "the batch was not taken, and nothing else has happened"
        feed.close()
        assert query.result().rows_in == 0
        pulled = engine.submit(counts(stream), source=[batch(1)])
        with pytest.raises(ZeroDivisionError, match="no time"):
            pulled.wait()


def test_what_is_no_time_is_refused() -> None:
    stream = ps.stream({"t": "int64"}, time="t", watermark=lambda batch: "soon")  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="whole number"):
        counts(stream).run(batch(1))


def test_arguments_are_checked() -> None:
    with pytest.raises(ps.PlanError, match="delay"):
        ps.stream({"t": "int64"}, time="t", delay=5, watermark=latest_so_far(0))
    with pytest.raises(ps.MissingTimeColumnError):
        ps.stream({"t": "int64"}, watermark=latest_so_far(0))
    with pytest.raises(TypeError, match="watermark"):
        ps.stream({"t": "int64"}, time="t", watermark=5)  # type: ignore[arg-type]
    stream = ps.stream({"t": "int64"}, time="t", watermark=latest_so_far(0))
    assert "watermark()" in stream.explain()
    with pytest.raises(ps.PlanError, match="cannot be written"):
        stream.to_json()


class Asked:
    """A watermark function that remembers what it was asked about."""

    def __init__(self) -> None:
        self.times: list[int] = []

    def __call__(self, batch: ps.Batch) -> int:
        self.times.extend(row["t"] for row in batch.to_pylist())
        return len(self.times)


@pytest.mark.parametrize("capacity", [1, 3])
def test_the_function_is_asked_once_however_long_the_feed_is_full(capacity: int) -> None:
    asked, feed = Asked(), ps.PushSource(capacity)
    with ps.Engine(workers=1) as engine:
        stream = ps.stream({"t": "int64"}, time="t", watermark=asked)
        # A held source takes nothing until it is told to.
        source = engine.source(stream, feed, hold=True)
        query = engine.submit(source.stream, source=source, sink="collect")
        for time in range(capacity):
            assert feed.push(batch(time))
        for _ in range(3):
            assert not feed.push(batch(capacity), timeout=0.05), "there is no room"
        assert asked.times == list(range(capacity)), "nobody is asked about a batch that was not taken"
        source.start()
        for time in range(capacity, 10):
            assert feed.push(batch(time))
        feed.close()
        assert len(query.result()) == 10
        assert asked.times == list(range(10))


@pytest.mark.parametrize("lists", [True, False], ids=["list", "generator"])
def test_the_function_is_asked_once_for_each_batch_of_an_iterable(lists: bool) -> None:
    asked, go_on = Asked(), threading.Event()
    stream = ps.stream({"t": "int64"}, time="t", watermark=asked)

    def slow(batch: ps.Batch) -> ps.Batch:
        go_on.wait(30)
        return batch

    data = [batch(time) for time in range(12)]
    with ps.Engine(workers=1) as engine:
        query = engine.submit(stream.map_batches(slow), source=data if lists else iter(data), sink="collect")
        query.wait(timeout=0.6)  # longer than whoever pulls waits for room at a time
        go_on.set()
        assert len(query.result()) == 12
    assert asked.times == list(range(12))


def test_the_function_is_asked_once_about_batches_that_come_before_the_query() -> None:
    asked, feed = Asked(), ps.PushSource(capacity=2)
    assert feed.push(batch(0))
    assert feed.push(batch(1))
    assert not feed.push(batch(2), timeout=0)
    with ps.Engine(workers=1) as engine:
        stream = ps.stream({"t": "int64"}, time="t", watermark=asked)
        query = engine.submit(stream, source=feed, sink="collect")
        assert feed.push(batch(2))
        feed.close()
        assert len(query.result()) == 3
    assert asked.times == [0, 1, 2]


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
    thread.join(30)
    assert not thread.is_alive(), "it hangs"
    if raised:
        raise raised[0]


@pytest.mark.parametrize("early", [True, False], ids=["before the query", "behind it"])
def test_a_function_that_pushes_to_its_own_source_is_refused(early: bool) -> None:
    feed = ps.PushSource()

    def watermark(asked: ps.Batch) -> int:
        feed.push(batch(5))
        return 0

    stream = ps.stream({"t": "int64"}, time="t", watermark=watermark)
    engine = ps.Engine(workers=1)
    try:
        if early:
            assert feed.push(batch(1))
            with pytest.raises(ps.EngineError, match="its own source"):
                in_time(lambda: engine.submit(stream, source=feed, sink="collect"))
            return
        query = engine.submit(stream, source=feed, sink="collect")
        with pytest.raises(ps.EngineError, match="its own source"):
            in_time(lambda: feed.push(batch(1)))
        feed.close()
        assert len(query.result()) == 0
    finally:
        in_time(engine.stop)


def test_a_function_that_uses_its_engine_does_not_hang_submit() -> None:
    """It is called while the query is put together: nothing is locked meanwhile."""
    engine, other, feed = ps.Engine(workers=1), ps.PushSource(), ps.PushSource()
    numbers = ps.stream({"t": "int64"})

    def watermark(asked: ps.Batch) -> int:
        engine.metrics()
        engine.submit(numbers, source=batch(1), sink="collect").result()
        assert other.push(batch(1), timeout=0)
        return 0

    stream = ps.stream({"t": "int64"}, time="t", watermark=watermark)
    assert feed.push(batch(1))
    feed.close()
    try:
        in_time(lambda: engine.submit(stream, source=feed, sink="collect").result())
    finally:
        in_time(engine.stop)
