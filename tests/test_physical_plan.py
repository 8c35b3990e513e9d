"""The tasks that a plan becomes, in words: of a plan, and of a query."""

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col

PRICES = ps.stream({"at": "int64", "key": "string", "price": "int64"}, time="at")
DATA = pa.table({"at": [1, 2, 11], "key": ["a", "b", "a"], "price": [1, 2, 3]})
HOURS = PRICES.filter(col("price") > 1).window(ps.tumbling(10), by="key").agg(n=ps.count())


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable says how operators are chained or spread."""
    for name in ("CHAIN", "PARALLELISM", "STRATEGY"):
        monkeypatch.delenv(f"PENSTOCK_{name}", raising=False)


def heads(text: str) -> list[str]:
    """The names of the tasks."""
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if not line.startswith(" ")]


def test_a_plan_on_one_worker_is_one_task_and_a_sink() -> None:
    text = HOURS.explain(physical=True)
    assert heads(text) == ["window", "sink"]
    assert 'stream "stream": at, key, price' in text
    assert "stages    filter" in text
    assert "on one worker: there is no other" in text


def test_a_plan_on_two_workers_has_lanes() -> None:
    text = HOURS.explain(physical=True, workers=2)
    assert heads(text) == ["stream", "window 1/2", "window 2/2", "window", "sink"]
    assert "on 2 workers, merged" in text


def test_a_plan_that_is_exchanged_has_parts_that_read_one_log() -> None:
    text = HOURS.explain(2, "exchange", physical=True)
    assert heads(text) == ["key groups", "window 1/2", "window 2/2", "union", "sink"]
    assert text.count("reads     log 0, the rows of its key groups") == 2


def test_several_outputs_share_what_they_have_in_common() -> None:
    common = PRICES.filter(col("price") > 1)
    plans = ps.outputs(rows=common, dear=common.filter(col("price") > 5))
    assert heads(plans.explain(physical=True)) == ["filter", "filter", "sink rows", "sink dear"]


def test_a_query_says_what_runs() -> None:
    with ps.Engine(workers=2, chain="off") as engine:
        query = engine.submit(HOURS, source=DATA, sink="collect", parallelism=1)
        text = query.explain(physical=True)
        tasks = [task["name"] for task in query.metrics()["tasks"]]
        query.result()
        assert query.explain() == text, "also once it has ended"
    assert heads(text) == ["stream", "filter", "window", "sink"]
    assert tasks == heads(text) or not tasks


def test_a_query_says_which_streams_it_shares() -> None:
    with ps.Engine(workers=1, chain="auto") as engine:
        source = engine.source(PRICES, DATA, hold=True)
        query = engine.submit(source.stream.select("price"), source=source, sink="collect")
        text = query.explain(physical=True)
        source.start()
        query.result()
    assert "reads     shared log 0: at, key, price" in text


def test_a_query_knows_only_its_physical_plan() -> None:
    with ps.Engine(workers=1) as engine:
        query = engine.submit(PRICES, source=DATA, sink="collect")
        with pytest.raises(ValueError, match="physical plan only"):
            query.explain(physical=False)
        query.result()
