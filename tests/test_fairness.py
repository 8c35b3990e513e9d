"""Work that waits is never out of sight: however much others have to do, every query goes on.

Sources that always have rows compete with rows that were pushed in one piece, under every policy. The bounds
on time only catch hangs; shares are counted in rows, over long enough, with much room.
"""

from __future__ import annotations

import operator
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock import col
from reference.live import HANG_SECONDS, SCHEMA, STREAM, batch, comes_to, rows, soon

Policy = Literal["adaptive", "fcfs", "rr"]
POLICIES: tuple[Policy, ...] = ("adaptive", "fcfs", "rr")
ROWS = 1 << 16
MANY = 8_000_000


def table(rows: int, keys: int = 100) -> pa.Table:
    times = pa.array(range(rows), pa.int64())
    return pa.table([times, pc.bit_wise_and(times, keys - 1)], schema=SCHEMA)


def one_batch(rows: int) -> pa.RecordBatch:
    (batch,) = table(rows, 64).combine_chunks().to_batches()
    return batch


BUSY = STREAM.filter(col("k") >= 0).window(ps.tumbling(1 << 20), by="k").agg(n=ps.count())


def unpaced() -> ps.Replay:
    """Rows without end, as fast as they are taken."""
    return ps.replay(table(ROWS, 64), rounds=None)


def rows_in(query: ps.Query) -> int:
    return int(query.metrics()["rows_in"])


def go_on(queries: list[ps.Query], rows: int = 200_000) -> None:
    """Each of them takes in so many more rows than it has now."""
    goals = [rows_in(query) + rows for query in queries]
    assert soon(lambda: all(map(operator.ge, map(rows_in, queries), goals))), [
        (query.name, rows_in(query), goal, query.metrics()["tasks"])
        for query, goal in zip(queries, goals, strict=True)
    ]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_large_batch_and_a_source_that_never_ends_both_go_on(policy: Policy, workers: int) -> None:
    with ps.Engine(workers=workers, policy=policy) as engine, ps.PushSource() as source:
        busy = engine.submit(BUSY, source=unpaced(), sink="discard", name="busy")
        assert soon(lambda: rows_in(busy) > 1_000_000)
        pushed = engine.submit(BUSY, source=source, sink="discard", name="pushed")
        assert source.push(one_batch(MANY))
        before = rows_in(busy)
        assert soon(lambda: rows_in(pushed) == MANY), (rows_in(pushed), pushed.metrics()["tasks"])
        go_on([busy])
        assert rows_in(busy) > before


@pytest.mark.parametrize("policy", POLICIES)
def test_a_large_batch_goes_on_beside_five_sources_that_never_end(policy: Policy) -> None:
    rows = 2_000_000
    with ps.Engine(workers=1, policy=policy) as engine, ps.PushSource() as source:
        busy = [engine.submit(BUSY, source=unpaced(), sink="discard") for _ in range(5)]
        go_on(busy)
        pushed = engine.submit(BUSY, source=source, sink="discard", name="pushed")
        assert source.push(one_batch(rows))
        assert soon(lambda: rows_in(pushed) == rows), (rows_in(pushed), pushed.metrics()["tasks"])
        go_on(busy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_rows_that_are_rejected_do_not_hold_up_their_query(shared: bool, policy: Policy) -> None:
    """Dead letters that the task has yet to hand out are work, and nothing that it waits for."""
    rows = MANY
    times = pa.array(range(rows), pa.int64())
    # Few enough for the function to have taken the last letter long before the next one comes.
    some_zeros = pa.record_batch([times, pc.bit_wise_and(times, (1 << 16) - 1)], SCHEMA)
    letters: list[int] = []
    with ps.Engine(workers=1, policy=policy) as engine, ps.PushSource() as source:
        busy = [engine.submit(BUSY, source=unpaced(), sink="discard") for _ in range(10)]
        go_on(busy)
        query = engine.submit(
            STREAM.filter(12 // col("k") >= 0),
            source=engine.source(STREAM, source) if shared else source,
            sink="discard",
            on_error=lambda batch: letters.append(len(batch.to_pylist())),
        )
        assert source.push(some_zeros)
        assert soon(lambda: rows_in(query) == rows), (rows_in(query), query.metrics()["tasks"])
        assert soon(lambda: sum(letters) == (rows >> 16) + 1), letters
        go_on(busy)


PLANS_AT_HAND: dict[str, tuple[int, ps.Stream]] = {
    "a filter": (1, STREAM.filter(col("k") >= 0)),
    "a filter on two workers": (2, STREAM.filter(col("k") >= 0)),
    "windows of a splitter and two lanes": (2, STREAM.window(ps.tumbling(2), by="t").agg(n=ps.count())),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("what", PLANS_AT_HAND)
def test_rows_of_the_batch_at_hand_wait_until_they_are_done_with(what: str, policy: Policy) -> None:
    """What a source has taken, what a splitter has cut and what a lane has, count until they are finished."""
    rows = 2_000_000
    workers, plan = PLANS_AT_HAND[what]
    go = threading.Event()

    def hold(batch: ps.Batch) -> None:
        assert go.wait(HANG_SECONDS)

    with ps.Engine(workers=workers, policy=policy) as engine, ps.PushSource() as source:
        # Nobody takes the results, so that the batch is stuck in the middle.
        query = engine.submit(plan, source=source, sink=hold)
        assert source.push(one_batch(rows))
        source.close()

        def waits(*, but: tuple[str, ...] = ()) -> int:
            """Rows that wait for the tasks, without those for some of them."""
            tasks = query.metrics()["tasks"]
            return sum(task["pending_rows"] for task in tasks if task["name"] not in but)

        def entered() -> int:
            """Rows that came to the operator."""
            operators = query.metrics()["operators"]
            return int(sum(one["rows_in"] for one in operators if one["name"] in ("filter", "window")))

        def stands_still() -> bool:
            before = entered()
            time.sleep(0.05)
            return 0 < before == entered() < rows

        try:
            assert soon(stands_still), query.metrics()["tasks"]
            # Who merges has parts of the state in front of it, and the sink results: no rows of the stream.
            assert waits(but=("window", "sink")) >= rows - entered(), query.metrics()["tasks"]
        finally:
            go.set()
        assert query.wait()
        assert waits() == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_watermarks_and_silence_of_others_are_not_held_up(policy: Policy) -> None:
    """Beside sources that never end: windows close, a silent source is not waited for, and time goes on."""
    plan = ps.union(
        ps.stream(SCHEMA, time="t", name="left", idle_after="20ms"),
        ps.stream(SCHEMA, time="t", name="right"),
    )
    counted = plan.window(ps.tumbling(10), by="k").agg(n=ps.count())
    closing = STREAM.window(ps.tumbling(10), by="k", close_after="20ms").agg(n=ps.count())
    marked = ps.stream(SCHEMA, time="t", watermark=lambda batch: 1_000)
    with ps.Engine(workers=1, policy=policy) as engine:
        busy = [engine.submit(BUSY, source=unpaced(), sink="discard") for _ in range(3)]
        left, right, third, fourth = (ps.PushSource() for _ in range(4))
        both = engine.submit(counted, source={"left": left, "right": right})
        closed = engine.submit(closing, source=third)
        by_function = engine.submit(marked.window(ps.tumbling(10), by="k").agg(n=ps.count()), source=fourth)
        assert left.push(batch(1, 2))
        # It may have been silent for too long already, and then it is not waited for until its rows are in.
        assert comes_to(both, "rows_in", 2)
        assert right.push(batch(3, 25))
        assert [row["n"] for row in rows([next(iter(both))])] == [3]
        assert third.push(batch(1, 2, 3))
        assert [row["n"] for row in rows([next(iter(closed))])] == [3]
        assert fourth.push(batch(5))
        assert [row["n"] for row in rows([next(iter(by_function))])] == [1]
        go_on(busy)
        for source in (left, right, third, fourth):
            source.close()
        assert all(query.wait() for query in (both, closed, by_function))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("workers", [1, 2])
def test_replays_come_to_their_end_beside_one_that_never_does(policy: Policy, workers: int) -> None:
    """The end of a replay waits like a row, whatever its batches and its rate are."""
    few = table(20_000, 64)
    kinds: list[Callable[[], Any]] = [
        lambda: ps.replay(few.to_batches(max_chunksize=2048), rounds=3),
        lambda: ps.replay(few.to_batches(max_chunksize=100), rounds=1),
        lambda: ps.replay(few, rate=400_000, rounds=2),
        lambda: few.to_batches(max_chunksize=512),
    ]
    with ps.Engine(workers=workers, policy=policy) as engine:
        busy = engine.submit(BUSY, source=unpaced(), sink="discard", name="busy")
        queries = [engine.submit(BUSY, source=kind(), sink="discard") for kind in kinds]
        for query in queries:
            assert query.wait(HANG_SECONDS), (query.name, query.metrics()["tasks"])
            assert all(task["pending_rows"] == 0 for task in query.metrics()["tasks"])
        assert [rows_in(query) for query in queries] == [60_000, 20_000, 40_000, 20_000]
        go_on([busy])


def share_evenly(queries: list[ps.Query]) -> None:
    """Nobody has more than a few times what another has, once the slowest has had many turns."""
    go_on(queries)
    before = [rows_in(query) for query in queries]
    taken = [0] * len(queries)
    began = time.monotonic()
    while min(taken) < 8_000_000:
        assert time.monotonic() < began + 3 * HANG_SECONDS, taken
        time.sleep(0.05)
        taken = [rows_in(query) - rows for query, rows in zip(queries, before, strict=True)]
    assert max(taken) < 4 * min(taken), taken


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("workers", [1, 2])
def test_queries_alike_get_alike(policy: Policy, workers: int) -> None:
    """Four times the same, as fast as possible."""
    with ps.Engine(workers=workers, policy=policy) as engine:
        share_evenly([engine.submit(BUSY, source=unpaced(), sink="discard") for _ in range(4)])


@contextmanager
def busy_processors() -> Iterator[None]:
    """Two other programs for every processor, for a few minutes at most."""
    burn = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end: pass"
    others = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="threads get another priority through /proc")
@pytest.mark.parametrize("policy", POLICIES)
def test_queries_alike_get_alike_while_only_workers_run(policy: Policy) -> None:
    """On a busy machine a thread that sleeps may wait for seconds until it has a processor."""
    with ps.Engine(workers=1, policy=policy) as engine, busy_processors():
        names = {task: (task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}
        mine = [int(task.name) for task, name in names.items() if name == "penstock-epoch"]
        assert mine, names
        for thread in mine:
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
        queries = [engine.submit(BUSY, source=unpaced(), sink="discard") for _ in range(4)]
        for _ in range(4):
            share_evenly(queries)


def test_tasks_are_in_the_order_in_which_rows_pass_them() -> None:
    """Of a merged operator first the source, then the lanes, then who merges; and who merges has a cost."""
    with ps.Engine(workers=2) as engine:
        plan = STREAM.window(ps.tumbling(1000), by="k").agg(n=ps.count())
        query = engine.submit(plan, source=unpaced(), sink="discard")
        names = [task["name"] for task in query.metrics()["tasks"]]
        assert names == ["stream", "window 1/2", "window 2/2", "window", "sink"]

        def costs() -> list[float | None]:
            return [task["cost_ns"] for task in query.metrics()["tasks"]]

        assert soon(lambda: None not in costs()), costs()
        lane, merger = query.metrics()["tasks"][1], query.metrics()["tasks"][3]
        # 64 keys of each thousand rows leave a lane, or fewer; each is at most one row of the result.
        assert 0 < lane["selectivity"] < 1
        assert 0 < merger["selectivity"] <= 1


def test_parts_count_what_is_their_own() -> None:
    """Rows that wait in a log for several parts of an operator wait for one of them."""
    rows = 300_000
    go = threading.Event()

    def hold(_: ps.Batch) -> None:
        assert go.wait(HANG_SECONDS)

    plan = STREAM.window(ps.tumbling(1), by="k").agg(n=ps.count())
    with ps.Engine(workers=2) as engine, ps.PushSource() as source:
        query = engine.submit(plan, source=source, sink=hold, strategy="exchange", parallelism=2)
        assert source.push(one_batch(rows))
        source.close()
        try:
            for _ in range(20):
                time.sleep(0.01)
                tasks = query.metrics()["tasks"]
                parts = [task["pending_rows"] for task in tasks if "/2" in task["name"]]
                assert len(parts) == 2
                assert sum(task["pending_rows"] for task in tasks if task["name"] != "sink") <= 1.2 * rows
        finally:
            go.set()
        assert query.wait()
        assert rows_in(query) == rows


def test_a_small_query_beside_busy_ones_is_never_kept_waiting_for_long() -> None:
    """A row at a time beside ten sources that never end: most come out at once, and none is forgotten.

    A plan that takes long to make is no reason to plan less often. The bounds are far above what it takes.
    """
    with ps.Engine(workers=2) as engine, ps.PushSource() as source:
        busy = [engine.submit(BUSY, source=unpaced(), sink="discard") for _ in range(10)]
        go_on(busy)
        query = engine.submit(STREAM.filter(col("k") >= 0), source=source)
        results = iter(query)
        took = []
        for time_of_row in range(40):
            began = time.monotonic()
            assert source.push(batch(time_of_row))
            assert [row["t"] for row in rows([next(results)])] == [time_of_row]
            took.append(time.monotonic() - began)
        go_on(busy)
    took.sort()
    assert took[len(took) // 2] < 0.25, took
    assert took[-1] < 2, took
