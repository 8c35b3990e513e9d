"""What becomes of queries that run when the block of their engine is left, or nobody holds it any more."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import warnings
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference import children

NUMBERS = ps.stream({"n": "int64"})
TIMED = ps.stream({"n": "int64"}, time="n")
PATIENCE = 30.0
"""Seconds, far above what anything here takes."""


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, "int64")})


def leave_a_held_source(feed: ps.PushSource) -> None:
    with ps.Engine(workers=1) as engine:
        source = engine.source(NUMBERS, feed, name="held", hold=True)
        engine.submit(source.stream, source=source, sink="collect")
        assert feed.push(numbers(1, 2))
        assert feed.push(numbers(3, 4, 5))


def test_a_warning_says_how_many_rows_are_discarded() -> None:
    with pytest.warns(ps.RowsDiscardedWarning, match=r'discarded 5 rows of "held"') as caught:
        leave_a_held_source(ps.PushSource())
    assert caught[0].filename == __file__


def test_rows_that_were_collected_and_those_that_wait_for_a_function_count() -> None:
    entered, go_on = threading.Event(), threading.Event()

    def sink(batch: ps.Batch) -> None:
        entered.set()
        assert go_on.wait(PATIENCE)

    def leave() -> None:
        feeds = [ps.PushSource(), ps.PushSource()]
        with ps.Engine(workers=1) as engine:
            engine.submit(NUMBERS, source=feeds[0], sink="collect", name="collected")
            called = engine.submit(NUMBERS, source=feeds[1], sink=sink, name="called")
            for feed in feeds:
                assert feed.push(numbers(1))
            assert entered.wait(PATIENCE)
            assert feeds[1].push(numbers(2))
            while called.metrics()["rows_out"] < 2:
                pass
            threading.Timer(0.2, go_on.set).start()

    with pytest.warns(ps.RowsDiscardedWarning, match='discarded 2 rows of "called", "collected"'):
        leave()


def test_nothing_is_said_when_nothing_is_lost(engine: ps.Engine) -> None:
    feed = ps.PushSource()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.RowsDiscardedWarning)
        with engine:
            query = engine.submit(NUMBERS, source=feed)
            assert feed.push(numbers(1))
            assert next(query.results()).to_pylist() == [{"n": 1}]
    assert query.status == "stopped"


@pytest.mark.parametrize("on_exit", ["stop", "drain"])
def test_an_exception_stops_and_is_not_joined_by_a_warning(on_exit: Any) -> None:
    feed = ps.PushSource()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.RowsDiscardedWarning)
        with pytest.raises(ZeroDivisionError), ps.Engine(workers=1, on_exit=on_exit) as engine:  # noqa: PT012
            source = engine.source(NUMBERS, feed, hold=True)
            query = engine.submit(source.stream, source=source, sink="collect")
            assert feed.push(numbers(1))
            raise ZeroDivisionError
    assert query.status == "stopped"


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_drain_loses_nothing(mode: Any) -> None:
    """Each kind of source and sink; windows close; unread results are read afterwards."""
    called: list[int] = []
    feeds = [ps.PushSource(capacity=64) for _ in range(4)]
    with ps.Engine(workers=2, mode=mode, on_exit="drain") as engine:
        shared = engine.source(TIMED, feeds[0], hold=True)
        windows = shared.stream.window(ps.tumbling(10)).agg(n=ps.count())
        counted = engine.submit(windows, source=shared, sink="collect")
        same = engine.submit(shared.stream, source=shared)
        unread = engine.submit(NUMBERS, source=feeds[1])
        slow = engine.submit(NUMBERS, source=feeds[2], sink=lambda batch: called.append(batch.num_rows))
        both = engine.submit(
            shared.stream.union(shared.stream.filter(ps.col("n") >= 0)), source=shared, sink="collect"
        )
        engine.submit(NUMBERS, source=ps.replay(numbers(1), rounds=None), sink="discard")
        for feed in feeds:
            for n in range(50):
                assert feed.push(numbers(n))
    assert [row["n"] for row in counted.result().to_pylist()] == [10] * 5
    assert [row["n"] for batch in same for row in batch.to_pylist()] == list(range(50))
    assert [row["n"] for batch in unread for row in batch.to_pylist()] == list(range(50))
    assert sum(called) == 50
    assert len(both.result()) == 100
    assert slow.status == "finished"


def test_a_query_that_fails_while_it_is_drained_is_told_of() -> None:
    def fail(batch: ps.Batch) -> None:
        raise ZeroDivisionError("no")

    def leave() -> None:
        feed = ps.PushSource()
        with ps.Engine(workers=1, on_exit="drain") as engine:
            source = engine.source(NUMBERS, feed, hold=True)
            engine.submit(source.stream, source=source, sink=fail)
            assert feed.push(numbers(1))

    with pytest.warns(ps.QueryFailedWarning, match="ZeroDivisionError"):
        leave()


def test_on_exit_is_checked() -> None:
    with pytest.raises(ps.PlanError, match="on_exit"):
        ps.Engine(on_exit="wait")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_exit"):
        ps.Engine(on_exit=None)  # type: ignore[arg-type]


DROPPED = """
import gc
import itertools

NUMBERS = ps.stream({{"n": "int64"}})
BIG = pa.table({{"n": range(200_000)}})

def until_idle(seen):
    assert seen.wait(20)
    while seen.is_set():
        seen.clear()
        time.sleep(0.3)

def work():
    engine, feed, seen = ps.Engine(workers=2, mode="{mode}"), ps.PushSource(), threading.Event()

    def sink(batch):
        seen.set()
        engine.metrics(), feed.closed  # which keep both, and the input open

    {submit}
    assert feed.push(pa.table({{"n": [1]}}))
    {wait}

warm = ps.Engine(workers=1)
warm.stop()
before = threads()
for _ in range(3):
    work()
during = threads()
limit = time.time() + 10
while threads() > before and time.time() < limit:
    gc.collect()
    time.sleep(0.05)
say(left=threads() - before, during=during > before)
"""

REFERRED = {
    "a sink": ("query = engine.submit(NUMBERS, source=feed, sink=sink)", "assert seen.wait(20)"),
    "a sink that has seen nothing": (
        "engine.submit(NUMBERS.filter(ps.col('n') > 5), source=feed, sink=sink)",
        "",
    ),
    "dead letters": (
        "plan = NUMBERS.with_columns(x=1 // (ps.col('n') - 1)); "
        "engine.submit(plan, source=feed, sink='discard', on_error=sink)",
        "assert seen.wait(20)",
    ),
    "a sink of a shared source": (
        "source = engine.source(NUMBERS, feed); engine.submit(source.stream, source=source, sink=sink)",
        "assert seen.wait(20)",
    ),
    "a function over batches, in two queries": (
        "plan = NUMBERS.map_batches(lambda batch: (sink(batch), batch)[1]); "
        "endless = ps.replay(pa.table({'n': [1]}), rounds=None, rate=1e3); "
        "engine.submit(plan, source=feed, sink='discard'); "
        "engine.submit(plan, source=endless, sink='discard')",
        "assert seen.wait(20)",
    ),
    "dead letters of a shared source": (
        "timed = ps.stream({'n': 'int64'}, time='n'); "
        "source = engine.source(timed, feed, on_error=sink); "
        "engine.submit(source.stream, source=source, sink='discard')",
        "assert feed.push(pa.table({'n': pa.nulls(1, pa.int64())})); assert seen.wait(20)",
    ),
    "a watermark function": (
        "timed = ps.stream({'n': 'int64'}, time='n', watermark=sink); "
        "engine.submit(timed, source=feed, sink='discard')",
        "assert seen.wait(20)",
    ),
    "a watermark function of a shared source": (
        "timed = ps.stream({'n': 'int64'}, time='n', watermark=sink); "
        "source = engine.source(timed, feed); "
        "engine.submit(source.stream, source=source, sink='discard')",
        "assert seen.wait(20)",
    ),
    # Until they wait: the collector closes generators, and complains of one that is at work.
    "an iterator that waits for room": (
        "endless = (sink(None) or BIG for _ in itertools.count()); engine.submit(NUMBERS, source=endless)",
        "until_idle(seen)",
    ),
    "an iterator of a shared source": (
        "endless = (sink(None) or BIG for _ in itertools.count()); "
        "engine.submit(NUMBERS, source=engine.source(NUMBERS, endless))",
        "until_idle(seen)",
    ),
}


@pytest.mark.parametrize("what", REFERRED)
@pytest.mark.parametrize("mode", ["state", "threads"])
def test_an_engine_that_nobody_holds_is_stopped_whoever_refers_to_it(what: str, mode: str) -> None:
    submit, wait = REFERRED[what]
    said = children.run(DROPPED.format(mode=mode, submit=submit, wait=wait), 60)
    assert '"left": 0' in said
    assert '"during": true' in said


def test_the_time_of_a_function_counts() -> None:
    with ps.Engine(workers=1) as engine:
        query = engine.submit(NUMBERS, source=numbers(1), sink=lambda batch: time.sleep(0.3))
        query.wait()
        seconds = query.metrics()["seconds"]
        assert seconds >= 0.3
        time.sleep(0.01)
        assert query.metrics()["seconds"] == seconds, "it has ended"


def test_the_time_of_a_function_counts_in_results_as_well() -> None:
    def pause(batch: ps.Batch) -> None:
        time.sleep(0.3)

    both = ps.outputs(kept=NUMBERS, called=NUMBERS)
    with ps.Engine(workers=1) as engine:
        query = engine.submit(both, source=numbers(1), sink={"kept": "collect", "called": pause})
        result = query.result("kept")
        assert result.seconds >= 0.3
        assert result.seconds == query.metrics()["seconds"]
        inverse = NUMBERS.with_columns(x=1 // ps.col("n"))
        query = engine.submit(inverse, source=numbers(0), sink="collect", on_error=pause)
        assert query.result().seconds >= 0.3
        source = engine.source(TIMED, [numbers(1), pa.table({"m": [1]})], on_error=pause, hold=True)
        source.start()
        while source.status == "running":
            pass
        assert source.metrics()["seconds"] >= 0.3
    assert inverse.run(numbers(0), on_error=pause).seconds >= 0.3


def test_nothing_waits_for_a_query_that_has_failed() -> None:
    feed = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        source = engine.source(NUMBERS, feed)
        other = engine.submit(source.stream, source=source, sink="discard")
        failing = engine.submit(source.stream.with_columns(x=1 // ps.col("n")), source=source, sink="discard")
        assert feed.push(numbers(0))
        with pytest.raises(ps.ComputeError):
            failing.wait()
        for n in range(20):
            assert feed.push(numbers(*range(n * 100, n * 100 + 100)))
        feed.close()
        other.wait()
        assert [task["pending_rows"] for task in failing.metrics()["tasks"]] == [0] * len(
            failing.metrics()["tasks"]
        )


@pytest.mark.parametrize(
    "plan",
    [
        ps.stream({"n": "int64"}, time="n", idle_after="1s").window(ps.tumbling(5)).agg(c=ps.count()),
        TIMED.window(ps.tumbling(5), close_after="1s").agg(c=ps.count()),
    ],
    ids=["idle_after", "close_after"],
)
def test_parts_do_not_go_by_the_clock(plan: ps.Stream) -> None:
    with pytest.raises(ps.PlanError, match="_after="):
        plan.run_part(numbers(1))


ENDS = """
failing = ps.Engine(workers=1)
failing.submit(STREAM.with_columns(x=1 // ps.col("k")), source=BATCH, sink="discard", name="failing")
while failing.queries:
    pass
feed = ps.PushSource()
engine = ps.Engine(workers=1)
query = engine.submit(WINDOWS, source=feed, sink="discard", name="windows")
assert feed.push(BATCH)
late = ps.Engine(workers=1)
times = [pa.record_batch({"t": [t], "k": [0]}) for t in (1, 100_000, 2)]
late.submit(WINDOWS, source=times, sink="discard", name="late")
while late.queries:
    pass
with ps.Engine(workers=1) as left:  # it has said what there is to say
    left.submit(STREAM, source=ps.PushSource())
stuck, entered = ps.Engine(workers=1), threading.Event()
stuck.submit(STREAM, source=BATCH, sink=lambda batch: (entered.set(), time.sleep(3600)), name="stuck")
assert entered.wait(20)
"""


def test_a_script_that_ends_with_engines_at_work_is_told_what_it_loses() -> None:
    child = subprocess.run(
        [sys.executable, "-c", children.PRELUDE + ENDS],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    said = child.stderr
    assert 'QueryFailedWarning: the query "failing" failed, and nobody had looked: ComputeError' in said
    assert "RowsDiscardedWarning: leaving the engine has discarded 1,000 rows" in said
    assert 'LateRowsWarning: query "late": 1 row came after its window had closed' in said
    assert said.count("Warning:") == 3
    assert "Traceback" not in said
