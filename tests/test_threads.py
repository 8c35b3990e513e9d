"""One pipeline, several threads: runs do not see each other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa
import pytest

import penstock as ps
from reference.compare import as_bag
from reference.engine import rows_of

# The warning filters of Python are shared by all threads, so they are set once for the whole file.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")

THREADS = 6
HANG_SECONDS = 60
ADS = pa.table({"k": list(range(50)), "group": [i % 5 for i in range(50)]})


def query() -> ps.Stream:
    stream = ps.stream({"t": "int64", "k": "int64"}, time="t", delay=5).filter(ps.col("k") % 3 != 0)
    joined = stream.lookup(ADS, on="k")
    return joined.window(ps.tumbling(100), by="group").agg(n=ps.count(), s=ps.sum("t"))


def table(seed: int, rows: int = 5000) -> pa.Table:
    times = [(i * 7919 + seed) % 97 + i for i in range(rows)]
    return pa.table({"t": times, "k": [(i * 31 + seed) % 60 for i in range(rows)]})


def test_runs_of_one_stream_at_once_give_what_they_give_alone() -> None:
    stream = query()
    data = [table(seed) for seed in range(THREADS)]
    alone = [stream.run(part) for part in data]
    start = Barrier(THREADS)

    def work(number: int) -> list[ps.Result]:
        start.wait(HANG_SECONDS)
        return [stream.run(data[number]) for _ in range(5)]

    with ThreadPoolExecutor(THREADS) as pool:
        together = [future.result(HANG_SECONDS) for future in [pool.submit(work, i) for i in range(THREADS)]]
    for single, results in zip(alone, together, strict=True):
        for result in results:
            assert as_bag(rows_of(result)) == as_bag(rows_of(single))
            assert result.rows_late == single.rows_late
            assert result.rows_filtered == single.rows_filtered


def test_runs_over_the_same_table_at_once() -> None:
    stream, data = query(), table(1)
    expected = as_bag(rows_of(stream.run(data)))
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: as_bag(rows_of(stream.run(data))), range(20)))
    assert found == [expected] * 20


def test_python_sources_at_once() -> None:
    """Generators of several runs take turns with the interpreter and none waits for ever."""
    stream, data = query(), table(2)
    expected = as_bag(rows_of(stream.run(data)))

    def work(_: int) -> object:
        return as_bag(rows_of(stream.run(batch for batch in data.to_batches(max_chunksize=100))))

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(work, i) for i in range(THREADS * 2)]
        assert [future.result(HANG_SECONDS) for future in futures] == [expected] * (THREADS * 2)


def test_an_error_in_one_run_does_not_touch_the_others() -> None:
    stream, data = query(), table(3)
    expected = as_bag(rows_of(stream.run(data)))

    def work(number: int) -> object:
        if number % 2:
            with pytest.raises(ps.NullTimeError):
                stream.run([data, pa.table({"t": pa.array([None], pa.int64()), "k": [1]})])
            return expected
        return as_bag(rows_of(stream.run(data)))

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(20))) == [expected] * 20


def test_plans_are_built_at_once() -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        plans = list(pool.map(lambda _: query(), range(30)))
    assert len(set(plans)) == 1
    assert {plan.to_json() for plan in plans} == {query().to_json()}


def test_one_result_is_read_by_many() -> None:
    result = query().run(table(4))
    expected = as_bag(rows_of(result))
    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(lambda _: as_bag(rows_of(result)), range(20))) == [expected] * 20


def test_a_run_inside_a_source_of_a_run() -> None:
    """A source may itself run a pipeline."""
    stream = query()
    inner = stream.run(table(5))

    def source() -> Iterator[ps.Result]:
        for seed in (5, 5):
            stream.run(table(seed))
            yield inner

    outer = ps.stream(inner.schema)
    assert len(outer.run(source())) == 2 * len(inner)
