"""Watermarks that a function says, batch by batch."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

START = datetime(2026, 1, 1, tzinfo=UTC)


def batch(*times: int) -> pa.Table:
    return pa.table({"t": pa.array(times, "int64")})


def latest_so_far(lag: int) -> Any:
    seen: list[int] = []

    def watermark(batch: ps.Batch) -> int | None:
        seen.extend(row["t"] for row in batch.to_pylist())
        return max(seen) - lag if seen else None

    return watermark


def counts(stream: ps.Stream) -> ps.Stream:
    return stream.window(ps.tumbling(10)).agg(n=ps.count())


def as_dict(rows: list[dict[str, Any]]) -> dict[int, int]:
    return {row["window_start"]: row["n"] for row in rows}


@pytest.mark.parametrize("chain", ["auto", "off"])
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_are_judged_by_what_was_said_of_the_batches_before(chain: Any, workers: int) -> None:
    stream = ps.stream({"t": "int64"}, time="t", watermark=latest_so_far(5))
    with pytest.warns(ps.LateRowsWarning):
        result = counts(stream).run([batch(1, 30, 2), batch(3, 31)], chain=chain, workers=workers)
    # In its own batch 2 is not late, although 30 came before it; 3 is: event time has come to 25.
    assert (as_dict(result.to_pylist()), result.rows_late) == ({0: 2, 30: 2}, 1)


def test_an_empty_batch_may_bring_news() -> None:
    marks = iter([None, 10])
    stream = ps.stream({"t": "int64"}, time="t", watermark=lambda batch: next(marks))
    feed = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        query = engine.submit(counts(stream), source=feed)
        assert feed.push(batch(1, 50))
        assert feed.push(batch())
        assert as_dict(next(query.results()).to_pylist()) == {0: 1}


def test_batches_that_came_before_the_query_are_asked_about() -> None:
    feed = ps.PushSource()
    assert feed.push(batch(1, 30))
    assert feed.push(batch(2))
    with ps.Engine(workers=1) as engine:
        stream = ps.stream({"t": "int64"}, time="t", watermark=latest_so_far(0))
        query = engine.submit(counts(stream), source=feed, sink="collect")
        feed.close()
        result = query.result()
        assert (as_dict(result.to_pylist()), result.rows_late) == ({0: 1, 30: 1}, 1)


def test_a_replay_is_marked_round_by_round() -> None:
    stream = ps.stream({"t": "int64"}, time="t", watermark=lambda batch: 8)
    with ps.Engine(workers=1) as engine:
        source = ps.replay(batch(1, 9), rounds=3)
        result = engine.submit(counts(stream), source=source, sink="collect").result()
    assert sum(row["n"] for row in result.to_pylist()) + result.rows_late == 6


def test_datetimes_are_taken_for_timestamps() -> None:
    stream = ps.stream(
        {"t": "timestamp[ms, tz=UTC]"}, time="t", watermark=lambda batch: START + timedelta(seconds=30)
    )
    times = pa.array([START, START + timedelta(seconds=1)], pa.timestamp("ms", "UTC"))
    late = pa.array([START + timedelta(seconds=2)], pa.timestamp("ms", "UTC"))
    plan = stream.window(ps.tumbling("10s")).agg(n=ps.count())
    with pytest.warns(ps.LateRowsWarning):
        result = plan.run([pa.table({"t": times}), pa.table({"t": late})])
    assert (result.rows_out, result.rows_late) == (1, 1)


def test_what_the_function_raises_comes_out_of_whoever_brings_the_batch() -> None:
    def refuse(batch: ps.Batch) -> int:
        raise ZeroDivisionError("no time for this")

    stream = ps.stream({"t": "int64"}, time="t", watermark=refuse)
    with pytest.raises(ZeroDivisionError, match="no time"):
        counts(stream).run(batch(1))
    with pytest.raises(ZeroDivisionError, match="no time"):
        counts(stream).run(iter([batch(1)]))
    with ps.Engine(workers=1) as engine:
        feed = ps.PushSource()
        query = engine.submit(counts(stream), source=feed, sink="collect")
        with pytest.raises(ZeroDivisionError, match="no time"):
            feed.push(batch(1))
        assert query.status == "running", "the batch was not taken, and nothing else has happened"
        feed.close()
        assert query.result().rows_in == 0
        pulled = engine.submit(counts(stream), source=[batch(1)])
        with pytest.raises(ZeroDivisionError, match="no time"):
            pulled.wait()


def test_what_is_no_time_is_refused() -> None:
    stream = ps.stream({"t": "int64"}, time="t", watermark=lambda batch: "soon")  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="whole number"):
        counts(stream).run(batch(1))


def test_arguments_are_checked() -> None:
    with pytest.raises(ps.PlanError, match="delay"):
        ps.stream({"t": "int64"}, time="t", delay=5, watermark=latest_so_far(0))
    with pytest.raises(ps.MissingTimeColumnError):
        ps.stream({"t": "int64"}, watermark=latest_so_far(0))
    with pytest.raises(TypeError, match="watermark"):
        ps.stream({"t": "int64"}, time="t", watermark=5)  # type: ignore[arg-type]
    stream = ps.stream({"t": "int64"}, time="t", watermark=latest_so_far(0))
    assert "watermark()" in stream.explain()
    with pytest.raises(ps.PlanError, match="cannot be written"):
        stream.to_json()
