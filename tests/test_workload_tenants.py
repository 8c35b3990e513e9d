"""The jobs of mixed tenants: what they are, and that each computes its query over all of its sources."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.workloads import ipq
from reference import ipq as reference
from reference.compare import as_bag, assert_same_rows
from reference.engine import rows_of

QUERIES = ["ipq1", "ipq2", "ipq3", "ipq4"]
KEYS = dict.fromkeys(QUERIES, "key") | {"ipq3": "other_key"}


def data_of(job: ipq.Job) -> dict[str, pa.Table]:
    """The rows of all sources of a stream, as one table."""
    tables: dict[str, list[pa.Table]] = {"revenue": [], "logs": []}
    for name, source in job.sources.items():
        tables[name.rstrip("0123456789")].append(pa.table(source))
    return {name: pa.concat_tables(parts) for name, parts in tables.items() if parts}


def test_jobs_are_those_of_the_benchmark() -> None:
    jobs = ipq.tenants(bulk=20)
    assert [job.urgency for job in jobs] == ["latency-sensitive"] * 4 + ["bulk"] * 20
    assert [job.query for job in jobs] == QUERIES * 6
    for job in jobs:
        urgent = job.urgency == "latency-sensitive"
        assert job.window_ms == (1_000 if urgent else 10_000)
        assert job.message_rows == 1_000
        assert job.target_ms == 800 if urgent else job.target_ms > 100 * job.window_ms
        assert len(job.sources) == (16 if job.query == "ipq4" else 8)


def test_sources_send_a_message_each_second() -> None:
    for job in ipq.tenants(seconds=5, bulk=0, sources=2):
        for source in job.sources.values():
            batches = pa.table(source).to_batches()
            assert [len(batch) for batch in batches] == [1_000] * 5
            seconds = [
                set((batch["timestamp"].cast("int64").to_numpy() // 1_000).tolist()) for batch in batches
            ]
            assert seconds == [{second} for second in range(5)]


def test_bulk_sources_vary_and_are_skewed() -> None:
    (job,) = ipq.tenants(latency_sensitive=0, bulk=1, seconds=256, sources=4, bulk_rate=1_000, bulk_skew=50)
    tables = [pa.table(source) for source in job.sources.values()]
    rows = [len(table) for table in tables]
    assert rows == sorted(rows, reverse=True)
    assert rows[0] / rows[-1] == pytest.approx(50, rel=0.05)
    assert sum(rows) == pytest.approx(4 * 256 * 1_000, rel=0.01)
    times = tables[0]["timestamp"].cast("int64").to_numpy()
    assert (times[1:] >= times[:-1]).all()
    assert times[-1] // 1_000 == 255
    per_second = np.bincount(times // 1_000, minlength=256)
    assert per_second.max() > 5 * per_second.min()


@pytest.mark.parametrize("nth", range(4))
@pytest.mark.parametrize("urgency", ["latency-sensitive", "bulk"])
def test_a_job_computes_its_query_over_all_sources(urgency: str, nth: int) -> None:
    number = "latency_sensitive" if urgency == "latency-sensitive" else "bulk"
    few: dict[str, Any] = {"latency_sensitive": 0, "bulk": 0, number: 4}
    job = ipq.tenants(**few, seconds=21, sources=3, bulk_rate=50, bulk_skew=5, seed=11)[nth]
    assert (job.query, job.urgency) == (QUERIES[nth], urgency)
    result = job.plan.run(job.sources)
    tables = data_of(job)
    assert result.rows_late == 0
    assert result.rows_in == sum(map(len, tables.values()))
    expected = reference.answer(job.query, tables, job.window_ms, job.window_ms // 2)
    assert len(expected) > 100
    assert_same_rows(expected, rows_of(result), ("window_end", KEYS[job.query]))


def test_a_job_stays_the_same_whatever_the_others() -> None:
    many, few = ipq.tenants(latency_sensitive=4, bulk=4), ipq.tenants(latency_sensitive=2, bulk=1)
    assert [repr(job.sources) for job in few[:2]] == [repr(job.sources) for job in many[:2]]
    assert repr(few[2].sources) == repr(many[4].sources)
    # No two of them read the same, and another seed gives others.
    sources = [repr(job.sources) for job in many]
    assert len(set(sources)) == len(sources)
    for job in many:
        assert len({repr(source) for source in job.sources.values()}) == len(job.sources)
    assert not set(sources) & {repr(job.sources) for job in ipq.tenants(seed=1_000_000, bulk=4)}


def test_jobs_can_be_sent_to_other_processes() -> None:
    (job,) = ipq.tenants(latency_sensitive=1, bulk=0, seconds=2, sources=2)
    again = pickle.loads(pickle.dumps(job))
    # Which source's rows come first, and so the order of the results, is not the same in every run.
    assert as_bag(rows_of(again.plan.run(again.sources))) == as_bag(rows_of(job.plan.run(job.sources)))


def test_jobs_share_an_engine() -> None:
    jobs = ipq.tenants(latency_sensitive=2, bulk=2, seconds=4, sources=2, bulk_rate=500)
    with ps.Engine(workers=2) as engine:
        queries = [engine.submit(job.plan, source=job.sources, sink="collect") for job in jobs]
        results = [query.result() for query in queries]
    for job, result in zip(jobs, results, strict=True):
        assert result.rows_in == sum(map(len, data_of(job).values()))


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("latency_sensitive", 1_001, "latency_sensitive must be between 0 and 1000, got 1001"),
        ("bulk", -1, "bulk must be between 0 and 65535, got -1"),
        ("sources", 0, "sources must be between 1 and 10000, got 0"),
        ("bulk_rate", 0, "bulk_rate must be between 1 and 1000000000, got 0"),
        ("bulk_skew", 0, "bulk_skew must be between 1 and 1000000, got 0"),
        ("seconds", -1, "seconds must be between 0 and 18446744073709551615, got -1"),
    ],
)
def test_wrong_options_are_refused(option: str, value: int, message: str) -> None:
    wrong: dict[str, Any] = {option: value}
    with pytest.raises(ValueError, match=f"^{message}$"):
        ipq.tenants(**wrong)
    wrong = {option: "many"}
    with pytest.raises(TypeError, match=f"^{option} must be a whole number, not str: many$"):
        ipq.tenants(**wrong)
