"""What goes wrong in a query is said by that query, as what it is, and by no other."""

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
from reference.running import ACCOUNT
from reference.watchdog import watched

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")

ROWS, SEED = 6_000, 15
NAMES = list(audited.PLANS)
MODES = ("state", "threads")
WORST = 2**63 - 1

# The id of the row in the middle has no answer: division by zero, overflow, a total too large.
BAD = 700
OPERATORS: dict[str, tuple[str, ps.Stream]] = {
    "division in a filter": ("filter", audited.STREAM.filter(10 // (col("id") - BAD) < 100)),
    "division in a select": ("select", audited.STREAM.select(x=10 // (col("id") - BAD))),
    "remainder in with_columns": ("with_columns", audited.STREAM.with_columns(x=10 % (col("id") - BAD))),
    "overflow in with_columns": ("with_columns", audited.STREAM.with_columns(x=col("id") + (WORST - BAD))),
    "overflow behind a lookup": (
        "select", audited.STREAM.lookup(audited.TABLE, on="k").select(x=(col("id") - BAD) * (WORST // 2)),
    ),
    "overflow of a sum": (
        "window", audited.STREAM.window(ps.tumbling(500), by="k").agg(x=ps.sum(col("id") * 0 + WORST // 2)),
    ),
}  # fmt: skip


class OwnError(Exception):
    """Nothing that the engine knows."""


def batches() -> Iterator[pa.RecordBatch]:
    for batch in audited.table(ROWS, SEED).to_batches(max_chunksize=300):
        time.sleep(0.001)
        yield batch


class Neighbours:
    """Queries on the same engine, and on the same source if there is one, that nothing may happen to."""

    def __init__(
        self, engine: ps.Engine, queries: list[ps.Query], shared: ps.SharedSource | None = None
    ) -> None:
        self.queries: dict[str, ps.Query] = {}
        for name, plan in audited.PLANS.items():
            self.queries[name] = engine.submit(plan, source=batches(), sink="collect")
            if shared is not None:
                self.queries[f"{name} too"] = engine.submit(plan, source=shared, sink="collect")
        queries.extend(self.queries.values())

    def check(self) -> None:
        for name, query in self.queries.items():
            assert query.wait()
            assert (query.status, query.error) == ("finished", None)
            audited.check(name.split()[0], ROWS, SEED, query.result(), query.metrics())


@pytest.mark.parametrize("sink", ["collect", "discard", "function", "iterator"])
@pytest.mark.parametrize("number", range(len(OPERATORS)), ids=list(OPERATORS))
def test_an_operator_fails_its_query_by_name_and_no_other(number: int, sink: str) -> None:
    operator, plan = list(OPERATORS.values())[number]
    mode: Any = MODES[(number + len(sink)) % 2]
    takers: dict[str, Any] = {"function": lambda batch: None, "iterator": None}
    chain: Any = "off" if sink == "discard" else "auto"
    with ps.Engine(workers=2, mode=mode, chain=chain) as engine, watched(engine) as queries:
        source = engine.source(audited.STREAM, batches(), hold=True)
        neighbours = Neighbours(engine, queries, source)
        alone = engine.submit(plan, source=batches(), sink=takers.get(sink, sink), name="alone")
        shared = engine.submit(plan, source=source, sink=takers.get(sink, sink), name="shared")
        queries += [alone, shared]
        source.start()
        for query in (alone, shared):
            with pytest.raises(ps.ComputeError, match=f"in {operator}") as caught:
                _ = list(query) if sink == "iterator" else query.wait()
            assert query.status == "failed"
            assert type(query.error) is type(caught.value)
            assert str(query.error) == str(caught.value)
            with pytest.raises(ps.ComputeError):
                query.wait()
            query.stop()
            assert query.status == "failed", "stopping what has failed changes nothing"
        neighbours.check()
        # Its readers are told of the end first, and nobody can wait for a source; the watchdog bounds this.
        while source.status == "running":
            time.sleep(0.001)
        assert source.status == "finished"


WAITS: tuple[tuple[Any, Callable[[ps.Query], object]], ...] = (
    ("collect", ps.Query.result), ("discard", ps.Query.wait), (None, list),
)  # fmt: skip


def raising(error: BaseException) -> Iterator[pa.RecordBatch]:
    yield from list(batches())[:5]
    raise error


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("error", [OwnError("mine"), KeyError("k"), StopAsyncIteration()], ids=repr)
def test_what_an_iterator_raises_comes_back_as_itself(error: Exception, mode: Any) -> None:
    with ps.Engine(workers=2, mode=mode) as engine, watched(engine) as queries:
        neighbours = Neighbours(engine, queries)
        for sink, wait in WAITS:
            query = engine.submit(audited.STREAM, source=raising(error), sink=sink)
            with pytest.raises(type(error)) as caught:
                wait(query)
            assert caught.value is error
            assert (query.status, query.error) == ("failed", error)
        neighbours.check()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_shared_iterator_raises_fails_all_of_its_queries(mode: Any) -> None:
    error = OwnError("mine")
    with ps.Engine(workers=2, mode=mode) as engine, watched(engine) as queries:
        neighbours = Neighbours(engine, queries)
        source = engine.source(audited.STREAM, raising(error), hold=True)
        readers = [engine.submit(audited.PLANS[name], source=source, sink="collect") for name in NAMES]
        source.start()
        for reader in readers:
            with pytest.raises((OwnError, ps.SourceEndedError)) as caught:
                reader.wait()
            causes = [caught.value, caught.value.__cause__]
            assert error in causes, f"nothing leads from {caught.value!r} to what the iterator raised"
            assert reader.status == "failed"
        assert (source.status, source.error) == ("failed", error)
        neighbours.check()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_sink_raises_comes_back_as_itself(mode: Any) -> None:
    error, calls = OwnError("mine"), [0]

    def fussy(batch: ps.Batch) -> None:
        calls[0] += 1
        if calls[0] % 2 == 0:
            raise error

    with ps.Engine(workers=2, mode=mode) as engine, watched(engine) as queries:
        source = engine.source(audited.STREAM, batches(), hold=True)
        neighbours = Neighbours(engine, queries, source)
        failing = [engine.submit(audited.STREAM, source=s, sink=fussy) for s in (batches(), source)]
        source.start()
        for query in failing:
            with pytest.raises(OwnError) as caught:
                query.wait()
            assert caught.value is error
            assert (query.status, query.error) == ("failed", error)
        neighbours.check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("on_lag", ["fail", "shed"])
@pytest.mark.parametrize("sink", ["function", "iterator"])
def test_a_query_that_lags_fails_or_sheds_and_holds_nobody_up(on_lag: Any, sink: str, mode: Any) -> None:
    """A source without an end, one reader that stands still, and one that must go on."""
    go, taken = threading.Event(), [0]

    def stall(batch: ps.Batch) -> None:
        go.wait(60)
        taken[0] += batch.num_rows

    with ps.Engine(workers=2, mode=mode, budget="16MiB") as engine, watched(engine) as queries:
        source = engine.source(audited.STREAM, ps.replay(audited.table(ROWS, SEED), rounds=None), hold=True)
        taker: Any = stall if sink == "function" else None
        lagging = engine.submit(audited.PLANS["kept"], source=source, sink=taker, on_lag=on_lag)
        other = engine.submit(audited.PLANS["windows"], source=source, sink="discard")
        queries += [lagging, other]
        source.start()
        # Far more rows than there is memory for: the source did not wait.
        while other.metrics()["rows_in"] < 600 * ROWS:
            time.sleep(0.01)
        source.close()
        go.set()
        if on_lag == "fail":
            with pytest.raises(ps.LaggedError) as caught:
                lagging.wait()
            assert caught.value.rows > 0
            assert lagging.status == "failed"
        else:
            if sink == "iterator":
                taken[0] = sum(batch.num_rows for batch in lagging)
            assert lagging.wait()
            account = lagging.metrics()
            assert account["rows_shed"] > 0
            assert account["rows_in"] == sum(account[name] for name in ACCOUNT), account
            assert account["rows_in"] == source.metrics()["rows_in"]
            assert account["rows_contributed"] == account["rows_out"] == taken[0]
        assert other.wait()
        account = other.metrics()
        assert (other.status, account["rows_shed"]) == ("finished", 0)
        assert account["rows_in"] == sum(account[name] for name in ACCOUNT) == source.metrics()["rows_in"]


@pytest.mark.parametrize("mode", MODES)
def test_a_state_that_outgrows_the_budget_is_named_and_fails_alone(mode: Any) -> None:
    rows = ps.stream({"t": "int64", "k": "int64"}, time="t", delay=10**9)
    greedy = rows.window(ps.tumbling(1000), by="k").agg(n=ps.count())

    def growing() -> Iterator[pa.Table]:
        for low in range(0, 10**9, 20_000):
            yield pa.table({"t": range(low, low + 20_000), "k": range(low, low + 20_000)})

    with ps.Engine(workers=2, mode=mode, budget="24MiB") as engine, watched(engine) as queries:
        rest = engine.submit(audited.PLANS["kept"], source=batches(), sink="collect", name="rest")
        query = engine.submit(greedy, source=growing(), sink="discard", name="greedy")
        queries += [rest, query]
        with pytest.raises(ps.MemoryLimitExceeded) as caught:
            query.wait()
        assert caught.value.operator == "window"
        assert caught.value.budget_bytes == 24 << 20
        assert (caught.value.state_bytes or 0) > 1 << 20
        assert query.status == "failed"
        audited.check("kept", ROWS, SEED, rest.result(), rest.metrics())
        # What it held is free again.
        again = engine.submit(audited.PLANS["windows"], source=batches(), sink="collect")
        audited.check("windows", ROWS, SEED, again.result(), again.metrics())


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_a_query_that_was_drained_are_accounted_for(mode: Any) -> None:
    with ps.Engine(workers=2, mode=mode) as engine, watched(engine) as queries:
        endless = ps.replay(audited.table(ROWS, SEED), rounds=None)
        queries += [engine.submit(audited.PLANS[name], source=endless, sink="discard") for name in NAMES]
        time.sleep(0.1)
        for query in queries:
            query.stop(drain=True)
            account = query.metrics()
            assert (query.status, account["rows_shed"]) == ("finished", 0)
            assert account["rows_in"] == sum(account[name] for name in ACCOUNT) > 0, account
