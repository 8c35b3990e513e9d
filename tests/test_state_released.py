"""I11: dead keys leave. Keys that come once go through each operator that keeps state, and memory returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from reference.live import soon
from reference.options import ACCOUNT
from reference.sizes import SMALLER
from reference.watchdog import watched

KEYS = 50_000 // SMALLER
BATCH = 2_500
NEARLY = 256 * 1024
"""What may be left of the state, in bytes: 50,000 keys of any kind take several megabytes."""

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


def batch(first: int, rows: int, time: int, spread: int) -> pa.Table:
    """Keys that nobody has seen before; their times advance by one every `spread` rows."""
    numbers = range(first, first + rows)
    keys = [f"a key that comes but once, number {number}" for number in numbers]
    return pa.table({"t": [time + (n - first) // spread for n in numbers], "k": keys, "v": list(numbers)})


def batches() -> Iterator[pa.Table]:
    """Half of the keys in one window, all of them alive, and half as time goes on."""
    half = KEYS // 2
    for first in range(0, half, BATCH):
        yield batch(first, BATCH, 100, spread=BATCH)
    for first in range(half, KEYS, BATCH):
        yield batch(first, BATCH, 1000 + first, spread=1)


@pytest.mark.parametrize("name", PLANS)
def test_keys_that_come_once_leave_nothing_behind(name: str) -> None:
    plan = PLANS[name]
    with ps.Engine(workers=2, budget="256MiB") as engine, watched(engine, 60) as queries:
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
        for table in batches():
            push(table)
        assert most > start + 4 * NEARLY // SMALLER, "the keys were never there"
        # Time goes on with a row now and then, and nothing else is alive.
        for step in range(1, 11):
            push(batch(10**9 + step, 1, 10**6 * step, spread=1))
        assert soon(lambda: at_rest(query))
        returned = soon(lambda: state() <= start + 2 * NEARLY and at_rest(query))
        assert returned, f"{state()} bytes are left of {most}, and {start} were there before"
        account: dict[str, Any] = query.metrics()
        assert account["rows_late"] == 0
        assert query.status == "running"


def test_all_state_is_gone_when_a_query_has_ended() -> None:
    with ps.Engine(workers=2) as engine, watched(engine):
        start = engine.metrics()["memory"]["state_bytes"]
        for name, plan in PLANS.items():
            data = {stream: batch(0, BATCH, 0, spread=1) for stream in streams_of(name)}
            finished = engine.submit(plan, source=data, sink="discard")
            assert finished.wait(30)
            stopped = engine.submit(plan, source={stream: ps.PushSource() for stream in data}, sink="discard")
            stopped.stop()
        assert soon(lambda: bool(engine.metrics()["memory"]["state_bytes"] == start))
