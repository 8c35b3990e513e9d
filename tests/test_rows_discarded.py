"""How many rows are lost when the block of an engine is left: those in open windows, too."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock import col

TIMED = ps.stream({"t": "int64", "k": "int64"}, time="t")


def rows(*times: int) -> pa.Table:
    return pa.table({"t": pa.array(times, "int64"), "k": pa.array([t % 3 for t in times], "int64")})


def is_at_rest(query: ps.Query, pushed: int) -> bool:
    """Whether its tasks have taken in everything that was pushed."""
    metrics = query.metrics()
    return metrics["rows_in"] == pushed and not any(task["pending_rows"] for task in metrics["tasks"])


def leave(
    plan: ps.Stream, batches: list[pa.Table], *, rests: bool = True, parallelism: int = 1, **options: Any
) -> list[str]:
    """What is said when the block is left with the query at work, at rest or not."""
    feed = ps.PushSource(capacity=len(batches) + 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ps.Engine(workers=2, **options) as engine:
            query = engine.submit(plan, source=feed, sink="discard", name="windows", parallelism=parallelism)
            for batch in batches:
                assert feed.push(batch)
            while rests and not is_at_rest(query, sum(batch.num_rows for batch in batches)):
                pass
    return [str(warning.message) for warning in caught]


# Each with what it holds of ten rows that lie in its first window.
HELD: dict[str, tuple[ps.Stream, str]] = {
    "tumbling": (TIMED.window(ps.tumbling(100), by="k").agg(n=ps.count()), "10 rows (10 in open windows)"),
    "no key": (TIMED.window(ps.tumbling(100)).agg(n=ps.count()), "10 rows (10 in open windows)"),
    "sliding": (TIMED.window(ps.sliding(100, 10)).agg(n=ps.count()), "10 rows (10 in open windows)"),
    "filtered": (
        TIMED.filter(col("t") < 4).window(ps.tumbling(100), by="k").agg(n=ps.count()),
        "4 rows (4 in open windows)",
    ),
    "lateness": (
        TIMED.window(ps.tumbling(100), by="k", allowed_lateness=50).agg(n=ps.count()),
        "10 rows (10 in open windows)",
    ),
    "sessions": (TIMED.window(ps.session(50), by="k").agg(n=ps.count()), "3 open sessions"),
    "top-k": (TIMED.window(ps.tumbling(100), by="k").top_k(2, "t"), "10 rows (10 in open windows)"),
    "join": (TIMED.join(TIMED, on="k", window=ps.tumbling(100)), "20 rows (20 in open windows)"),
}


@pytest.mark.parametrize("mode", ["state", "threads"])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("kind", HELD)
def test_what_is_in_open_windows_is_told(kind: str, parallelism: int, mode: Any) -> None:
    plan, told = HELD[kind]
    said = leave(plan, [rows(*range(5)), rows(*range(5, 10))], parallelism=parallelism, mode=mode)
    assert len(said) == 1
    assert said[0].startswith(f'leaving the engine has discarded {told} of "windows", which still ran')


@pytest.mark.parametrize("parallelism", [1, 3])
def test_windows_that_have_left_are_not_told(parallelism: int) -> None:
    plan = TIMED.window(ps.tumbling(100), by="k", allowed_lateness=50).agg(n=ps.count())
    said = leave(plan, [rows(*range(10)), rows(120, 130), rows(510)], parallelism=parallelism)
    assert len(said) == 1
    assert "discarded 1 row (1 in open windows) of" in said[0]


def test_a_row_is_told_of_once_wherever_it_is_when_the_block_is_left() -> None:
    """Some wait for the source, some for the windows, some are in them, or on their way."""
    plan = TIMED.window(ps.tumbling(10**9), by="k").agg(n=ps.count())
    for attempt in range(30):
        batches = [rows(*range(start, start + 100)) for start in range(0, 100 * (attempt + 1), 100)]
        ways: list[dict[str, Any]] = [
            {"mode": "state"},
            {"mode": "threads"},
            {"mode": "state", "chain": "off"},
        ]
        for options in ways:
            said = leave(plan, batches, rests=False, **options)
            assert len(said) == 1
            assert f"discarded {100 * (attempt + 1):,} rows" in said[0]


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_what_lanes_hand_over_is_no_row(mode: Any) -> None:
    """Lanes hand over states at a watermark, empty or not; some are on their way when the block is left."""
    plan = TIMED.window(ps.tumbling(100), by="k").agg(n=ps.count())
    for _ in range(100):
        said = leave(plan, [rows(*range(10))], parallelism=3, mode=mode)
        assert len(said) == 1
        assert "discarded 10 rows (10 in open windows) of" in said[0]


def open_rows(times: list[int], size: int) -> tuple[int, int]:
    """How many of these rows are in windows that have closed behind the last of them, and in open ones."""
    ends: list[int] = []
    latest = -1
    for time in times:
        end = time - time % size + size
        if end > latest:  # or else it is late
            ends.append(end)
        latest = max(latest, time)
    closed = sum(end <= latest for end in ends)
    return closed, len(ends) - closed


@given(batches=st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=20), min_size=1, max_size=6))
def test_every_row_of_an_open_window_is_told_of(batches: list[list[int]]) -> None:
    counted: list[int] = []

    def sink(batch: ps.Batch) -> None:
        counted.extend(row["n"] for row in batch.to_pylist())

    feed, times = ps.PushSource(capacity=len(batches)), [time for batch in batches for time in batch]
    closed, still_open = open_rows(times, 50)
    plan = TIMED.window(ps.tumbling(50), by="k").agg(n=ps.count())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ps.Engine(workers=2) as engine:
            query = engine.submit(plan, source=feed, sink=sink)
            for batch in batches:
                assert feed.push(rows(*batch))
            while not is_at_rest(query, len(times)) or sum(counted) < closed:
                pass
    messages = [str(one.message) for one in caught if one.category is ps.RowsDiscardedWarning]
    told = [int(number) for one in messages for number in re.findall(r"discarded (\d+) row", one)]
    assert (sum(counted), sum(told)) == (closed, still_open)
