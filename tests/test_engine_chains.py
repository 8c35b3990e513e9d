"""Queries that read other queries, when the block of their engine is left."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col

TIMED = ps.stream({"n": "int64"}, time="n")
BATCHES = 40


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, "int64")})


def push_all(feed: ps.PushSource) -> None:
    for n in range(BATCHES):
        assert feed.push(numbers(n))


def values(query: ps.Query) -> list[int]:
    """What a query gives that is read, or kept, when its engine is gone."""
    return sorted(row["n"] for row in pa.table(query).to_pylist())


@pytest.mark.parametrize("mode", ["state", "threads"])
@pytest.mark.parametrize("kind", ["query", "results", "collected", "shared"])
def test_draining_gives_a_chained_query_all_results_of_the_one_before(kind: str, mode: Any) -> None:
    """The windows of the first query close when it ends: all of its results come while it is drained."""
    feed = ps.PushSource(capacity=BATCHES)
    with ps.Engine(workers=2, mode=mode, on_exit="drain") as engine:
        windows = TIMED.window(ps.tumbling(1000), by="n").agg(count=ps.count())
        sink: Any = "collect" if kind == "collected" else None
        first = engine.submit(windows, source=feed, sink=sink)
        counts = ps.stream(first.schema)
        source: Any = first.results() if kind == "results" else first
        if kind == "shared":
            source = engine.source(counts, first)
        second = engine.submit(counts.filter(col("count") == 1), source=source)
        third = engine.submit(ps.stream(second.schema), source=second, sink="collect")
        push_all(feed)
    assert [query.status for query in (first, second, third)] == ["finished"] * 3
    assert values(third) == list(range(BATCHES))


@pytest.mark.parametrize("kind", ["query", "results", "shared"])
def test_a_reader_that_is_drained_leaves_what_it_has_not_taken(kind: str) -> None:
    """Each result is taken by the reader or can be read from the query before, whenever the drain comes."""
    for _ in range(40):
        feed = ps.PushSource(capacity=BATCHES)
        with ps.Engine(workers=2) as engine:
            first = engine.submit(TIMED, source=feed)
            source: Any = first.results() if kind == "results" else first
            shared = engine.source(TIMED, first) if kind == "shared" else None
            second = engine.submit(TIMED, source=source if shared is None else shared, sink="discard")
            push_all(feed)
            second.stop(drain=True)
            if shared is not None:
                shared.close()
                while shared.status == "running":
                    pass
            feed.close()
            left = sum(batch.num_rows for batch in first.results())
            taken = (second if shared is None else shared).metrics()["rows_in"]
            assert taken + left == BATCHES


def test_draining_ends_the_other_inputs_of_a_chained_query_where_they_stand() -> None:
    feeds = [ps.PushSource(capacity=BATCHES) for _ in range(3)]
    with ps.Engine(workers=2, on_exit="drain") as engine:
        held = engine.source(TIMED, feeds[0], hold=True)
        first = engine.submit(TIMED, source=held)
        streams = [ps.stream({"n": "int64"}, name=name) for name in ("chained", "pushed", "shared")]
        shared = engine.source(streams[2], feeds[2], hold=True)
        sources: dict[str, Any] = {"chained": first, "pushed": feeds[1], "shared": shared}
        plan = streams[0].union(streams[1], streams[2])
        both = engine.submit(plan, source=sources, sink="collect")
        for feed in feeds:
            push_all(feed)
    assert values(both) == sorted(list(range(BATCHES)) * 3)


def test_draining_one_engine_leaves_the_query_of_another_that_it_reads_at_work() -> None:
    feed = ps.PushSource(capacity=BATCHES)
    with ps.Engine(workers=1, on_exit="drain") as other:
        first = other.submit(TIMED, source=feed)
        with ps.Engine(workers=1, on_exit="drain") as engine:
            second = engine.submit(TIMED, source=first)
            assert feed.push(numbers(1))
            assert next(second.results()).to_pylist() == [{"n": 1}]
        assert (first.status, second.status) == ("running", "finished")


def test_draining_ends_a_chain_whose_first_query_fails_meanwhile() -> None:
    feed = ps.PushSource(capacity=BATCHES)

    def leave() -> ps.Query:
        with ps.Engine(workers=1, on_exit="drain") as engine:
            held = engine.source(TIMED, feed, hold=True)
            first = engine.submit(TIMED.with_columns(x=1 // col("n")), source=held)
            second = engine.submit(ps.stream(first.schema), source=first, sink="collect")
            push_all(feed)
        return second

    with pytest.warns(ps.QueryFailedWarning, match="division by zero"):
        second = leave()
    assert isinstance(second.error, ps.ComputeError)
