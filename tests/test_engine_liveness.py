"""I14: whatever stalls, idles or fails, everything else comes to its end.

Each shape of queries meets each kind of trouble, on workers and on threads of their own. The bounds only
catch hangs; a watchdog then prints what the engine was doing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from reference import audited
from reference.sizes import SMALLER
from reference.watchdog import watched

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")

ROWS, SEED = 6_000, 14
PAUSE = 0.1
SHAPES = {"one query": 1, "many queries": 8, "a shared source": 4}
MODES = ("state", "threads")
POLICIES = ("adaptive", "fcfs", "rr")
NAMES = list(audited.PLANS)
FAILING = audited.STREAM.select(x=col("id") // (col("id") - 700))


def batches(rows: int = 500) -> list[pa.RecordBatch]:
    made: list[pa.RecordBatch] = audited.table(ROWS, SEED).to_batches(max_chunksize=rows)
    return made


def slowly(pause: float = 0.01) -> Iterator[pa.RecordBatch]:
    for batch in batches():
        time.sleep(pause)
        yield batch


class Shape:
    """Queries of one shape; what comes in and goes out is the trouble's affair."""

    def __init__(self, engine: ps.Engine, shape: str, queries: list[ps.Query]) -> None:
        self.engine, self.queries = engine, queries
        self.is_shared = shape == "a shared source"
        self.plans = [NAMES[i % len(NAMES)] for i in range(SHAPES[shape])]
        self.sources: list[Any] = []

    def submit(self, source: Callable[[], Any], sink: Callable[[], Any] = lambda: "collect") -> None:
        """Starts all queries, each with a source of its own unless they share one."""
        if self.is_shared:
            self.sources = [source()]
            shared = self.engine.source(audited.STREAM, self.sources[0], hold=True)
            given: list[Any] = [shared] * len(self.plans)
        else:
            self.sources = given = [source() for _ in self.plans]
        for name, one in zip(self.plans, given, strict=True):
            self.queries.append(self.engine.submit(audited.PLANS[name], source=one, sink=sink()))
        if self.is_shared:
            self.also_shared(shared)
            shared.start()

    def also_shared(self, shared: ps.SharedSource) -> None:
        """What else reads the shared source, before it starts."""

    def check(self, rows: int = ROWS) -> None:
        """All queries end, with the answer that they must have."""
        for name, query in zip(self.plans, self.queries, strict=True):
            assert query.wait()
            assert query.status == "finished"
            if rows:
                audited.check(name, ROWS, SEED, query.result(), query.metrics())
            else:
                assert (query.metrics()["rows_in"], len(query.result())) == (0, 0)


def a_stalled_function(shape: Shape) -> None:
    """Sinks that stand still for a while."""
    go, seen = threading.Event(), [0]

    def stall(batch: ps.Batch) -> None:
        assert go.wait(60)
        seen[0] += batch.num_rows

    shape.submit(batches, lambda: stall)
    time.sleep(PAUSE)
    assert all(query.status == "running" for query in shape.queries)
    go.set()
    for query in shape.queries:
        assert query.wait()
    outcomes = [audited.expected(name, ROWS, SEED)[1]["rows_out"] for name in shape.plans]
    assert [query.metrics()["rows_out"] for query in shape.queries] == outcomes


def a_stalled_reader(shape: Shape) -> None:
    """Results that nobody reads for a while. Readers of a shared source have to read side by side."""
    shape.submit(batches, lambda: None)
    time.sleep(PAUSE)
    found: dict[str, int] = {}

    def read(query: ps.Query) -> None:
        found[query.name] = sum(batch.num_rows for batch in query)

    readers = [threading.Thread(target=read, args=(query,), daemon=True) for query in shape.queries]
    for reader in readers:
        reader.start()
    for query in shape.queries:
        assert query.wait()
    for reader in readers:
        reader.join()
    outcomes = [audited.expected(name, ROWS, SEED)[1]["rows_out"] for name in shape.plans]
    assert [found[query.name] for query in shape.queries] == outcomes


def an_idle_source(shape: Shape) -> None:
    """Sources that fall asleep in the middle, and wake up again."""
    shape.submit(ps.PushSource)
    for part in (batches()[:5], batches()[5:]):
        for batch in part:
            assert all(source.push(batch) for source in shape.sources)
        time.sleep(PAUSE)
    for source in shape.sources:
        source.close()
    shape.check()


def an_empty_source(shape: Shape) -> None:
    shape.submit(list)
    shape.check(rows=0)


def a_source_that_ends_without_rows(shape: Shape) -> None:
    """Empty batches, and then nothing."""
    shape.submit(ps.PushSource)
    time.sleep(PAUSE / 2)
    for source in shape.sources:
        assert source.push(batches()[0].slice(0, 0))
        source.close()
    shape.check(rows=0)


def a_slow_iterator(shape: Shape) -> None:
    shape.submit(slowly)
    shape.check()


def a_failing_neighbour(shape: Shape) -> None:
    """Queries that fail in the middle, one of them on the same source if there is one."""
    failing = [shape.engine.submit(FAILING, source=slowly(0.002), sink="discard")]

    def also_shared(shared: ps.SharedSource) -> None:
        failing.append(shape.engine.submit(FAILING, source=shared))

    shape.also_shared = also_shared  # type: ignore[method-assign]
    shape.submit(lambda: slowly(0.002))
    shape.check()
    for query in failing:
        with pytest.raises(ps.ComputeError):
            query.wait()


TROUBLES = (
    a_stalled_function, a_stalled_reader, an_idle_source, an_empty_source, a_source_that_ends_without_rows,
    a_slow_iterator, a_failing_neighbour,
)  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.__name__)
def test_every_shape_outlives_every_trouble(trouble: Callable[[Shape], None], shape: str, mode: Any) -> None:
    with ps.Engine(workers=2, mode=mode, block_rows=64) as engine, watched(engine) as queries:
        trouble(Shape(engine, shape, queries))


@pytest.mark.parametrize("options", [{}, {"mode": "threads"}, {"memory": "queue"}, {"chain": "off"}], ids=str)
@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "shared"])
def test_a_stream_that_goes_quiet_gives_the_windows_that_closed(is_shared: bool, options: Any) -> None:
    """Far fewer rows than a block holds, none after them, and no end."""
    events = ps.stream({"t": "int64"}, time="t", delay=5)
    counts = events.filter(col("t") != 3).window(ps.tumbling(10)).agg(n=ps.count())
    with ps.Engine(workers=2, block_rows=4096, **options) as engine, watched(engine) as queries:
        pushed = ps.PushSource()
        source = engine.source(events, pushed) if is_shared else pushed
        queries.append(engine.submit(counts, source=source))
        results = queries[0].results()
        for times, ended in (([*range(20), 36], 3), ([44, 45], 1)):
            assert pushed.push(pa.table({"t": times}))
            found: list[dict[str, Any]] = []
            while len(found) < min(ended, 2):
                found.extend(next(results).to_pylist())
            if ended == 3:  # the watermark is 31: all below 30 has closed, and the window of 36 has not
                assert [(row["window_start"], row["n"]) for row in found] == [(0, 9), (10, 10)]
            else:
                assert [(row["window_start"], row["n"]) for row in found] == [(30, 1)]
        assert queries[0].status == "running"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "shared"])
def test_queries_that_are_always_busy_starve_nobody(is_shared: bool, policy: Any, mode: Any) -> None:
    """As many sources without a limit as there are workers, and more; others still get their turn."""
    with ps.Engine(workers=2, policy=policy, mode=mode) as engine, watched(engine) as queries:
        for i in range(3):
            endless = ps.replay(audited.table(3_000, i), rounds=None)
            engine.submit(audited.PLANS[NAMES[i]], source=endless, sink="discard", name=f"busy {i}")
        time.sleep(PAUSE)
        shape = Shape(engine, "a shared source" if is_shared else "one query", queries)
        a_slow_iterator(shape)


def refuse(batch: ps.Batch) -> None:
    raise LookupError


def broken() -> Iterator[pa.RecordBatch]:
    yield from batches()[:3]
    raise LookupError


ENDLESS = ps.replay(audited.table(3_000, SEED), rounds=None)
# A plan, its source and its sink: each fails on its own.
FAILURES: dict[str, tuple[ps.Stream, Callable[[], Any], Any]] = {
    "an operator fails": (FAILING, batches, "discard"),
    "nobody reads what fails": (FAILING, batches, None),
    "rows do not fit": (audited.STREAM, lambda: pa.table({"x": [1]}), "discard"),
    "an iterator raises": (audited.STREAM, broken, "discard"),
    "a sink raises": (audited.STREAM, batches, refuse),
}


def busy(engine: ps.Engine) -> None:
    """As many queries as there are workers, each with rows at all times."""
    for i in range(2):
        engine.submit(audited.PLANS["windows"], source=ENDLESS, sink="discard", name=f"busy {i}")
    time.sleep(PAUSE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_known_while_others_are_busy(failure: str, policy: Any, mode: Any) -> None:
    plan, source, sink = FAILURES[failure]
    with ps.Engine(workers=2, policy=policy, mode=mode) as engine, watched(engine, 10) as queries:
        busy(engine)
        queries.append(engine.submit(plan, source=source(), sink=sink))
        with pytest.raises((LookupError, ps.ComputeError, ps.SchemaMismatchError)):
            queries[0].wait()
        assert queries[0].status == "failed"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("drain", [False, True], ids=["stop", "drain"])
@pytest.mark.parametrize("is_idle", [False, True], ids=["endless", "idle"])
def test_a_query_is_stopped_while_others_are_busy(is_idle: bool, drain: bool, policy: Any, mode: Any) -> None:
    with ps.Engine(workers=2, policy=policy, mode=mode) as engine, watched(engine, 10) as queries:
        busy(engine)
        pushed = ps.PushSource()
        queries.append(engine.submit(audited.STREAM, source=pushed if is_idle else ENDLESS, sink="discard"))
        time.sleep(PAUSE)
        queries[0].stop(drain=drain)
        assert queries[0].status == ("finished" if drain else "stopped")


@pytest.mark.parametrize("mode", MODES)
def test_idle_queries_take_no_time(mode: Any) -> None:
    """A thousand queries that have seen rows and wait for more: less than 1 % of a core."""
    seconds, least = 3.0, []
    with ps.Engine(workers=2, mode=mode) as engine, watched(engine, 120):
        sources = [ps.PushSource() for _ in range(1_000 // SMALLER)]
        for i, source in enumerate(sources):
            engine.submit(audited.PLANS[NAMES[i % 3]], source=source, sink="discard")
        for source in sources:
            assert source.push(batches(50)[0])
        limit = time.monotonic() + 60
        while any(query.metrics()["rows_in"] < 50 for query in engine.queries):
            assert time.monotonic() < limit, "not all rows were taken in"
            time.sleep(0.1)
        # Other things run in the process: the best of three.
        for _ in range(3):
            before = engine.metrics()["process"]["cpu_seconds"]
            time.sleep(seconds)
            least.append(engine.metrics()["process"]["cpu_seconds"] - before)
            if least[-1] < 0.01 * seconds:
                break
        assert len(engine.queries) == len(sources)
    assert min(least) < 0.01 * seconds, f"{least} seconds of processor time in {seconds} s each"
