"""I17: the clock on the wall is set by an hour, forwards or back; the process stands still for a minute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from reference.engine import rows_of
from reference.live import soon
from reference.watchdog import watched

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
BURST = 20_000

ARRIVALS = {"ingestion": ps.ingestion_time, "processing": ps.processing_time}
OPTIONS: list[dict[str, Any]] = [{}, {"chain": "off"}, {"memory": "queue"}, {"mode": "threads"}]
ONE = ps.stream({"t": "int64"}, time="t", name="one")
QUIET = ps.stream({"t": "int64"}, time="t", name="quiet", idle_after="10s")
UNION = ONE.union(QUIET).window(ps.tumbling(10)).agg(n=ps.count())
CLOSING = ONE.window(ps.tumbling(10), close_after="5s").agg(n=ps.count())


def arriving(kind: str) -> ps.Stream:
    return ps.stream({"v": "int64"}, time=ARRIVALS[kind]("at"), name="one")


def by_ten_seconds(kind: str) -> ps.Stream:
    return arriving(kind).window(ps.tumbling("10s")).agg(n=ps.count())


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


class Live:
    """A query whose clock stands still, and what has come out of it."""

    def __init__(self, query: ps.Query, clock: ps.ManualClock, sources: Mapping[str, ps.PushSource]) -> None:
        self.query, self.clock, self.sources = query, clock, sources
        self.rows: list[dict[str, Any]] = []
        self.wall, self.pushed = NOON, 0

    def push(self, column: str, *values: int, stream: str = "one") -> None:
        """Hands rows over, and waits until each has come to its end."""
        assert self.sources[stream].push(pa.table({column: pa.array(values, pa.int64())}))
        self.pushed += len(values)
        ends = ("rows_contributed", "rows_late")
        assert soon(lambda: sum(self.metric(end) for end in ends) == self.pushed + self.metric("rows_copied"))

    def step(self, by: timedelta) -> None:
        """Sets the clock on the wall, while no time goes by."""
        self.wall += by
        self.clock.set(self.wall)

    def go_on(self, by: timedelta) -> None:
        """Lets time go by, on the wall too."""
        self.wall += by
        self.clock.advance(by)

    def metric(self, name: str) -> int:
        return int(self.query.metrics()[name])

    def counts(self) -> list[tuple[int, int]]:
        return sorted((row["window_start"], row["n"]) for row in list(self.rows))

    def got(self, *counts: tuple[int, int]) -> bool:
        """Whether these windows come out, and no other."""
        return soon(lambda: self.counts() == sorted(counts))

    def end(self) -> None:
        """Closes all sources, and waits for the end: no window waits for a clock any more."""
        for source in self.sources.values():
            source.close()
        assert self.query.wait(20)


@contextmanager
def running(plan: ps.Stream, *streams: str, **options: Any) -> Iterator[Live]:
    clock, rows = ps.ManualClock(NOON), list[dict[str, Any]]()
    sources = {name: ps.PushSource() for name in streams or ("one",)}
    with ps.Engine(workers=2, clock=clock, **options) as engine, watched(engine) as queries:
        query = engine.submit(plan, source=sources, sink=lambda batch: rows.extend(rows_of(batch)))
        queries.append(query)
        live = Live(query, clock, sources)
        live.rows = rows
        yield live
        assert query.status in ("running", "finished")


# Times of arrival, which the clock on the wall gives.


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("kind", ARRIVALS)
def test_an_hour_forwards_closes_what_was_open_and_loses_nothing(kind: str, options: dict[str, Any]) -> None:
    with running(by_ten_seconds(kind), **options) as live:
        live.push("v", 1, 2)
        live.step(HOUR)
        live.push("v", 3)
        assert live.got((micros(NOON), 2))
        live.go_on(10 * SECOND)
        assert live.got((micros(NOON), 2), (micros(NOON + HOUR), 1))
        assert live.metric("rows_late") == 0


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("kind", ARRIVALS)
def test_an_hour_back_makes_nothing_late(kind: str, options: dict[str, Any]) -> None:
    """Event time stays where it is until the clock has come there again."""
    with running(by_ten_seconds(kind), **options) as live:
        live.push("v", 1)
        live.go_on(10 * SECOND)
        assert live.got((micros(NOON), 1))
        live.push("v", 2)
        live.step(-HOUR)
        live.push("v", 3)
        live.go_on(30 * MINUTE)
        live.push("v", 4)
        assert live.got((micros(NOON), 1))
        live.go_on(30 * MINUTE + 10 * SECOND)
        assert live.got((micros(NOON), 1), (micros(NOON + 10 * SECOND), 3))
        live.push("v", 5)
        live.go_on(10 * SECOND)
        later = micros(NOON + 20 * SECOND)
        assert live.got((micros(NOON), 1), (micros(NOON + 10 * SECOND), 3), (later, 1))
        assert live.metric("rows_late") == 0


@pytest.mark.parametrize("kind", ARRIVALS)
def test_a_query_ends_while_the_clock_is_an_hour_behind(kind: str) -> None:
    with running(by_ten_seconds(kind)) as live:
        live.push("v", 1)
        live.step(-HOUR)
        live.push("v", 2, 3)
        live.end()
        assert live.got((micros(NOON), 3))


@pytest.mark.parametrize("kind", ARRIVALS)
def test_sessions_close_behind_an_hour_forwards_and_an_hour_back(kind: str) -> None:
    sessions = arriving(kind).window(ps.session("10s")).agg(n=ps.count())
    with running(sessions) as live:
        live.push("v", 1)
        live.step(HOUR)
        live.push("v", 2)
        assert live.got((micros(NOON), 1))
        live.step(-HOUR)
        live.push("v", 3)
        live.go_on(HOUR + 20 * SECOND)
        assert live.got((micros(NOON), 1), (micros(NOON + HOUR), 2))
        assert live.metric("rows_late") == 0


SECONDS = st.sampled_from([0, 1, 7, 60, 3600])
MOVES = st.lists(
    st.tuples(st.sampled_from(["push", "step", "go_on"]), SECONDS, st.booleans()), min_size=1, max_size=12
)


@settings(max_examples=max(5, settings().max_examples // 10))
@given(st.sampled_from(sorted(ARRIVALS)), MOVES)
def test_time_never_goes_back_however_the_clock_is_set(kind: str, moves: list[tuple[str, int, bool]]) -> None:
    stream = arriving(kind)
    windows = stream.window(ps.tumbling("10s")).agg(n=ps.count())
    for plan in (stream, windows):
        with running(plan) as live:
            for move, number, back in moves:
                if move == "push":
                    live.push("v", *range(max(1, number % 100)))
                elif move == "step":
                    live.step(-number * SECOND if back else number * SECOND)
                else:
                    live.go_on(number * SECOND)
            live.end()
            assert live.metric("rows_late") == 0
            assert live.metric("rows_in") == live.pushed
            if plan is windows:
                assert soon(lambda: sum(count for _, count in live.counts()) == live.pushed)
            else:
                assert soon(lambda: len(live.rows) == live.pushed)
                assert all(earlier["at"] <= later["at"] for earlier, later in pairwise(live.rows))


# Silence, which is measured by a clock that nobody sets.


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forwards", "back"])
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_silence_does_not_go_by_the_clock_on_the_wall(step: timedelta, options: dict[str, Any]) -> None:
    with running(UNION, "one", "quiet", **options) as live:
        live.push("t", 2, stream="quiet")
        live.push("t", 1, 25)
        live.step(step)
        live.go_on(9 * SECOND)
        assert (live.metric("idle_sources"), live.rows) == (0, [])
        live.step(step)
        live.go_on(SECOND)
        assert live.got((0, 2))
        assert live.metric("idles") == 1
        live.push("t", 26, stream="quiet")
        live.end()
        assert live.got((0, 2), (20, 2))


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forwards", "back"])
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_windows_do_not_close_by_the_clock_on_the_wall(step: timedelta, options: dict[str, Any]) -> None:
    with running(CLOSING, **options) as live:
        live.push("t", 1, 2)
        live.step(step)
        live.go_on(4 * SECOND)
        assert (live.metric("clock_closings"), live.rows) == (0, [])
        live.step(step)
        live.go_on(SECOND)
        assert live.got((0, 2))
        live.push("t", 12)
        live.end()
        assert live.got((0, 2), (10, 1))
        assert (live.metric("clock_closings"), live.metric("rows_late")) == (1, 0)


# A minute in which nothing runs, and then all at once.


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("kind", ARRIVALS)
def test_a_burst_behind_a_pause_is_on_time(kind: str, options: dict[str, Any]) -> None:
    with running(by_ten_seconds(kind), **options) as live:
        live.push("v", 1)
        live.go_on(MINUTE)
        live.push("v", *range(BURST))
        assert live.got((micros(NOON), 1))
        live.go_on(10 * SECOND)
        assert live.got((micros(NOON), 1), (micros(NOON + MINUTE), BURST))
        assert live.metric("rows_late") == 0


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_a_pause_is_silence_once(options: dict[str, Any]) -> None:
    """A stream that was taken for silent is waited for again when its burst comes."""
    with running(UNION, "one", "quiet", **options) as live:
        live.push("t", 1, stream="quiet")
        live.push("t", 2, 25)
        live.go_on(MINUTE)
        assert live.got((0, 2))
        live.push("t", *range(30, 30 + BURST), stream="quiet")
        assert live.counts() == [(0, 2)], "the other is at 25"
        live.push("t", *range(30, 30 + BURST))
        live.end()
        windows = [(start, 20) for start in range(30, 30 + BURST, 10)]
        assert live.got((0, 2), (20, 1), *windows)
        assert (live.metric("idles"), live.metric("rows_late")) == (1, 0)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_a_pause_closes_windows_once(options: dict[str, Any]) -> None:
    with running(CLOSING, **options) as live:
        live.push("t", 1)
        live.go_on(MINUTE)
        assert live.got((0, 1))
        live.push("t", 2, *range(10, 10 + BURST))  # the first of a window that has closed
        live.go_on(MINUTE)
        assert live.got((0, 1), *((start, 10) for start in range(10, 10 + BURST, 10)))
        assert (live.metric("clock_closings"), live.metric("rows_late")) == (2, 1)
