"""Queries of an engine: how they run, end and fail, and what they say of themselves."""

from __future__ import annotations

import json
import pickle
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from penstock.plan.options import read_options
from reference.live import COUNTS, HANG_SECONDS, SCHEMA, STREAM, batch, comes_to, rows, soon

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")


def test_a_query_runs_to_its_end(engine: ps.Engine) -> None:
    query = engine.submit(COUNTS, source=[batch(1, 2), batch(11)], name="counts")
    assert query.name == "counts"
    assert query.schema.names == ["window_start", "window_end", "k", "n"]
    assert [row["n"] for row in rows(query)] == [2, 1]
    assert query.wait(HANG_SECONDS)
    assert query.status == "finished"
    assert query.error is None
    metrics = query.metrics()
    assert (metrics["rows_in"], metrics["rows_contributed"], metrics["rows_out"]) == (3, 3, 2)
    assert list(query) == [], "results are read once"


def test_many_queries_at_a_time(engine: ps.Engine) -> None:
    queries = [
        engine.submit(STREAM.filter(col("k") == key), source=[batch(1, 2, key=key)] * 5, sink="collect")
        for key in range(20)
    ]
    assert [len(query.result()) for query in queries] == [10] * 20
    assert len({query.name for query in queries}) == 20
    assert engine.queries == ()


def test_queries_that_run_are_listed_and_found(engine: ps.Engine) -> None:
    sources = [ps.PushSource() for _ in range(3)]
    queries = [engine.submit(STREAM, source=source, name=f"q{i}") for i, source in enumerate(sources)]
    assert engine.queries == tuple(queries)
    assert engine.query("q1") is queries[1]
    queries[1].stop()
    assert engine.queries == (queries[0], queries[2])
    assert engine.query("q1") is queries[1]  # it was not dropped
    with pytest.raises(KeyError, match=r"there is no query named 'q7'; there are \['q0', 'q2', 'q1'\]"):
        engine.query("q7")
    assert "q0" in repr(engine)
    assert "q2" in engine._repr_html_()
    assert "running" in repr(queries[0])
    assert "<table" in queries[0]._repr_html_()


def test_stop_ends_a_query_now_and_drain_lets_it_finish(engine: ps.Engine) -> None:
    sources = [ps.PushSource(), ps.PushSource()]
    stopped, drained = (engine.submit(COUNTS, source=source, sink="collect") for source in sources)
    for source in sources:
        assert source.push(batch(1, 2, 3))
    stopped.stop()
    drained.stop(drain=True)
    assert (stopped.status, drained.status) == ("stopped", "finished")
    assert rows([drained.result()]) == [{"window_start": 0, "window_end": 10, "k": 1, "n": 3}]
    assert stopped.wait()
    assert stopped.error is None
    with pytest.raises(ps.QueryStoppedError):
        stopped.result()
    for query in (stopped, drained):
        query.stop()
        query.stop(drain=True)


def test_the_results_of_a_stopped_query_just_end(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source)
    source.push(batch(1))
    results = query.results()
    assert next(results).num_rows == 1
    threading.Timer(0.05, query.stop).start()
    assert list(results) == []
    assert list(query.results()) == []


def test_wait_gives_up_in_time(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source)
    before = time.monotonic()
    assert not query.wait(0.05)
    assert not query.wait(0)
    assert not query.wait(-1)
    assert time.monotonic() - before < HANG_SECONDS
    with pytest.raises(ValueError, match="nan"):
        query.wait(float("nan"))


def test_a_result_is_the_same_each_time_and_counts_all_rows(engine: ps.Engine) -> None:
    query = engine.submit(COUNTS, source=[batch(5), batch(25), batch(3)], sink="collect")
    first, second = query.result(), query.result()
    assert first.to_pylist() == second.to_pylist()
    metrics = first.metrics()
    assert (metrics["rows_in"], metrics["rows_contributed"], metrics["rows_late"]) == (3, 2, 1)
    assert metrics["rows_shed"] == 0
    assert metrics["seconds"] > 0
    assert set(metrics["event_latency"]) == set(metrics["output_latency"])


def test_an_engine_that_was_stopped_takes_nothing() -> None:
    engine = ps.Engine(workers=1)
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source)
    engine.stop()
    engine.stop()
    assert query.status == "stopped"
    with pytest.raises(ps.EngineStoppedError):
        engine.submit(STREAM, source=[])
    with pytest.raises(ps.EngineStoppedError):
        engine.source(STREAM, [])
    assert engine.queries == ()
    assert "0 queries run" in repr(engine)


def test_names_are_taken_while_a_query_runs(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source, name="one")
    with pytest.raises(ps.NameTakenError) as caught:
        engine.submit(STREAM, source=[], name="one")
    assert caught.value.name == "one"
    assert pickle.loads(pickle.dumps(caught.value)).name == "one"
    query.stop()
    engine.submit(STREAM, source=[], name="one", sink="discard").wait()


def test_an_engine_that_nobody_holds_is_kept_by_its_queries() -> None:
    query = ps.Engine(workers=1).submit(COUNTS, source=[batch(1)], sink="collect")
    assert len(query.result()) == 1


def test_a_failure_that_nobody_looked_at_is_a_warning() -> None:
    engine = ps.Engine(workers=1)
    engine.submit(STREAM, source=pa.table({"t": [1]}), name="bad")
    assert soon(lambda: engine.queries == ())
    engine.submit(STREAM, source=[], sink="discard").wait()
    with pytest.warns(ps.QueryFailedWarning, match='"bad" failed.*SchemaMismatchError') as caught:
        engine.stop()
    assert caught[0].filename == __file__


def test_a_failure_that_was_looked_at_is_none() -> None:
    looks: list[Callable[[ps.Query], object]] = [
        lambda query: query.error,
        lambda query: list(query),
        lambda query: query.wait(),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ps.Engine(workers=1) as engine:
            for look in looks:
                query = engine.submit(STREAM, source=pa.table({"t": [1]}))
                assert soon(lambda query=query: query.status == "failed")  # type: ignore[misc]
                with suppress(ps.SchemaMismatchError):
                    look(query)


def test_one_failure_leaves_the_others_alone(engine: ps.Engine) -> None:
    source = ps.PushSource()
    good = engine.submit(STREAM, source=source, sink="collect")
    bad = engine.submit(STREAM.select(x=col("t") // (col("k") - 1)), source=[batch(1)], sink="collect")
    with pytest.raises(ps.ComputeError):
        bad.result()
    source.push(batch(1))
    source.close()
    assert len(good.result()) == 1


def test_metrics_are_plain_values(engine: ps.Engine) -> None:
    query = engine.submit(COUNTS, source=[batch(*range(100))], sink="discard")
    query.wait()
    metrics = engine.metrics()
    json.dumps([metrics, query.metrics()])
    assert set(metrics) >= {
        "seconds", "queries", "tasks", "workers", "scheduling_share", "epochs", "planning_seconds", "memory",
        "process",
    }  # fmt: skip
    assert set(metrics["process"]) == {"cpu_seconds", "minor_faults", "major_faults", "resident_bytes"}
    assert metrics["memory"].keys() == STREAM.run([]).memory.keys()
    for worker in metrics["workers"]:
        assert set(worker) == {"runs", "busy_seconds", "parked_seconds", "overhead_seconds", "parks"}
    found = query.metrics()
    assert set(found["event_latency"]) == {
        "count", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms",
    }  # fmt: skip
    assert found["event_latency"]["p50_ms"] <= found["event_latency"]["max_ms"]
    assert {"name", "rows_in", "rows_out", "runs", "seconds"} == set(found["operators"][0])
    assert {"name", "pending_rows", "signals", "runs", "seconds", "blocked_seconds", "time_share", "cost_ns",
            "selectivity"} == set(found["tasks"][0])  # fmt: skip


def test_overhead_does_not_count_the_run_of_the_moment(engine: ps.Engine) -> None:
    """Such time would be taken back when the run ends."""
    times = pa.array(range(1 << 16), pa.int64())
    endless = ps.replay(pa.table([times, times], schema=SCHEMA), rounds=None)
    query = engine.submit(COUNTS, source=endless, sink="discard")
    assert comes_to(query, "rows_in", 1_000_000)
    found = [engine.metrics()["workers"] for _ in range(2_000)]
    for worker in zip(*found, strict=True):
        for name in ("runs", "busy_seconds", "overhead_seconds"):
            values = [metrics[name] for metrics in worker]
            assert values == sorted(values), name


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("policy", "adaptiv", 'is "adaptive", "fcfs" or "rr", not "adaptiv"; did you mean "adaptive"?'),
        ("mode", "thread", 'is "state" or "threads", not "thread"; did you mean "threads"?'),
        ("workers", 0, "is from 1 to 64 workers, not 0"),
        ("workers", 65, "is from 1 to 64 workers, not 65"),
    ],
)
def test_options_that_cannot_be(option: str, value: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in (lambda **options: ps.Engine(**options), lambda **options: STREAM.run([], **options)):
        with pytest.raises(ps.PlanError) as caught:
            call(**{option: value})
        assert str(caught.value) == f"{option} {words}"
    monkeypatch.setenv(f"PENSTOCK_{option.upper()}", str(value))
    with pytest.raises(ps.PlanError) as caught:
        ps.Engine()
    assert str(caught.value) == f"PENSTOCK_{option.upper()} {words}"


@pytest.mark.parametrize("policy", ["adaptive", "fcfs", "rr"])
@pytest.mark.parametrize("workers", [1, 3])
def test_every_policy_gives_the_same_answer(
    policy: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [batch(*range(i, i + 100)) for i in range(0, 1000, 100)]
    expected = sorted(map(str, COUNTS.run(data).to_pylist()))
    for mode in ("state", "threads"):
        found = COUNTS.run(data, policy=policy, workers=workers, mode=mode, chain="off")
        assert sorted(map(str, found.to_pylist())) == expected
    monkeypatch.setenv("PENSTOCK_POLICY", policy)
    monkeypatch.setenv("PENSTOCK_WORKERS", str(workers))
    monkeypatch.setenv("PENSTOCK_MODE", "threads")
    options = read_options()
    assert (options.policy, options.workers, options.mode) == (policy, workers, "threads")
