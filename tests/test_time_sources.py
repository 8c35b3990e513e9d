"""Where time comes from, and who waits for whom: watermark columns, silent sources, times of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference import strategies, windowed_cases
from reference.compare import as_bag
from reference.engine import batches_of, rows_of
from reference.grouping import aggregated
from reference.live import soon
from reference.options import run_one, run_options
from reference.types import INT64, Type
from reference.watchdog import watched
from reference.windowing import arrive

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")

EXAMPLES = settings().max_examples
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEN = ps.tumbling(10)
SECOND = timedelta(seconds=1)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def times(*values: int, key: str = "a") -> pa.Table:
    return pa.table({"t": pa.array(values, pa.int64()), "k": pa.array([key] * len(values), pa.string())})


class Live:
    """A query on an engine with a clock that stands still, and what has come out of it."""

    def __init__(self, query: ps.Query, clock: ps.ManualClock, sources: Mapping[str, ps.PushSource]) -> None:
        self.query, self.clock, self.sources = query, clock, sources
        self.rows: list[dict[str, Any]] = []
        self._pushed = 0

    def push(self, data: pa.Table, stream: str = "one") -> None:
        """Hands rows over, and waits until each has come to its end: in a window, or left out of them."""
        assert self.sources[stream].push(data)
        self._pushed += data.num_rows
        assert soon(lambda: self._settled() == self._pushed)

    def _settled(self) -> int:
        metrics = self.query.metrics()
        ends = ("contributed", "filtered", "late", "shed", "rejected")
        return int(sum(metrics[f"rows_{end}"] for end in ends) - metrics["rows_copied"])

    def got(self, *counts: tuple[Any, int]) -> bool:
        """Whether these windows come out, and no other."""
        wanted = sorted(counts)
        return soon(lambda: sorted((row["window_start"], row["n"]) for row in list(self.rows)) == wanted)

    def metric(self, name: str) -> Any:
        return self.query.metrics()[name]


@contextmanager
def running(plan: ps.Stream, *streams: str, **options: Any) -> Iterator[Live]:
    """Runs a plan over sources that are pushed to, with a clock that shows noon."""
    clock, rows = ps.ManualClock(NOON), list[dict[str, Any]]()
    sources = {name: ps.PushSource() for name in streams or ("one",)}
    with ps.Engine(workers=2, clock=clock, **options) as engine, watched(engine) as queries:
        query = engine.submit(plan, source=sources, sink=lambda batch: rows.extend(rows_of(batch)))
        queries.append(query)
        live = Live(query, clock, sources)
        live.rows = rows
        yield live


# A column of watermarks.

COLUMNS: tuple[tuple[str, Type], ...] = (("id", INT64), ("t", INT64), ("w", INT64))


@settings(max_examples=max(10, EXAMPLES // 2))
@given(st.data(), run_options())
def test_random_watermarks_equal_the_reference(data: st.DataObject, options: dict[str, Any]) -> None:
    windows = data.draw(
        st.one_of(
            windowed_cases.tumbling_windows(),
            windowed_cases.sliding_windows(),
            windowed_cases.session_windows(),
        )
    )
    cell = data.draw(strategies.times(INT64, windows.size))
    drawn = data.draw(st.lists(st.tuples(cell, st.one_of(st.none(), cell)), max_size=25))
    rows = [{"id": number, "t": time, "w": mark} for number, (time, mark) in enumerate(drawn)]
    delay = data.draw(strategies.delays(INT64, windows.size))
    stream = ps.stream(
        {"id": "int64", "t": "int64", "w": "int64"}, time="t", watermark="w", delay=delay, name="one"
    )
    query = stream.window(windows.build()).agg(n=ps.count(), ids=ps.sum("id"))
    arrived = arrive(rows, "t", delay, marks="w")
    expected, late = aggregated(windows, arrived, (), {"n": ("count", None), "ids": ("sum", "id")})
    result = run_one(query, batches_of(COLUMNS, rows, data.draw(strategies.cuts(len(rows)))), **options)
    event(f"late rows: {min(len(late), 3)}")
    assert as_bag(rows_of(result)) == as_bag(expected)
    assert result.rows_late == len(late)


def test_a_row_is_judged_by_the_watermarks_before_it() -> None:
    stream = ps.stream({"t": "int64", "w": "int64"}, time="t", watermark="w")
    query = stream.window(TEN).agg(n=ps.count())
    result = run_one(query, pa.table({"t": [5, 5, 5, 50, 12], "w": [None, 10, 3, None, 20]}))
    assert {row["window_start"]: row["n"] for row in rows_of(result)} == {0: 2, 10: 1, 50: 1}
    assert (result.rows_late, result.metrics()["late_by"]) == (1, 5)


def test_times_do_not_move_a_watermark_that_is_a_column() -> None:
    stream = ps.stream({"t": "int64", "w": "int64"}, time="t", watermark="w", name="one")
    with running(stream.window(TEN).agg(n=ps.count())) as live:
        live.push(pa.table({"t": [1, 1000], "w": pa.array([None, 0], pa.int64())}))
        live.push(pa.table({"t": [2], "w": [9]}))
        assert live.rows == []
        live.push(pa.table({"t": [1001], "w": [10]}))
        assert live.got((0, 2))
        assert live.metric("rows_late") == 0


def test_a_column_of_watermarks_need_not_stay() -> None:
    stream = ps.stream({"t": "int64", "w": "int64"}, time="t", watermark="w")
    query = stream.drop("w").window(TEN).agg(n=ps.count())
    result = run_one(query, pa.table({"t": [5, 6], "w": [10, 11]}))
    assert (result.rows_late, result.rows_out) == (1, 1)


def test_watermarks_that_make_no_sense() -> None:
    schema = {"t": "int64", "mark": "int64", "k": "string"}
    with pytest.raises(ps.UnknownColumnError) as caught:
        ps.stream(schema, time="t", watermark="makr")
    assert caught.value.suggestion == "mark"
    with pytest.raises(ps.TypeMismatchError):
        ps.stream(schema, time="t", watermark="k")
    with pytest.raises(ps.MissingTimeColumnError):
        ps.stream(schema, watermark="mark")
    with pytest.raises(TypeError):
        ps.stream(schema, time="t", watermark=1)  # type: ignore[arg-type]


# Streams that fall silent.

ONE = ps.stream({"t": "int64", "k": "string"}, time="t", name="one")
QUIET = ps.stream({"t": "int64", "k": "string"}, time="t", name="quiet", idle_after="10s")
UNION = ONE.union(QUIET).window(TEN).agg(n=ps.count())


@pytest.mark.parametrize(
    "options", [{}, {"chain": "off"}, {"memory": "queue"}, {"mode": "threads"}], ids=repr
)
def test_nobody_waits_for_a_silent_stream(options: dict[str, Any]) -> None:
    with running(UNION, "one", "quiet", **options) as live:
        live.push(times(2), "quiet")
        live.push(times(1, 25))
        live.clock.advance(seconds(9))
        assert live.metric("idle_sources") == 0
        assert live.rows == []
        live.clock.advance(seconds(1))
        assert live.got((0, 2))
        assert (live.metric("idle_sources"), live.metric("idles")) == (1, 1)
        live.push(times(26), "quiet")  # it speaks again, and is waited for
        assert soon(lambda: live.metric("idle_sources") == 0)
        live.push(times(5), "quiet")  # of a window that has closed
        assert soon(lambda: live.metric("rows_late") == 1)
        live.push(times(40))
        live.push(times(30), "quiet")
        assert live.got((0, 2), (20, 2))
        assert live.metric("idles") == 1


def test_a_stream_that_has_never_spoken_is_silent_too() -> None:
    with running(UNION, "one", "quiet") as live:
        live.push(times(1, 10))
        live.clock.advance(seconds(10))
        assert live.got((0, 1))


def test_rows_keep_a_stream_awake() -> None:
    """Time since its last row counts, not since its first."""
    with running(UNION, "one", "quiet") as live:
        live.push(times(1, 100))
        for time in (2, 3, 4):
            live.clock.advance(seconds(6))
            live.push(times(time), "quiet")
        assert live.metric("idles") == 0
        live.clock.advance(seconds(10))
        assert live.got((0, 4))
        assert live.metric("rows_late") == 0


def test_a_silent_stream_does_not_hold_up_a_join() -> None:
    query = ONE.join(QUIET, window=TEN, on="k", how="left").select("window_start", n=ps.lit(1))
    with running(query, "one", "quiet") as live:
        live.push(times(1, 25))
        live.clock.advance(seconds(10))
        assert live.got((0, 1))
        live.push(times(2), "quiet")
        assert soon(lambda: live.metric("rows_late") == 1)


def test_silence_of_one_stream_is_not_that_of_another() -> None:
    both = ps.stream({"t": "int64", "k": "string"}, time="t", name="one", idle_after="1h").union(QUIET)
    with running(both.window(TEN).agg(n=ps.count()), "one", "quiet") as live:
        live.push(times(1), "one")
        live.push(times(2, 30), "quiet")
        live.clock.advance(seconds(20))
        assert soon(lambda: live.metric("idles") == 1)
        assert live.rows == [], "the quiet one is silent, and the other holds its windows open"
        live.clock.advance(timedelta(hours=1))
        assert soon(lambda: live.metric("idle_sources") == 2)


def test_lengths_of_silence_that_make_no_sense() -> None:
    for bad in ("0s", "soon", 5):
        with pytest.raises(ps.DurationError):
            ps.stream({"t": "int64"}, time="t", idle_after=bad)
    with pytest.raises(ps.MissingTimeColumnError):
        ps.stream({"t": "int64"}, idle_after="1s")


# Windows that close by the clock.

CLOSING = ONE.window(TEN, close_after="5s").agg(n=ps.count())


@pytest.mark.parametrize(
    "options", [{}, {"chain": "off"}, {"memory": "queue"}, {"mode": "threads"}], ids=repr
)
def test_windows_close_after_silence(options: dict[str, Any]) -> None:
    with running(CLOSING, **options) as live:
        live.push(times(1, 2))
        live.clock.advance(seconds(4))
        assert live.metric("clock_closings") == 0
        assert live.rows == []
        live.clock.advance(seconds(1))
        assert live.got((0, 2))
        assert live.metric("clock_closings") == 1
        live.push(times(3))
        assert soon(lambda: live.metric("rows_late") == 1)
        live.push(times(12))
        live.clock.advance(seconds(5))
        assert live.got((0, 2), (10, 1))
        live.sources["one"].close()
        assert live.query.wait(20)
        assert live.got((0, 2), (10, 1))


def test_rows_keep_windows_open() -> None:
    with running(CLOSING) as live:
        for time in (1, 2, 3, 4):
            live.push(times(time))
            live.clock.advance(seconds(3))
        assert live.metric("rows_late") == 0
        live.clock.advance(seconds(5))
        assert live.got((0, 4))


@pytest.mark.parametrize("window", [ps.sliding(10, 5), ps.session(10)], ids=lambda window: window.kind)
def test_windows_of_any_kind_close_after_silence(window: ps.Window) -> None:
    with running(ONE.window(window, close_after="5s").agg(n=ps.count())) as live:
        live.push(times(7, 8))
        live.clock.advance(seconds(5))
        assert live.got(*([(0, 2), (5, 2)] if window.kind == "sliding" else [(7, 2)]))
        live.push(times(8))
        assert soon(lambda: live.metric("rows_late") == 1)


def test_top_rows_close_after_silence_or_are_refused() -> None:
    """What `window` was told is not forgotten in silence."""
    windowed = ONE.window(TEN, close_after="5s")
    try:
        query = windowed.top_k(1, "t").select("window_start", n=col("rank"))
    except ps.PlanError:
        return
    with running(query) as live:
        live.push(times(1))
        live.clock.advance(seconds(5))
        assert live.got((0, 1))


def test_lengths_to_close_after_that_make_no_sense() -> None:
    for bad in ("0s", "soon", 5):
        with pytest.raises(ps.DurationError):
            ONE.window(TEN, close_after=bad).agg(n=ps.count())


# Times of arrival.

ARRIVALS = {"ingestion": ps.ingestion_time, "processing": ps.processing_time}


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def pages(*names: str) -> pa.Table:
    return pa.table({"page": pa.array(names, pa.string())})


@pytest.mark.parametrize("kind", ARRIVALS)
def test_windows_of_arrival_close_by_the_clock(kind: str) -> None:
    clicks = ps.stream({"page": "string"}, time=ARRIVALS[kind]("at"), name="one")
    assert (clicks.time, clicks.schema.types[-1]) == ("at", "timestamp[us, tz=UTC]")
    with running(clicks.window(ps.tumbling("10s")).agg(n=ps.count())) as live:
        live.push(pages("a", "b"))
        live.clock.advance(seconds(4))
        live.push(pages("c"))
        live.clock.advance(seconds(5))
        live.push(pages("d"))
        assert live.rows == []
        live.clock.advance(seconds(1))
        assert live.got((micros(NOON), 4))
        live.push(pages("e"))
        live.clock.advance(seconds(10))
        assert live.got((micros(NOON), 4), (micros(NOON) + 10_000_000, 1))
        assert live.metric("rows_late") == 0


def test_a_window_of_arrival_closes_when_the_clock_shows_its_end() -> None:
    """However the clock came there."""
    clicks = ps.stream({"page": "string"}, time=ps.ingestion_time("at"), name="one")
    with running(clicks.window(ps.tumbling("10s")).agg(n=ps.count())) as live:
        live.push(pages("a"))
        live.clock.advance(seconds(9.5))
        live.push(pages("b"))
        live.clock.advance(seconds(0.5))
        assert live.got((micros(NOON), 2))


@pytest.mark.parametrize("kind", ARRIVALS)
def test_the_time_of_arrival_is_a_column(kind: str) -> None:
    clicks = ps.stream({"page": "string"}, time=ARRIVALS[kind](), name="one")
    assert clicks.schema.names == ["page", f"{kind}_time"]
    with running(clicks.select("page", at=f"{kind}_time")) as live:
        live.push(pages("a", "b"))
        live.clock.advance(seconds(1.5))
        live.push(pages("c"))
        noon = micros(NOON)
        expected = [("a", noon), ("b", noon), ("c", noon + 1_500_000)]
        assert soon(lambda: [(row["page"], row["at"]) for row in live.rows] == expected), live.rows


@pytest.mark.parametrize("kind", ARRIVALS)
def test_a_clock_that_is_set_back_makes_nothing_late(kind: str) -> None:
    clicks = ps.stream({"page": "string"}, time=ARRIVALS[kind]("at"), name="one")
    late = NOON + seconds(30)
    with running(clicks.select("page", "at")) as live:
        live.clock.advance(seconds(30))
        live.push(pages("a"))
        live.clock.set(NOON)
        live.push(pages("b"))
        live.clock.advance(seconds(29))
        live.push(pages("c"))
        live.clock.advance(seconds(2))
        live.push(pages("d"))
        expected = [micros(late)] * 3 + [micros(NOON + seconds(31))]
        assert soon(lambda: [row["at"] for row in live.rows] == expected), live.rows
    with running(clicks.window(ps.tumbling("10s")).agg(n=ps.count())) as live:
        live.clock.advance(seconds(30))
        live.push(pages("a"))
        live.clock.set(NOON)
        live.push(pages("b"))
        live.clock.advance(seconds(40))
        assert live.got((micros(late), 2))
        assert live.metric("rows_late") == 0


def test_a_clock_that_is_set_forward_closes_windows() -> None:
    clicks = ps.stream({"page": "string"}, time=ps.ingestion_time("at"), name="one")
    with running(clicks.window(ps.tumbling("10s")).agg(n=ps.count())) as live:
        live.push(pages("a"))
        live.clock.set(NOON + timedelta(hours=1))
        live.clock.advance(SECOND)
        assert live.got((micros(NOON), 1))


def test_times_of_arrival_may_be_run_to_the_end() -> None:
    clicks = ps.stream({"page": "string"}, time=ps.processing_time())
    result = run_one(clicks.window(ps.tumbling("1w"), by="page").agg(n=ps.count()), pages("a", "b", "a"))
    assert sum(row["n"] for row in result.to_pylist()) == 3
    assert result.rows_late == 0


def test_arrivals_that_make_no_sense() -> None:
    with pytest.raises(ps.PlanError, match="page"):
        ps.stream({"page": "string"}, time=ps.ingestion_time("page"))
    with pytest.raises(TypeError):
        ps.ingestion_time(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ps.stream({"page": "string"}, time=NOON)  # type: ignore[arg-type]


def test_plans_keep_their_sense_of_time() -> None:
    clicks = ps.stream(
        {"page": "string"}, time=ps.ingestion_time("at"), idle_after="3s", delay="1s", name="one"
    )
    query = clicks.window(ps.tumbling("1s"), close_after="5s").agg(n=ps.count())
    again = ps.Stream.from_json(query.to_json())
    assert again == query
    assert again.explain() == query.explain()
    other = clicks.window(ps.tumbling("1s"), close_after="6s").agg(n=ps.count())
    assert query != other


# The clock itself.


def test_a_clock_goes_forwards_only() -> None:
    clock = ps.ManualClock(NOON)
    with pytest.raises(ValueError, match="forwards"):
        clock.advance(seconds(-1))
    clock.advance(seconds(0))
    with pytest.raises(TypeError):
        ps.ManualClock(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        clock.set("noon")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ps.Engine(clock=NOON)  # type: ignore[arg-type]


def test_a_time_without_a_zone_is_in_utc() -> None:
    clock, source = ps.ManualClock(NOON.replace(tzinfo=None)), ps.PushSource()
    clicks = ps.stream({"page": "string"}, time=ps.ingestion_time("at"))
    with ps.Engine(workers=1, clock=clock) as engine, watched(engine) as queries:
        query = engine.submit(clicks, source=source, sink="collect")
        queries.append(query)
        source.push(pages("a"))
        source.close()
        assert rows_of(query.result())[0]["at"] == micros(NOON)
