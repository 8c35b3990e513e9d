"""`first` and `last` go by time: where all rows of a window have the same time, there is neither."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col

TEN = ps.tumbling(10)
SCHEMA = {"t": "int64", "k": "string", "v": "int64"}
LEFT = ps.stream(SCHEMA, time="t", name="left")
RIGHT = ps.stream(SCHEMA, time="t", name="right")
JOINED = LEFT.join(RIGHT, window=TEN, on="k")
SUMS = LEFT.window(TEN, by="k").agg(v=ps.sum("v"))
COGROUPED = LEFT.cogroup(RIGHT, window=TEN, by="k").agg(left={"v": ps.sum("v")}, right={"n": ps.count()})
BEST = LEFT.window(TEN, by="k").top_k(2, "v")
SLIDING = LEFT.join(RIGHT, window=ps.sliding(10, 5), on="k")
RESULTS = {"join": JOINED, "window": SUMS, "cogroup": COGROUPED, "top_k": BEST}


def last_of(stream: ps.Stream, window: ps.Window = TEN) -> ps.Stream:
    return stream.window(window, by="k").agg(v=ps.last("v"))


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize(
    "window", [TEN, ps.tumbling(10, offset=3), ps.tumbling(7), ps.sliding(10, 2), ps.session(10)], ids=repr
)
def test_rows_of_one_time_have_no_last_one(kind: str, window: ps.Window) -> None:
    words = f"one time, the end of their window in the {kind} before.*longer than 10 units"
    with pytest.raises(ps.PlanError, match=r'last\(col\("v"\)\) has no meaning here.*' + words):
        last_of(RESULTS[kind], window)
    with pytest.raises(
        ps.PlanError, match=r'write min\(col\("v"\)\), or \.top_k\(1, column, smallest=True\)'
    ):
        RESULTS[kind].window(window).agg(n=ps.count(), v=ps.first("v"))


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize(
    "window", [ps.tumbling(11), ps.tumbling(20), ps.sliding(20, 10), ps.session(11)], ids=repr
)
def test_longer_windows_have_one(kind: str, window: ps.Window) -> None:
    assert "v" in last_of(RESULTS[kind], window).schema.names


BEHIND: dict[str, Callable[[], ps.Stream]] = {
    "filter": lambda: JOINED.filter(col("v") > 1),
    "select": lambda: JOINED.select("window_end", "k", "v"),
    "renamed": lambda: JOINED.rename(window_end="at"),
    "computed": lambda: JOINED.with_columns(v=col("v") * 2),
    "lookup": lambda: JOINED.lookup(pa.table({"k": ["a"], "w": [1]}), on="k"),
    "union": lambda: JOINED.select("window_end", "k", "v").union(SUMS.select("window_end", "k", "v")),
    "union with itself": lambda: JOINED.union(JOINED),
    "another window": lambda: JOINED.window(TEN, by="k").agg(v=ps.max("v")),
    "shorter steps": lambda: last_of(JOINED, ps.tumbling(20)).select("window_end", "k", "v"),
}


@pytest.mark.parametrize("name", BEHIND)
def test_steps_in_between_change_nothing(name: str) -> None:
    with pytest.raises(ps.PlanError, match="one time"):
        last_of(BEHIND[name]())


def test_both_sides_of_a_co_group_are_looked_at() -> None:
    grouped = SUMS.cogroup(RIGHT, window=TEN, by="k")
    assert grouped.agg(right={"v": ps.last("v")}).schema.names[-1] == "v"
    with pytest.raises(ps.PlanError, match="one time"):
        grouped.agg(left={"v": ps.last("v")})
    with pytest.raises(ps.PlanError, match="one time"):
        RIGHT.cogroup(SUMS, window=TEN, by="k").agg(right={"v": ps.first("v")})


def test_where_times_may_differ_they_decide() -> None:
    """Steps of sliding windows, unions of different windows, sessions, functions, and streams."""
    ended = SUMS.select("window_end", "k", "v")
    moved = LEFT.window(ps.tumbling(10, offset=5), by="k").agg(v=ps.sum("v")).select("window_end", "k", "v")
    sessions = LEFT.window(ps.session(3), by="k").agg(v=ps.sum("v"))
    for stream in (SLIDING, ended.union(moved), sessions, JOINED.map_batches(pa.table), LEFT):
        assert last_of(stream).schema.names[-1] == "v"
    with pytest.raises(ps.PlanError, match="longer than 5 units"):
        last_of(SLIDING, ps.tumbling(5))


def test_units_of_time_are_named() -> None:
    at = ps.stream({"t": "timestamp[ms]", "v": "int64"}, time="t")
    sums = at.window(ps.tumbling("1m")).agg(v=ps.sum("v"))
    with pytest.raises(ps.PlanError, match="longer than 1m there"):
        sums.window(ps.tumbling("30s")).agg(v=ps.last("v"))


def test_long_plans_are_looked_at_once() -> None:
    """Each union doubles the ways that rows come."""
    stream = SUMS
    for _ in range(60):
        stream = stream.union(stream)
    with pytest.raises(ps.PlanError, match="one time"):
        last_of(stream)
