"""Between two rows of a replay at a rate, its source is quiet: it falls idle, and windows close."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference.live import SCHEMA, batch, comes_to, soon
from reference.watchdog import watched

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEN = ps.tumbling(10)
ENGINES: list[dict[str, Any]] = [
    {"workers": 1},
    {"workers": 2},
    {"workers": 2, "chain": "off"},
    {"mode": "threads"},
]
"""With two workers and chains, the windows of a replay are those of several lanes."""


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
@pytest.mark.parametrize("options", ENGINES, ids=str)
@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "shared"])
def test_a_replay_falls_idle_before_its_next_row(is_shared: bool, options: dict[str, Any]) -> None:
    clock = ps.ManualClock(NOON)
    slow = ps.stream(SCHEMA, time="t", name="slow", idle_after="10s")
    pushed = ps.stream(SCHEMA, time="t", name="pushed")
    left = slow.window(TEN, by="k").agg(m=ps.count())
    right = pushed.window(TEN, by="k").agg(n=ps.count())
    with ps.Engine(clock=clock, **options) as engine, watched(engine) as queries:
        # The first row is due in a quarter of an hour.
        replay = ps.replay(pa.Table.from_batches([batch(1, 2)]), rate=0.001)
        source = ps.PushSource()
        query = engine.submit(
            left.join(right, on="k", window=TEN, how="full"),
            source={"slow": engine.source(slow, replay) if is_shared else replay, "pushed": source},
            sink="discard",
        )
        queries.append(query)
        assert source.push(batch(5, 95))
        assert comes_to(query, "rows_in", 2)
        assert query.metrics()["rows_out"] == 0

        def is_out() -> bool:
            clock.advance(timedelta(seconds=10))
            return int(query.metrics()["rows_out"]) == 1

        assert soon(is_out), "the next row is waited for"


@pytest.mark.parametrize("options", ENGINES, ids=str)
@pytest.mark.parametrize("arrival", [ps.ingestion_time, ps.processing_time])
def test_windows_of_arrival_close_before_the_next_row(arrival: Any, options: dict[str, Any]) -> None:
    clock = ps.ManualClock(NOON)
    stream = ps.stream({"k": "int64"}, time=arrival("at"))
    plan = stream.window(ps.tumbling("10s"), by="k").agg(n=ps.count())
    with ps.Engine(clock=clock, **options) as engine, watched(engine) as queries:
        query = engine.submit(
            plan, source=ps.replay(pa.table({"k": [1]}), rate=1.0, rounds=None), sink="discard"
        )
        queries.append(query)
        # A row each second. Should the machine stop for so long, the next one tells as much.
        for row in range(1, 11):
            assert comes_to(query, "rows_in", row)
            clock.advance(timedelta(seconds=10))
            assert soon(lambda: query.metrics()["rows_out"] >= row or query.metrics()["rows_in"] > row)  # noqa: B023
            metrics = query.metrics()
            if (metrics["rows_in"], metrics["rows_out"]) == (row, row):
                return
        pytest.fail("no window has ever closed before the next row came")
