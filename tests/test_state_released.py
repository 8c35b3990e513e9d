"""I11: dead keys leave. Keys that come once go through each operator that keeps state, and memory returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock import col
from reference.live import soon
from reference.options import ACCOUNT
from reference.sizes import SMALLER
from reference.watchdog import watched

pytestmark = pytest.mark.slow

KEYS = 1_000_000 // SMALLER
BATCH, SMALL_BATCH = KEYS // 20, 500
NEARLY = 64 * 1024
"""What may be left of the state, in bytes, however many keys there were: a million takes 35 MB or more."""

SCHEMA = {"t": "int64", "k": "string", "v": "int64"}
STREAM = ps.stream(SCHEMA, time="t", name="one")
OTHER = ps.stream(SCHEMA, time="t", name="two")
LONG, MANY = ps.tumbling(1000), {"n": ps.count(), "different": ps.count_distinct("k"), "first": ps.first("k")}
SESSIONS = STREAM.window(ps.session(200), by="k").agg(n=ps.count())

PLANS: dict[str, ps.Stream | ps.Outputs] = {
    "tumbling": STREAM.window(LONG, by="k").agg(**MANY, most=ps.max("k"), var=ps.var("v")),
    "sliding": STREAM.window(ps.sliding(1000, 300), by="k").agg(**MANY),
    "session": STREAM.window(ps.session(200), by="k").agg(**MANY),
    "several keys": STREAM.window(LONG, by=["k", col("v") % 7]).agg(n=ps.count()),
    "no key": STREAM.window(LONG).agg(different=ps.count_distinct("k")),
    "allowed lateness": STREAM.window(LONG, by="k", allowed_lateness=400).agg(**MANY),
    "top_k": STREAM.window(LONG, by="k").top_k(2, "v"),
    "inner join": STREAM.join(OTHER, window=LONG, on="k"),
    "full join": STREAM.join(OTHER, window=ps.sliding(1000, 500), on="k", how="full"),
    "join with itself": STREAM.join(STREAM.rename(v="w"), window=LONG, on="k", how="left"),
    "cogroup": STREAM.cogroup(OTHER, window=LONG, by="k").agg(left={"m": ps.count()}, right=MANY),
    "cogroup of sessions": STREAM.cogroup(OTHER, window=ps.session(200), by="k").agg(left=MANY),
    "union": STREAM.union(OTHER).window(LONG, by="k").agg(n=ps.count()),
    "windows of windows": SESSIONS.window(LONG, by="k").agg(ps.count()),
    "several outputs": ps.outputs(
        keys=STREAM.window(LONG, by="k").agg(n=ps.count()),
        late=STREAM.window(LONG).agg(ps.count()).split_late()[1],
    ),
}


def streams_of(name: str) -> list[str]:
    """The names of the streams that a plan reads."""
    several = name in ("inner join", "full join", "cogroup", "cogroup of sessions", "union")
    return ["one", "two"] if several else ["one"]


def at_rest(query: ps.Query) -> bool:
    """Whether every row that was taken in has gone where it goes, and no task has anything to do."""
    metrics = query.metrics()
    idle = all(task["pending_rows"] == task["signals"] == 0 for task in metrics["tasks"])
    gone = sum(metrics[name] for name in ACCOUNT)
    return idle and gone == metrics["rows_in"] + metrics["rows_copied"]


def rows_of(times: np.ndarray[Any, np.dtype[np.int64]], first: int) -> pa.Table:
    """Rows of these times, with keys that nobody has seen before."""
    numbers = pa.array(np.arange(first, first + len(times)))
    keys = pc.binary_join_element_wise("a key that comes but once, number", numbers.cast(pa.string()), " ")
    return pa.table({"t": times, "k": keys, "v": numbers})


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    """Half of the keys in one window, all alive, and half as time goes on, at last by small batches."""
    half, last = KEYS // 2, KEYS - 20 * SMALL_BATCH
    table = rows_of(np.concatenate([np.full(half, 100), np.arange(half, KEYS) + 1000]), 0)
    large = [table.slice(first, min(BATCH, last - first)) for first in range(0, last, BATCH)]
    return large + [table.slice(first, SMALL_BATCH) for first in range(last, KEYS, SMALL_BATCH)]


@pytest.mark.parametrize("name", PLANS)
def test_keys_that_come_once_leave_nothing_behind(name: str, tables: list[pa.Table]) -> None:
    plan = PLANS[name]
    with ps.Engine(workers=2, budget="1GiB") as engine, watched(engine, 60) as queries:
        sources = {stream: ps.PushSource() for stream in streams_of(name)}
        query = engine.submit(plan, source=sources, sink="discard")
        queries.append(query)
        pushed, most = 0, 0

        def state() -> int:
            return int(engine.metrics()["memory"]["state_bytes"])

        def push(table: pa.Table) -> None:
            nonlocal pushed, most
            for source in sources.values():
                assert source.push(table)
                pushed += table.num_rows
            assert soon(lambda: bool(query.metrics()["rows_in"] == pushed))
            most = max(most, state())

        start = state()
        for table in tables:
            push(table)
        assert most > start + 16 * KEYS, "the keys were never there"
        # Time goes on with a row now and then, and nothing else is alive.
        for step in range(1, 11):
            push(rows_of(np.array([10 * KEYS + 10**6 * step]), 10 * KEYS + step))
        assert soon(lambda: at_rest(query))
        returned = soon(lambda: state() <= start + NEARLY and at_rest(query))
        assert returned, f"{state()} bytes are left of {most}, and {start} were there before"
        account: dict[str, Any] = query.metrics()
        assert account["rows_late"] == 0
        assert query.status == "running"


def test_all_state_is_gone_when_a_query_has_ended() -> None:
    with ps.Engine(workers=2) as engine, watched(engine):
        start = engine.metrics()["memory"]["state_bytes"]
        for name, plan in PLANS.items():
            data = {stream: rows_of(np.arange(2_500), 0) for stream in streams_of(name)}
            finished = engine.submit(plan, source=data, sink="discard")
            assert finished.wait(30)
            stopped = engine.submit(plan, source={stream: ps.PushSource() for stream in data}, sink="discard")
            stopped.stop()
        assert soon(lambda: bool(engine.metrics()["memory"]["state_bytes"] == start))
