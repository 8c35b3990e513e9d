"""Where the results of a query go: functions, iterators, batches."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference.live import HANG_SECONDS, STREAM, batch, rows, soon


def test_a_function_takes_the_batches(engine: ps.Engine) -> None:
    found: list[ps.Batch] = []
    names = set()

    def sink(batch: ps.Batch) -> None:
        names.add(threading.get_ident())
        time.sleep(0.002)
        found.append(batch)

    query = engine.submit(STREAM, source=[batch(i) for i in range(20)], sink=sink)
    assert query.wait(HANG_SECONDS)
    assert sorted(row["t"] for row in rows(found)) == list(range(20)), "all of them, before wait() returns"
    assert len(names) == 1
    assert threading.get_ident() not in names
    with pytest.raises(ps.PlanError, match="go to its sink"):
        query.results()
    with pytest.raises(ps.PlanError, match="collect"):
        query.result()


def test_what_a_sink_raises_comes_back_as_itself(engine: ps.Engine) -> None:
    class FullError(Exception):
        pass

    def sink(batch: ps.Batch) -> None:
        raise FullError(str(batch.num_rows))

    source = ps.PushSource()
    early = engine.submit(STREAM, source=source, sink=sink)
    source.push(batch(1, 2))
    with pytest.raises(FullError, match="2"):
        early.wait()
    late = engine.submit(STREAM, source=[batch(1)], sink=sink)
    with pytest.raises(FullError, match="1"):
        late.wait()
    assert early.status == late.status == "failed"
    assert isinstance(late.error, FullError)


def test_a_sink_may_stop_its_query_but_not_wait_for_it(engine: ps.Engine) -> None:
    errors: list[Exception] = []
    there = threading.Event()

    def sink(_: ps.Batch) -> None:
        assert there.wait(HANG_SECONDS)
        for call in (query.wait, lambda: query.stop(drain=True)):
            try:
                call()
            except ps.EngineError as error:
                errors.append(error)
        query.stop()

    query = engine.submit(STREAM, source=ps.replay(batch(1), rounds=None), sink=sink)
    there.set()
    assert query.wait(HANG_SECONDS)
    assert query.status == "stopped"
    assert ["cannot wait for itself" in str(error) for error in errors] == [True, True]


def test_no_sink_is_called_once_the_engine_has_stopped() -> None:
    calls: list[int] = []

    def sink(batch: ps.Batch) -> None:
        time.sleep(0.01)
        calls.append(len(batch))

    with ps.Engine(workers=1) as engine:
        engine.submit(STREAM, source=ps.replay(batch(1), rounds=None), sink=sink)
        assert soon(lambda: bool(calls))
    count = len(calls)
    time.sleep(0.05)
    assert len(calls) == count


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (
            {"sink": "colect"},
            ps.PlanError,
            'sink is "collect" or "discard", not "colect"; did you mean "collect"?',
        ),
        ({"sink": 7}, TypeError, 'sink takes "collect", "discard" or a function, not int'),
        ({"name": 7}, TypeError, "name takes a string"),
        ({"name": ""}, ps.PlanError, "name is empty"),
        ({"on_lag": None}, TypeError, "on_lag takes a name"),
        ({"source": "file.parquet"}, TypeError, "source must be"),
        ({"source": 7}, TypeError, "source must be"),
        ({"plan": "SELECT 1"}, TypeError, "takes a Stream"),
    ],
    ids=str,
)
def test_arguments_that_cannot_be(
    engine: ps.Engine, arguments: dict[str, Any], kind: type[Exception], words: str
) -> None:
    given: dict[str, Any] = {"plan": STREAM, "source": [], **arguments}
    with pytest.raises(kind, match=words.replace("?", r"\?")):
        engine.submit(**given)
    assert engine.queries == ()


def test_a_batch_is_arrow_data() -> None:
    with ps.Engine(workers=1, memory="blocks", block_rows=64) as engine:
        (found,) = engine.submit(STREAM, source=batch(1, 2, 3))
    assert len(found) == found.num_rows == 3
    assert pa.record_batch(found).equals(batch(1, 2, 3))
    assert pa.table(found).num_rows == found.to_polars().height == len(found.to_pandas()) == 3
    assert found.schema.names == ["t", "k"]
    assert "3 rows of 2 columns" in repr(found)
    assert "<table" in found._repr_html_()
    assert len(STREAM.run(found)) == 3
    with pytest.raises(AttributeError, match="immutable"):
        found.x = 1
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(found)


def test_an_unread_query_waits_within_its_memory(engine: ps.Engine) -> None:
    query = engine.submit(STREAM, source=ps.replay(batch(*range(1000)), rounds=None))
    assert soon(lambda: query.metrics()["rows_in"] > 0)
    time.sleep(0.2)
    memory = engine.metrics()["memory"]
    assert memory["used_bytes"] <= memory["budget_bytes"]
    taken = query.metrics()["rows_in"]
    for _, _found in zip(range(50), query, strict=False):
        pass
    assert soon(lambda: query.metrics()["rows_in"] > taken), "it goes on when it is read"


def test_async_iteration(engine: ps.Engine) -> None:
    async def read(query: ps.Query) -> list[int]:
        return [row["t"] async for one in query for row in one.to_pylist()]

    async def main() -> list[list[int]]:
        queries = [engine.submit(STREAM, source=[batch(i), batch(i + 10)]) for i in range(8)]
        return await asyncio.gather(*map(read, queries))

    assert asyncio.run(main()) == [[i, i + 10] for i in range(8)]


def test_async_iteration_loses_nothing_when_it_is_cancelled(engine: ps.Engine) -> None:
    source = ps.PushSource(capacity=64)
    query = engine.submit(STREAM, source=source)

    async def main() -> list[int]:
        found = []
        results = query.results()
        for number in range(40):
            if number % 2:
                source.push(batch(number))
            with suppress(TimeoutError):
                one = await asyncio.wait_for(anext(results), 0.003)
                found += [row["t"] for row in one.to_pylist()]
        source.close()
        async for one in results:
            found += [row["t"] for row in one.to_pylist()]
        return found

    assert asyncio.run(main()) == list(range(1, 40, 2))


def test_async_iteration_raises_what_the_query_failed_with(engine: ps.Engine) -> None:
    async def main() -> None:
        async for _ in engine.submit(STREAM, source=pa.table({"t": [1]})):
            pass

    with pytest.raises(ps.SchemaMismatchError):
        asyncio.run(main())
