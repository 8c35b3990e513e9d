"""Queries that leave a shared source, or skip what it has for them: others go on, and nothing is missed.

Nothing is rung for another reason: see `PENSTOCK_TRIM` in conftest.py. The bounds only catch hangs.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference.live import HANG_SECONDS, SCHEMA, batch, comes_to, soon
from reference.watchdog import watched

TEN = ps.tumbling(10)
NORTH = ps.stream(SCHEMA, time="t", name="north")
SOUTH = ps.stream(SCHEMA, time="t", name="south")


def numbered(rows: int, start: int = 0) -> pa.RecordBatch:
    times = pa.array(range(start, start + rows), pa.int64())
    return pa.record_batch([times, times], SCHEMA)


def task(query: ps.Query, name: str) -> dict[str, Any]:
    """What its task of that name has done."""
    return next(dict(task) for task in query.metrics()["tasks"] if task["name"] == name)


@pytest.mark.parametrize("options", [{"budget": "16MiB"}, {"memory": "queue"}, {"mode": "threads"}], ids=str)
def test_a_drained_query_lets_go_of_its_shared_source_at_once(options: dict[str, Any]) -> None:
    """Although another of its inputs takes long to end: the source goes on, and no worker spins."""
    go, entered = threading.Event(), threading.Event()

    def hold(held: ps.Batch) -> pa.Table:
        entered.set()
        assert go.wait(HANG_SECONDS)
        return pa.table(held)

    held = SOUTH.map_batches(hold, schema=SCHEMA)
    plan = NORTH.cogroup(held, by="k", window=TEN).agg(left={"m": ps.count()}, right={"n": ps.count()})
    with ps.Engine(workers=2, chain="off", **options) as engine, watched(engine) as queries:
        north, south = ps.PushSource(), ps.PushSource()
        shared = engine.source(NORTH, north)
        other = engine.submit(NORTH, source=shared, sink="discard")
        sources: dict[str, Any] = {"north": shared, "south": south}
        query = engine.submit(plan, source=sources, sink="discard", parallelism=1)
        queries += [other, query]
        assert north.push(batch(1, 2, 3))
        assert south.push(batch(1))
        assert entered.wait(HANG_SECONDS)
        assert comes_to(query, "rows_in", 3)
        draining = threading.Thread(target=query.stop, args=(True,))
        draining.start()
        try:
            time.sleep(0.1)
            # Rows that come behind the end are for the other query alone: more than any log holds.
            pushing = threading.Thread(
                target=lambda: [north.push(numbered(1 << 16, n << 16)) for n in range(1, 17)]
            )
            pushing.start()
            assert comes_to(other, "rows_in", 3 + (1 << 20)), (shared.metrics(), query.metrics()["tasks"])
            pushing.join()
            assert shared.metrics()["blocked_by"] is None
            assert soon(lambda: task(query, "cogroup")["pending_rows"] == 0), "what comes later is not for it"
            runs = task(query, "cogroup")["runs"]
            time.sleep(0.2)
            assert task(query, "cogroup")["runs"] - runs < 20, "it spins"
        finally:
            go.set()
            draining.join()
        assert query.status == "finished"


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")  # of the source that was not waited for
def test_a_query_that_skips_rows_hears_that_its_source_is_idle() -> None:
    """The last thing in a full log is that the source rests: a query that skips all of it does not miss that.

    One worker, so that the source does not write the next row meanwhile.
    """
    clock = ps.ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    quiet = ps.stream(SCHEMA, time="t", name="north", idle_after="10s")
    plan = quiet.union(SOUTH).window(TEN, by="k").agg(n=ps.count())
    go = threading.Event()
    windows: set[int] = set()

    def take(rows: ps.Batch) -> None:
        assert go.wait(HANG_SECONDS)
        windows.update(pa.table(rows)["window_start"].to_pylist())

    engine = ps.Engine(workers=1, mode="state", memory="queue", clock=clock)
    with engine, watched(engine) as queries:
        north, south = ps.PushSource(), ps.PushSource()
        shared = engine.source(quiet, north)
        sources: dict[str, Any] = {"north": shared, "south": south}
        query = engine.submit(plan, source=sources, sink=take, on_lag="shed")
        queries.append(query)
        assert south.push(batch(500_000, 1_000_000))
        assert comes_to(query, "rows_in", 2)
        written = 0

        def push(rows: int, stuck: bool = True) -> int:
            """Lets the source write so many rows. How many the query has skipped meanwhile."""
            nonlocal written
            before = query.metrics()["rows_shed"]
            assert north.push(numbered(rows, written))
            written += rows
            assert soon(lambda: shared.metrics()["rows_in"] == written), shared.metrics()
            if stuck:
                assert soon(lambda: waits() == written - read()), (written, query.metrics())
            return int(query.metrics()["rows_shed"] - before)

        def read() -> int:
            """Rows that the query has read, to skip them or not, but for those of the other source."""
            return int(query.metrics()["rows_in"]) - 2

        def waits() -> int:
            """Rows in the log of the source."""
            return int(query.metrics()["tasks"][0]["pending_rows"])

        try:
            # Nobody takes the results, so that sooner or later the query takes no more rows, and skips them.
            while not push(4096, stuck=False):
                pass
            # Its log is emptied once more, and then seen to fill up.
            while not push(64):
                pass
            most = waits()
            while not push(64):
                most = waits()
            room = 1 << (most - 1).bit_length()  # of a row queue: a power of two
            assert push(room - waits()) == 0
            assert waits() == room, "the log is full, and the source has nothing to wait for"
            clock.advance(timedelta(seconds=10))
            assert soon(lambda: shared.metrics()["idle_sources"] == 1)
            assert push(1) >= room
        finally:
            go.set()
        assert soon(lambda: 500_000 in windows), "it waits for a source that is idle"
