"""What an engine says of its queries without being asked for each counter: warnings and tables."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from penstock.plan.options import Mode

TIMED = ps.stream({"t": "int64"}, time="t")
COUNTS = TIMED.window(ps.tumbling(10)).agg(n=ps.count())
# The rows of 3 and 5 come when their window has closed: 97 and 95 behind the watermark.
LATE = pa.table({"t": [1, 100, 3, 5]})
ON_TIME = pa.table({"t": [1, 3, 100]})
WORDS = "2 rows came after their windows had closed and did not count, out of 4; the latest lay 97 units"


def batches(table: pa.Table) -> list[pa.Table]:
    return [table.slice(row, 1) for row in range(len(table))]


def gathered(query: ps.Query) -> list[dict[str, object]]:
    return [row for batch in query for row in batch.to_pylist()]


@pytest.mark.parametrize("workers", [1, 4])
def test_a_query_warns_of_late_rows_where_its_result_is_taken(workers: int) -> None:
    with ps.Engine(workers=workers, mode="state") as engine:
        query = engine.submit(COUNTS, source=batches(LATE), sink="collect", name="counts")
        with pytest.warns(ps.LateRowsWarning, match=f'query "counts": {WORDS}') as caught:
            result = query.result()
        assert [warning.filename for warning in caught] == [__file__]
        assert result.rows_late == 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            query.result()  # once is enough
            query.wait()


def test_a_query_warns_of_late_rows_however_its_end_is_seen() -> None:
    with ps.Engine(workers=1, mode="state") as engine:
        waited = engine.submit(COUNTS, source=batches(LATE), sink="discard")
        with pytest.warns(ps.LateRowsWarning, match=WORDS) as caught:
            assert waited.wait()
        assert [warning.filename for warning in caught] == [__file__]

        iterated = engine.submit(COUNTS, source=batches(LATE))
        with pytest.warns(ps.LateRowsWarning, match=WORDS) as caught:
            assert len(gathered(iterated)) == 2
        assert [warning.filename for warning in caught] == [__file__]

        async def taken(query: ps.Query) -> int:
            return sum([batch.num_rows async for batch in query])

        awaited = engine.submit(COUNTS, source=batches(LATE))
        with pytest.warns(ps.LateRowsWarning, match=WORDS):
            assert asyncio.run(taken(awaited)) == 2

        feed = ps.PushSource()
        drained = engine.submit(COUNTS, source=feed, sink="discard")
        for batch in batches(LATE):
            feed.push(batch)
        with pytest.warns(ps.LateRowsWarning, match=WORDS) as caught:
            drained.stop(drain=True)
        assert [warning.filename for warning in caught] == [__file__]


def test_leaving_the_engine_warns_of_late_rows_that_nobody_has_heard_of() -> None:
    found: list[int] = []

    def use() -> None:
        with ps.Engine(workers=1, mode="state") as engine:
            engine.submit(COUNTS, source=batches(LATE), sink=lambda batch: found.append(batch.num_rows))
            engine.submit(COUNTS, source=batches(ON_TIME), sink="discard").wait()
            gc.collect()
            while len(found) < 1 or engine.queries:
                pass

    with pytest.warns(ps.LateRowsWarning, match=WORDS) as caught:
        use()
    assert [warning.filename for warning in caught] == [__file__]


def test_late_rows_that_somebody_reads_are_no_reason_to_warn() -> None:
    counts, late = COUNTS.split_late()
    both = ps.outputs(counts=counts, late=late)
    with ps.Engine(workers=1, mode="state") as engine:
        query = engine.submit(both, source=batches(LATE), sink="collect")
        assert query.wait()
        assert query.result("late").to_pylist() == [{"t": 3}, {"t": 5}]
        engine.submit(COUNTS, source=batches(ON_TIME), sink="discard").wait()


def test_late_rows_that_nobody_reads_are_told_of_beside_those_that_somebody_does() -> None:
    counts, late = COUNTS.split_late()
    others = TIMED.window(ps.tumbling(20)).agg(n=ps.count())
    plans = ps.outputs(counts=counts, late=late, others=others)
    with ps.Engine(workers=1, mode="state") as engine:
        query = engine.submit(plans, source=batches(LATE), sink="collect", name="both")
        with pytest.warns(ps.LateRowsWarning, match=f'query "both": {WORDS}'):
            assert query.wait()
        assert query.metrics()["rows_late"] == 4
    with pytest.warns(ps.LateRowsWarning, match=WORDS):
        results = plans.run(batches(LATE))
    assert results["late"].to_pylist() == [{"t": 3}, {"t": 5}]


def test_late_rows_of_a_shared_source_are_each_query_s_own() -> None:
    with ps.Engine(workers=2, mode="state") as engine:
        source = engine.source(TIMED, batches(LATE), hold=True)
        plan = source.stream
        all_rows = engine.submit(plan, source=source, sink="collect", name="all")
        counts = engine.submit(
            plan.window(ps.tumbling(10)).agg(n=ps.count()), source=source, sink="collect", name="counts"
        )
        source.start()
        assert len(all_rows.result()) == 4
        with pytest.warns(ps.LateRowsWarning, match=f'query "counts": {WORDS}'):
            counts.result()


def test_tables_say_what_became_of_rows() -> None:
    halves = ps.stream({"t": "int64", "v": "int64"}, time="t").with_columns(half=10 // col("v"))
    plan = halves.window(ps.tumbling(10)).agg(n=ps.count())
    data = pa.table({"t": [1, 100, 3, 101], "v": [1, 0, 1, 1]})
    with ps.Engine(workers=1, mode="state") as engine:
        query = engine.submit(plan, source=data, sink="discard", on_error="skip", name="halves")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.LateRowsWarning)
            assert query.wait()
        lines = repr(query).splitlines()
        names = lines[1].split("  ")
        assert [name.strip() for name in names if name.strip()] == [
            "name",
            "kind",
            "status",
            "rows in",
            "rows/s",
            "latency",
            "late",
            "shed",
            "rejected",
            "blocked by",
            "error",
        ]
        row = dict(zip(_columns(lines[1:3]), _cells(lines[1:4]), strict=True))
        assert (row["late"], row["shed"], row["rejected"], row["status"]) == ("1", "0", "1", "finished")
        assert "rejected" in query._repr_html_()


def test_results_that_were_rejected_are_in_the_table() -> None:
    plan = TIMED.window(ps.tumbling(10)).agg(n=ps.count()).with_columns(x=1 // (col("n") - 2))
    with ps.Engine(workers=1, mode="state") as engine:
        query = engine.submit(plan, source=ON_TIME, sink="discard", on_error="skip", name="counts")
        assert query.wait()
        assert query.metrics()["rejected_results"] == 1
        assert rows_of(engine)["counts"]["rejected"] == "1"


def _columns(lines: list[str]) -> list[str]:
    return _cut(lines[0], lines[1])


def _cells(lines: list[str]) -> list[str]:
    return _cut(lines[2], lines[1])


def _cut(line: str, rule: str) -> list[str]:
    """The cells of a line, by the dashes below the names."""
    cells, start = [], 0
    for dashes in rule.split("  "):
        cells.append(line[start : start + len(dashes)].strip())
        start += len(dashes) + 2
    return cells


def rows_of(engine: ps.Engine) -> dict[str, dict[str, str]]:
    """The table of an engine, by name."""
    lines = repr(engine).splitlines()[1:]
    if not lines:
        return {}
    names = _cut(lines[0], lines[1])
    rows = [dict(zip(names, _cut(line, lines[1]), strict=True)) for line in lines[2:]]
    return {row["name"]: row for row in rows}


def test_the_table_of_an_engine_lists_shared_sources() -> None:
    with ps.Engine(workers=1, mode="state") as engine:
        feed = ps.PushSource()
        source = engine.source(TIMED, feed, name="events")
        engine.submit(source.stream, source=source, sink="discard", name="all")
        rows = rows_of(engine)
        assert {name: (row["kind"], row["status"]) for name, row in rows.items()} == {
            "events": ("source", "running"),
            "all": ("query", "running"),
        }
        assert "events" in engine._repr_html_()
        assert "events" in repr(source)
        del source  # it runs on, and is listed for as long
        gc.collect()
        assert "events" in rows_of(engine)


def test_what_has_failed_stays_listed_with_its_error_until_it_is_dropped() -> None:
    with ps.Engine(workers=1, mode="state") as engine:
        bad = ps.stream({"v": "int64"}).select(half=10 // col("v"))
        failed = engine.submit(bad, source=pa.table({"v": [0]}), sink="discard", name="failed")
        with pytest.raises(ps.ComputeError):
            failed.wait()
        ended = engine.submit(bad, source=pa.table({"v": [1]}), sink="discard", name="ended")
        assert ended.wait()
        engine.submit(bad, source=pa.table({"v": [1]}), sink="discard", name="another").wait()
        gc.collect()
        rows = rows_of(engine)
        assert set(rows) == {"failed", "ended"}
        assert (rows["failed"]["status"], rows["ended"]["status"]) == ("failed", "finished")
        assert rows["failed"]["error"].startswith("ComputeError: in select: integer division by zero")
        assert rows["failed"]["error"].endswith("or divide with / for a float result"), "all of it"
        assert "or divide with / for a float result" in engine._repr_html_()
        assert engine.query("failed") is failed
        assert engine.queries == ()
        del failed
        gc.collect()
        assert set(rows_of(engine)) == {"ended"}


def test_a_failure_that_nobody_has_seen_is_listed_without_anybody_holding_it() -> None:
    bad = ps.stream({"v": "int64"}).select(half=10 // col("v"))
    engine = ps.Engine(workers=1, mode="state")
    engine.submit(bad, source=pa.table({"v": [0]}), sink="discard", name="failed")
    while engine.queries:
        pass
    gc.collect()
    assert rows_of(engine)["failed"]["error"].startswith("ComputeError")
    with pytest.warns(ps.QueryFailedWarning):
        engine.stop()


def test_what_was_not_dropped_stays_listed_behind_the_end_of_the_engine() -> None:
    bad = ps.stream({"v": "int64"}).select(half=10 // col("v"))
    feed = ps.PushSource()
    with ps.Engine(workers=1, mode="state") as engine:
        failed = engine.submit(bad, source=pa.table({"v": [0]}), sink="discard", name="failed")
        source = engine.source({"v": "int64"}, feed, name="numbers")
        stopped = engine.submit(source.stream, source=source, name="stopped")
        with pytest.raises(ps.ComputeError):
            failed.wait()
        engine.submit(bad, source=pa.table({"v": [1]}), sink="discard", name="dropped").wait()
    gc.collect()
    statuses = {name: row["status"] for name, row in rows_of(engine).items()}
    assert statuses == {"failed": "failed", "numbers": "stopped", "stopped": "stopped"}
    assert engine.query("stopped") is stopped
    assert "1 worker" in repr(engine)
    engine.stop()
    del failed, stopped, source
    gc.collect()
    assert rows_of(engine) == {}


def fails() -> Iterator[pa.Table]:
    yield pa.table({"t": [1]})
    raise ZeroDivisionError("no more")


def test_the_table_says_why_the_source_of_a_query_has_ended() -> None:
    def use() -> None:
        with ps.Engine(workers=1, mode="state") as engine:
            engine.submit(
                TIMED, source=engine.source(TIMED, fails(), name="events"), sink="discard", name="all"
            )
            while engine.metrics()["queries"]:
                pass
            gc.collect()
            rows = rows_of(engine)
            assert rows["events"]["status"] == "failed"
            assert rows["events"]["error"] == "ZeroDivisionError: no more"
            assert rows["all"]["error"].startswith("SourceEndedError")
            assert rows["all"]["error"].endswith("(because of ZeroDivisionError: no more)")

    with pytest.warns(ps.QueryFailedWarning, match=r"because of ZeroDivisionError: no more") as caught:
        use()
    assert len(caught) == 1, "whoever is told of the query knows what became of its source"


def test_whoever_is_told_of_a_query_knows_of_its_source() -> None:
    with ps.Engine(workers=1, mode="state") as engine:
        query = engine.submit(TIMED, source=engine.source(TIMED, fails(), name="events"), sink="discard")
        with pytest.raises(ps.SourceEndedError) as raised:
            query.wait()
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        gc.collect()
        assert "events" not in rows_of(engine)


def test_a_shared_source_that_fails_without_a_reader_is_told_of() -> None:
    def use(*, look: bool) -> None:
        with ps.Engine(workers=1, mode="state") as engine:
            source = engine.source(TIMED, fails(), name="events", hold=True)
            source.start()
            while source.status == "running":
                pass
            if look:
                assert isinstance(source.error, ZeroDivisionError)

    with pytest.warns(
        ps.QueryFailedWarning, match='the source "events" failed.*ZeroDivisionError: no more'
    ) as caught:
        use(look=False)
    assert [warning.filename for warning in caught] == [__file__]
    use(look=True)


def test_a_shared_source_says_what_its_function_for_dead_letters_has_raised() -> None:
    queries: list[ps.Query] = []
    ready = threading.Event()

    def fail(batch: ps.Batch) -> None:
        assert ready.wait(60)
        assert queries[0].wait(60)
        time.sleep(0.1)  # until the source has ended as well
        raise ZeroDivisionError("letters")

    def use() -> None:
        with ps.Engine(workers=1, mode="state") as engine:
            data = [pa.table({"t": [1]}), pa.table({"u": [1]})]
            source = engine.source(TIMED, data, name="events", on_error=fail, hold=True)
            queries.append(engine.submit(source.stream, source=source, sink="collect"))
            ready.set()
            source.start()
            assert len(queries[0].result()) == 1
            while source.status == "running":
                pass
            assert rows_of(engine)["events"]["status"] == "failed"
            assert rows_of(engine)["events"]["error"] == "ZeroDivisionError: letters"
            assert source.metrics()["seconds"] >= 0.1

    with pytest.warns(ps.QueryFailedWarning, match='the source "events" failed.*ZeroDivisionError: letters'):
        use()


def wait_for(engine: ps.Engine, name: str, blocked_by: str) -> None:
    """Looks at the table until it says so."""
    while rows_of(engine)[name]["blocked by"] != blocked_by:
        pass
    query = engine.query(name)
    while query.metrics()["blocked_by"] != blocked_by:
        pass


@pytest.mark.filterwarnings("ignore:leaving the engine has discarded")
@pytest.mark.parametrize("mode", ["state", "threads"])
def test_tables_say_who_holds_a_query_up(mode: Mode) -> None:
    many = pa.table({"t": pa.array(range(1 << 20), pa.int64())})
    with ps.Engine(workers=2, mode=mode, budget="64MiB") as engine:
        engine.submit(TIMED, source=[many] * 64, name="unread")
        wait_for(engine, "unread", "reader")
        source = engine.source(TIMED, [many] * 64, name="events", hold=True)
        slow = engine.submit(source.stream, source=source, name="slow")
        quick = engine.submit(source.stream, source=source, sink="discard", name="quick")
        source.start()
        wait_for(engine, "slow", "reader")
        while source.metrics()["blocked_by"] != 'query "slow"':
            pass
        wait_for(engine, "quick", 'query "slow"')
        slow.stop()
        assert quick.wait(60)
        assert quick.metrics()["blocked_by"] is None


@pytest.mark.parametrize("way", ["function", "reader"])
def test_latency_goes_on_until_results_are_handed_over(way: str) -> None:
    """The latency of results takes in the function that takes them, or the time until somebody reads them."""
    pause = 0.25

    def take(batch: ps.Batch) -> None:
        time.sleep(pause)

    feed = ps.PushSource()
    with ps.Engine(workers=1) as engine:
        queries = [
            engine.submit(plan, source=source, sink=take if way == "function" else None)
            for plan, source in ((TIMED, ON_TIME), (COUNTS, feed))
        ]
        feed.push(ON_TIME)
        time.sleep(pause)
        if way == "reader":
            gathered(queries[0])
            next(iter(queries[1]))
        queries[0].wait()
        metrics = [query.metrics() for query in queries]
        while way == "function" and metrics[1]["output_latency"]["count"] == 0:
            time.sleep(0.01)
            metrics[1] = queries[1].metrics()
        feed.close()
        for query in queries:
            gathered(query) if way == "reader" else query.wait()
        assert metrics[0]["event_latency"]["count"] > 0
        assert metrics[0]["event_latency"]["p50_ms"] >= 0.9 * 1e3 * pause
        assert metrics[1]["output_latency"]["count"] > 0
        assert metrics[1]["output_latency"]["p50_ms"] >= 0.9 * 1e3 * pause


@pytest.mark.filterwarnings("ignore:leaving the engine has discarded")
@pytest.mark.parametrize("mode", ["state", "threads"])
def test_tables_name_outputs_functions_and_operators_that_hold_a_query_up(mode: Mode) -> None:
    many = pa.table({"t": pa.array(range(1 << 20), pa.int64())})
    go_on = threading.Event()

    def slow(batch: ps.Batch) -> None:
        assert go_on.wait(60)

    def pause(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert go_on.wait(60)
        return batch

    with ps.Engine(workers=4, mode=mode, budget="64MiB", chain="off") as engine:
        engine.submit(TIMED, source=[many] * 64, sink=slow, name="function")
        both = ps.outputs(low=TIMED.filter(col("t") < 0), high=TIMED)
        engine.submit(both, source=[many] * 64, name="outputs")
        engine.submit(both, source=[many] * 64, sink={"high": slow}, name="functions")
        engine.submit(TIMED.map_batches(pause), source=[many] * 64, sink="discard", name="operators")
        try:
            wait_for(engine, "function", "sink")
            wait_for(engine, "outputs", 'reader of "high"')
            wait_for(engine, "functions", 'sink of "high"')
            wait_for(engine, "operators", "map_batches")
        finally:
            go_on.set()
