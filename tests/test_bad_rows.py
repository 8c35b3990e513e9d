"""What a source cannot take: rows without a time, or far in the future, and batches of another schema."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal

import pyarrow as pa
import pytest

import penstock as ps

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")

SCHEMA = {"t": "int64", "v": "int64"}
BOUND = ps.stream(SCHEMA, time="t", delay=2, max_ahead=50)
UNBOUND = ps.stream(SCHEMA, time="t", delay=2)
TYPES = ["int64", "int16", "uint8", "timestamp[ms]", "date32"]


def counts(stream: ps.Stream) -> ps.Stream:
    return stream.window(ps.tumbling(10)).agg(n=ps.count(), total=ps.sum("v"))


def table(*rows: tuple[int | None, int]) -> pa.Table:
    return pa.table(
        {"t": pa.array([t for t, _ in rows], pa.int64()), "v": pa.array([v for _, v in rows], pa.int64())}
    )


def of_windows(rows: list[dict[str, Any]]) -> dict[int, tuple[int, int]]:
    return {row["window_start"]: (row["n"], row["total"]) for row in rows}


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("memory", ["blocks", "queue"])
def test_rows_without_a_time_and_rows_far_ahead_are_left_out(
    workers: int, memory: Literal["blocks", "queue"]
) -> None:
    data = [table((1, 1), (None, 10)), table((1_000_000, 100), (4, 2)), table((12, 3), (None, 20), (13, 4))]
    result = counts(BOUND).run(data, on_error="skip", workers=workers, memory=memory)
    assert of_windows(result.to_pylist()) == {0: (2, 3), 10: (2, 7)}
    assert (result.rows_in, result.rows_rejected, result.rows_late) == (7, 3, 0)
    assert result.metrics()["rows_contributed"] == 4


def test_the_error_names_the_row_its_time_and_the_watermark() -> None:
    stream = ps.stream({"at": "timestamp[ms]"}, time="at", delay="2s", max_ahead="1h")
    at = pa.array([0, 1000, 4_000_000_000_000], pa.timestamp("ms"))
    with pytest.raises(ps.TimeAheadError) as caught:
        stream.run(pa.table({"at": at}))
    assert caught.value.row == 2
    for part in ('row 2: column "at" is 2096-10-02', "ahead of the watermark 1969-12-31T23:59:59", "=1h"):
        assert part in str(caught.value)
    with pytest.raises(ps.NullTimeError) as null:
        stream.run(pa.table({"at": pa.array([None], pa.timestamp("ms"))}))
    assert null.value.row == 0


@pytest.mark.parametrize("workers", [1, 4])
def test_dead_letters_carry_the_row_the_column_and_the_reason(workers: int) -> None:
    letters: list[dict[str, Any]] = []
    plan = counts(BOUND)
    wrong = pa.table({"t": [1], "x": ["?"]})
    data = [table((1, 1), (None, 10)), wrong, table((60, 100), (4, 2))]
    result = plan.run(data, on_error=lambda batch: letters.extend(batch.to_pylist()), workers=workers)
    assert of_windows(result.to_pylist()) == {0: (2, 3)}
    assert result.rows_rejected == 3
    assert [(row["t"], row.get("v"), row["rejected_by"]) for row in letters] == [
        (None, 10, "stream"),
        (1, None, "stream"),
        (60, 100, "stream"),
    ]
    reasons = [row["rejected_because"] for row in letters]
    assert reasons[0] == 'column "t" is null: the row has no time'
    assert 'column "v" of the declared schema is missing' in reasons[1]
    assert reasons[2] == (
        'column "t" is 60, which is 61 units ahead of the watermark -1, more than max_ahead=50 units'
    )


@pytest.mark.parametrize("name", TYPES)
def test_times_of_every_type_are_bounded(name: str) -> None:
    stream = ps.stream({"t": name}, time="t", max_ahead=100 if name != "date32" else "100d")
    kinds = {
        "int64": pa.int64(), "int16": pa.int16(), "uint8": pa.uint8(),
        "timestamp[ms]": pa.timestamp("ms"), "date32": pa.date32(),
    }  # fmt: skip
    if name == "timestamp[ms]":
        stream = ps.stream({"t": name}, time="t", max_ahead="100ms")
    times = pa.array([1, 102, None, 101, 201, 202], pa.int32())
    wide = times.cast(pa.int64()) if name == "timestamp[ms]" else times
    data = pa.table({"t": wide.cast(kinds[name])})
    result = stream.run(data, on_error="skip")
    assert result.rows_rejected == 2
    back = pa.int64() if name == "timestamp[ms]" else pa.int32()
    assert pa.table(result).column("t").cast(back).to_pylist() == [1, 101, 201, 202]


class Shared:
    """An engine with a shared source that is pushed to, and two queries that read it."""

    def __init__(self, engine: ps.Engine, stream: ps.Stream, on_error: Any, **options: Any) -> None:
        self.feed = ps.PushSource(capacity=64)
        self.source = engine.source(stream, self.feed, on_error=on_error, hold=True, **options)
        plan = self.source.stream
        self.all = engine.submit(plan, source=self.source, sink="collect")
        self.counts = engine.submit(counts(plan), source=self.source, sink="collect")
        self.source.start()


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_a_shared_source_goes_on_behind_bad_rows(mode: Literal["state", "threads"]) -> None:
    letters: list[dict[str, Any]] = []
    for on_error in ("skip", lambda batch: letters.extend(batch.to_pylist())):
        with ps.Engine(workers=2, mode=mode) as engine:
            shared = Shared(engine, UNBOUND, on_error, max_ahead=50)
            with shared.feed as feed:
                for rows in [((1, 1), (None, 10)), ((1_000_000, 100), (4, 2)), ((12, 3),)]:
                    feed.push(table(*rows))
            assert sorted(row["v"] for row in shared.all.result().to_pylist()) == [1, 2, 3]
            assert of_windows(shared.counts.result().to_pylist()) == {0: (2, 3), 10: (1, 3)}
            metrics = shared.source.metrics()
            assert (metrics["rows_in"], metrics["rows_rejected"]) == (5, 2)
            assert shared.all.metrics()["rows_in"] == 3
            assert "2" in repr(shared.source)
    assert [(row["t"], row["v"]) for row in letters] == [(None, 10), (1_000_000, 100)]


def test_a_shared_source_fails_by_default_and_says_why() -> None:
    with ps.Engine(workers=1, mode="state") as engine:
        shared = Shared(engine, BOUND, "fail")
        shared.feed.push(table((1, 1), (1_000, 2)))
        with pytest.raises(ps.SourceEndedError) as caught:
            shared.all.result()
        assert isinstance(caught.value.__cause__, ps.TimeAheadError)
        assert isinstance(shared.source.error, ps.TimeAheadError)
        with pytest.raises(ps.SourceEndedError):
            shared.counts.result()


def test_batches_of_another_schema_from_an_iterable_are_rejected_whole() -> None:
    wrong = pa.table({"t": ["1", "2"], "v": [1, 2]})
    with ps.Engine(workers=1, mode="state") as engine:
        source = engine.source(UNBOUND, [table((1, 1)), wrong, table((2, 2))], on_error="skip")
        query = engine.submit(source.stream, source=source, sink="collect")
        assert len(query.result()) == 2
        assert source.metrics()["rows_rejected"] == 2
        assert source.metrics()["batches_in"] == 3


def raising(batch: ps.Batch) -> None:
    raise LookupError("no letters here")


def test_what_a_function_for_dead_letters_raises_ends_the_source() -> None:
    with ps.Engine(workers=1, mode="state") as engine:
        shared = Shared(engine, UNBOUND, raising)
        shared.feed.push(table((None, 1)))
        with pytest.raises(ps.SourceEndedError) as caught:
            shared.all.result()
        assert isinstance(caught.value.__cause__, LookupError)
        with pytest.raises(ps.SourceEndedError):
            shared.counts.result()


def test_a_push_of_another_schema_raises_there_and_nothing_is_lost() -> None:
    wrong = pa.table({"t": [1]})
    with ps.Engine(workers=1, mode="state") as engine:
        feed = ps.PushSource(capacity=1)
        query = engine.submit(UNBOUND, source=feed, sink="collect")
        feed.push(table((1, 1)))
        for bad in (wrong, pa.table({"t": ["1"], "v": [1]})):
            with pytest.raises(ps.SchemaMismatchError, match='column "[tv]"') as caught:
                feed.push(bad)
            assert caught.value.column in "tv"
        feed.push(table((2, 2)))
        feed.close()
        assert query.result().to_pylist() == [{"t": 1, "v": 1}, {"t": 2, "v": 2}]

        shared = Shared(engine, UNBOUND, "fail")
        with pytest.raises(ps.SchemaMismatchError):
            shared.feed.push(wrong)
        shared.feed.push(table((1, 1)))
        shared.feed.close()
        assert len(shared.all.result()) == 1
        assert shared.counts.wait()


def test_a_push_of_another_schema_before_the_query_raises_at_submit() -> None:
    with ps.Engine(workers=1, mode="state") as engine:
        early, other = ps.PushSource(), ps.PushSource()
        early.push(table((1, 1)))
        other.push(table((1, 1)))
        strings = ps.stream({"t": "string"})
        with pytest.raises(ps.SchemaMismatchError, match="batch 0"):
            engine.submit(strings, source=early)
        with pytest.raises(ps.SchemaMismatchError, match="batch 0"):
            engine.source(strings, early)
        both = ps.stream(SCHEMA, name="a").union(ps.stream({"t": "int64", "v": "int64"}, name="b"))
        wrong = ps.outputs(a=ps.stream(SCHEMA, name="a"), b=ps.stream({"t": "string"}, name="b"))
        with pytest.raises(ps.SchemaMismatchError, match="batch 0"):
            engine.submit(wrong, source={"a": early, "b": other})
        early.push(table((2, 2)))
        query = engine.submit(both, source={"a": early, "b": other}, sink="collect")
        early.close()
        other.close()
        assert sorted(row["t"] for row in query.result().to_pylist()) == [1, 1, 2]


def test_slow_letters_do_not_put_the_blame_on_a_query() -> None:
    """A source that waits for its own dead letters does not fail the query that reads it."""
    go = threading.Event()
    with ps.Engine(workers=2, mode="state") as engine:
        feed = ps.PushSource(capacity=512)
        source = engine.source(UNBOUND, feed, on_error=lambda batch: go.wait(60), hold=True)
        query = engine.submit(source.stream, source=source, sink="collect", on_lag="fail")
        source.start()
        for number in range(200):
            feed.push(table((number, number), (None, 0)))
        while source.metrics()["blocked_by"] != "on_error function":
            pass
        go.set()
        feed.close()
        assert len(query.result()) == 200


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ps.stream(SCHEMA, max_ahead=5), ps.MissingTimeColumnError, "max_ahead"),
        (lambda: ps.stream(SCHEMA, time="t", delay=5, max_ahead=5), ps.DurationError, "more than the delay"),
        (lambda: ps.stream(SCHEMA, time="t", max_ahead=0), ps.DurationError, "more than the delay"),
        (lambda: ps.stream(SCHEMA, time="t", max_ahead="1h"), ps.DurationError, "1h"),
        (lambda: ps.stream(SCHEMA, time=ps.ingestion_time("at"), max_ahead="1h"), ps.PlanError, "clock"),
    ],
)
def test_bounds_that_cannot_be(make: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_the_bound_is_part_of_the_plan() -> None:
    assert "at most 50 units ahead" in BOUND.explain()
    assert ps.Stream.from_json(BOUND.to_json()) == BOUND
    assert BOUND != UNBOUND
    with ps.Engine(workers=1, mode="state") as engine:
        with pytest.raises(ps.PlanError, match="max_ahead"):
            engine.source(BOUND, ps.PushSource(), max_ahead=3)
        feed = ps.PushSource()
        source = engine.source(UNBOUND, feed, max_ahead=50)
        engine.submit(UNBOUND, source=source, sink="discard")
        engine.submit(BOUND, source=source, sink="discard")
        with pytest.raises(ps.PlanError, match="max_ahead"):
            engine.submit(ps.stream(SCHEMA, time="t", delay=2, max_ahead=7), source=source)


def test_a_replay_goes_on_from_round_to_round_by_the_rows_that_are_taken() -> None:
    data = table((1, 1), (None, 10), (1_000_000, 100), (5, 2))
    with ps.Engine(workers=1, mode="state") as engine:
        query = engine.submit(BOUND, source=ps.replay(data, rounds=3), sink="collect", on_error="skip")
        rows = query.result()
        assert sorted(row["t"] for row in rows.to_pylist()) == [1, 5, 6, 10, 11, 15]
        assert rows.rows_rejected == 6
