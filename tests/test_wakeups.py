"""Whoever has something to do is woken: for every input, whatever it is, and at once.

Sources stay open, so that no end wakes what a row did not, and nothing is rung for another reason: see
`PENSTOCK_TRIM` in conftest.py. The bounds only catch hangs.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from reference.live import HANG_SECONDS, comes_to, soon
from reference.watchdog import watched

NORTH = ps.stream({"t": "int64", "k": "int64", "x": "int64"}, time="t", name="north")
SOUTH = ps.stream({"t": "int64", "k": "int64", "y": "int64"}, time="t", name="south")
TEN = ps.tumbling(10)
ENGINES: list[dict[str, Any]] = [
    *({"workers": workers, "chain": chain} for workers in (1, 2, 4) for chain in ("auto", "off")),
    *({"mode": "threads", "chain": chain} for chain in ("auto", "off")),
]
PLANS = {
    "join": NORTH.join(SOUTH, on="k", window=TEN),
    "join behind filters": NORTH.filter(col("x") > 0).join(SOUTH.filter(col("y") > 0), on="k", window=TEN),
    "cogroup": NORTH.cogroup(SOUTH, by="k", window=TEN).agg(left={"m": ps.count()}, right={"n": ps.count()}),
    "union": NORTH.select("t", "k", v="x").union(SOUTH.select("t", "k", v="y")).window(TEN).agg(n=ps.count()),
}


def rows(column: str, *times: int) -> pa.Table:
    return pa.table({"t": times, "k": [1] * len(times), column: [1] * len(times)})


@pytest.mark.parametrize("options", ENGINES, ids=str)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    "shared", [{"north"}, {"south"}, {"north", "south"}], ids=lambda names: "+".join(sorted(names))
)
def test_rows_of_each_input_wake_whoever_reads_them(shared: set[str], plan: str, options: Any) -> None:
    """Whichever comes last, results are there as soon as both have passed the window."""
    with ps.Engine(**options) as engine, watched(engine) as queries:
        pushed = {"north": (NORTH, ps.PushSource(), "x"), "south": (SOUTH, ps.PushSource(), "y")}
        sources: dict[str, Any] = {name: source for name, (_, source, _) in pushed.items()}
        for name in shared:
            sources[name] = engine.source(pushed[name][0], pushed[name][1])
        query = engine.submit(PLANS[plan], source=sources, sink="discard")
        queries.append(query)
        found = 0
        for start, order in enumerate(itertools.permutations(pushed)):
            for name in order:
                _, source, column = pushed[name]
                before = query.metrics()["rows_in"]
                assert source.push(rows(column, start * 20 + 5, start * 20 + 15))
                assert comes_to(query, "rows_in", before + 2), "nobody took them"
            found += 1 + start
            assert comes_to(query, "rows_out", found), "nothing came out"


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_a_shared_source_is_read_twice_by_one_query(options: Any) -> None:
    """By two streams of the plan that meet in one operator."""
    twin = ps.stream(NORTH.schema, time="t", name="twin")
    plan = NORTH.join(twin, on="k", window=TEN)
    with ps.Engine(**options) as engine, watched(engine) as queries:
        pushed = ps.PushSource()
        shared = engine.source(NORTH, pushed)
        query = engine.submit(plan, source={"north": shared, "twin": shared}, sink="discard")
        queries.append(query)
        for start in range(0, 60, 20):
            assert pushed.push(rows("x", start + 5, start + 15))
            assert comes_to(query, "rows_out", start // 10 + 1)


# The right to call into Python.

EVENTS = ps.stream({"t": "int64"}, time="t")


def held_up(go: threading.Event, entered: threading.Event) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A function that keeps the right to call for as long as it is told to."""

    def hold(batch: pa.RecordBatch) -> pa.RecordBatch:
        entered.set()
        assert go.wait(HANG_SECONDS)
        return batch

    return hold


@pytest.mark.parametrize("options", [{"workers": 2}, {"workers": 4}, {"mode": "threads"}], ids=str)
@pytest.mark.parametrize("staying", [1, 3])
def test_whoever_waits_for_python_gets_its_turn_although_others_have_left(staying: int, options: Any) -> None:
    """Ten queries wait for the one that calls; those in front are stopped before their turn comes."""
    go, entered = threading.Event(), threading.Event()
    with ps.Engine(**options) as engine, watched(engine) as queries:
        busy = ps.PushSource()
        held = EVENTS.map_batches(held_up(go, entered), schema=EVENTS.schema)
        queries.append(engine.submit(held, source=busy, sink="discard"))
        assert busy.push(pa.table({"t": [1]}))
        assert entered.wait(HANG_SECONDS)
        waiting = []
        for _ in range(10):
            source = ps.PushSource()
            plan = EVENTS.map_batches(lambda batch: batch, schema=EVENTS.schema)
            query = engine.submit(plan, source=source, sink="discard")
            assert ran(query, 0)
            before = runs(query)
            assert source.push(pa.table({"t": [1]}))
            # Now it has looked at the row, and asked.
            assert ran(query, before)
            waiting.append((query, source))
        queries += [query for query, _ in waiting]
        for query, _ in waiting[:-staying]:
            query.stop()
        go.set()
        for query, _ in [(queries[0], busy), *waiting[-staying:]]:
            assert comes_to(query, "rows_out", 1), "its turn never came"


def runs(query: ps.Query) -> int:
    """How often the task of its function has run."""
    return next(int(task["runs"]) for task in query.metrics()["tasks"] if task["name"] == "map_batches")


def ran(query: ps.Query, before: int) -> bool:
    """Whether it runs more often than that."""
    return soon(lambda: runs(query) > before)


# Timers, by the time of the system and by a clock that stands still.


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_what_goes_by_the_time_of_the_system_does_not_wait_for_a_manual_clock(mode: Any) -> None:
    """A replay at a rate, beside a source that goes idle by the clock."""
    clock = ps.ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    quiet = ps.stream({"t": "int64"}, time="t", name="quiet", idle_after="10s")
    paced = ps.stream({"t": "int64"}, time="t", name="paced")
    plan = paced.union(quiet).window(TEN).agg(n=ps.count())
    with ps.Engine(workers=2, mode=mode, clock=clock) as engine, watched(engine) as queries:
        pushed = ps.PushSource()
        replay = ps.replay(pa.table({"t": range(2_000)}), rate=2_000.0, rounds=None)
        sources: dict[str, Any] = {"paced": replay, "quiet": pushed}
        query = engine.submit(plan, source=sources, sink="discard")
        queries.append(query)
        assert soon(lambda: query.metrics()["rows_in"] >= 1_000), "the replay stands still with the clock"
        assert query.metrics()["rows_out"] == 0
        clock.advance(timedelta(seconds=10))
        assert soon(lambda: query.metrics()["rows_out"] > 0), "the quiet source is waited for"


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_a_lagging_query_is_noticed_while_a_manual_clock_stands_still(mode: Any) -> None:
    clock = ps.ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    with ps.Engine(workers=2, mode=mode, clock=clock) as engine, watched(engine) as queries:
        source = engine.source(EVENTS, ps.replay(pa.table({"t": range(10_000)}), rounds=None), hold=True)
        shedding = engine.submit(EVENTS, source=source, on_lag="shed")
        fast = engine.submit(EVENTS, source=source, sink="discard")
        queries += [shedding, fast]
        source.start()
        assert soon(lambda: shedding.metrics()["rows_shed"] > 0)


# Sources that fall idle.


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")  # of windows that nobody has waited for
@pytest.mark.parametrize("options", ENGINES, ids=str)
@pytest.mark.parametrize("strategy", ["auto", "merge"])
@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "shared"])
def test_windows_of_an_idle_source_are_not_waited_for(is_shared: bool, strategy: Any, options: Any) -> None:
    """However many workers there are, and wherever the windows meet those of a source that speaks."""
    clock = ps.ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    quiet = ps.stream(NORTH.schema, time="t", name="north", idle_after="10s")
    left = quiet.window(TEN, by="k").agg(m=ps.count())
    right = SOUTH.window(TEN, by="k").agg(n=ps.count())
    plan = left.join(right, on="k", window=TEN, how="full")
    with ps.Engine(clock=clock, **options) as engine, watched(engine) as queries:
        north, south = ps.PushSource(), ps.PushSource()
        given: Any = engine.source(quiet, north) if is_shared else north
        query = engine.submit(
            plan, source={"north": given, "south": south}, sink="discard", strategy=strategy
        )
        queries.append(query)
        for found, start in ((1, 0), (3, 100)):
            assert north.push(rows("x", start + 5))
            assert south.push(rows("y", start + 5, start + 95))
            assert comes_to(query, "rows_in", 3 + 3 * (start // 100))
            clock.advance(timedelta(seconds=10))
            assert comes_to(query, "rows_out", found), "it is waited for"


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_a_query_that_joins_an_idle_source_does_not_wait_for_it(options: Any) -> None:
    clock = ps.ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    quiet = ps.stream(NORTH.schema, time="t", name="north", idle_after="10s")
    plan = quiet.select("t", "k", v="x").union(SOUTH.select("t", "k", v="y")).window(TEN).agg(n=ps.count())
    with ps.Engine(clock=clock, **options) as engine, watched(engine) as queries:
        north, south = ps.PushSource(), ps.PushSource()
        shared = engine.source(quiet, north)
        first = engine.submit(quiet, source=shared, sink="discard")
        queries.append(first)
        assert north.push(rows("x", 5))
        assert soon(lambda: first.metrics()["rows_out"] == 1)
        clock.advance(timedelta(seconds=10))
        assert soon(lambda: shared.metrics()["idle_sources"] == 1)
        sources: dict[str, Any] = {"north": shared, "south": south}
        second = engine.submit(plan, source=sources, sink="discard")
        queries.append(second)
        assert south.push(rows("y", 5, 95))
        assert soon(lambda: second.metrics()["rows_out"] >= 1), "it waits for a source that is idle"
