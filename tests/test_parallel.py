"""One query on several workers: the same answer, however it is spread over them, and a word on why."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference.stateful import PLANS, SCHEMA, rows_of, table_of, views


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has said how operators are spread."""
    monkeypatch.delenv("PENSTOCK_PARALLELISM", raising=False)
    monkeypatch.delenv("PENSTOCK_STRATEGY", raising=False)


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
@pytest.mark.parametrize("name", PLANS)
@given(
    rows=st.lists(
        st.tuples(st.integers(-30, 60), st.sampled_from(["a", "b", "c", None]), st.integers(-9, 9)),
        max_size=80,
    ),
    cut=st.integers(1, 40),
    lanes=st.integers(2, 5),
    strategy=st.sampled_from(["auto", "merge", "exchange"]),
)
def test_no_strategy_changes_the_answer(
    name: str, rows: list[tuple[int, str | None, int]], cut: int, lanes: int, strategy: Any
) -> None:
    table = table_of(rows)
    batches = [table.slice(start, cut) for start in range(0, max(len(rows), 1), cut)]
    alone = PLANS[name].run(batches, parallelism=1)
    spread = PLANS[name].run(batches, parallelism=lanes, strategy=strategy, workers=2)
    assert rows_of(spread) == rows_of(alone)
    for counter in ("rows_in", "rows_copied", "rows_contributed", "rows_filtered", "rows_late"):
        assert spread.metrics()[counter] == alone.metrics()[counter], counter


@pytest.mark.usefixtures("unset")
def test_lanes_share_the_rows_of_a_large_stream() -> None:
    rows = 2_000_000
    data = [
        pa.table({"t": range(start, start + 100_000), "k": ["a"] * 100_000, "x": range(100_000)})
        for start in range(0, rows, 100_000)
    ]
    plan = (
        ps.stream(SCHEMA, time="t").window(ps.tumbling(50_000), by="k").agg(n=ps.count(), total=ps.sum("x"))
    )
    with ps.Engine(workers=2, chain="auto", mode="state") as engine:
        query = engine.submit(plan, source=data, sink="collect", parallelism=2)
        result = query.result()
        tasks = {task["name"]: task for task in query.metrics()["tasks"]}
    assert sum(row["n"] for row in result.to_pylist()) == rows
    assert {"window 1/2", "window 2/2", "window", "stream"} <= tasks.keys()
    assert all(tasks[name]["runs"] > 0 for name in ("window 1/2", "window 2/2"))


@pytest.mark.usefixtures("unset")
def test_each_worker_gets_the_rows_of_its_keys() -> None:
    """Two sessions of each of so many keys that every key group has some, on workers that never meet."""
    times, keys = [*range(10), *range(1_000, 1_010)], 3_000
    data = [
        pa.table({"t": [t] * keys, "k": [f"key {n}" for n in range(keys)], "x": range(keys)}) for t in times
    ]
    plan = ps.stream(SCHEMA, time="t").window(ps.session(10), by="k").agg(n=ps.count(), x=ps.max("x"))
    with ps.Engine(workers=2, mode="state") as engine:
        query = engine.submit(plan, source=data, sink="collect", parallelism=2)
        rows = query.result().to_pylist()
        metrics = query.metrics()
    assert len(rows) == 2 * keys
    assert all((row["n"], row["k"]) == (10, f"key {row['x']}") for row in rows)
    tasks = {task["name"]: task["runs"] for task in metrics["tasks"]}
    assert tasks["window 1/2"] > 0
    assert tasks["window 2/2"] > 0
    windows = [operator for operator in metrics["operators"] if operator["name"] == "window"]
    assert [window["rows_in"] for window in windows] == [20 * keys]


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
@pytest.mark.parametrize("strategy", ["auto", "merge", "exchange"])
def test_late_rows_of_all_workers_come_together(strategy: Any) -> None:
    result, late = ps.stream(SCHEMA, time="t").window(ps.tumbling(10), by="k").agg(n=ps.count()).split_late()
    plan = ps.outputs(result=result, late=late)
    table = pa.table({"t": [100, *[5] * 40], "k": [f"key {n}" for n in range(41)], "x": range(41)})
    made = plan.run(table, parallelism=3, strategy=strategy, workers=2)
    assert sorted(row["x"] for row in made["late"].to_pylist()) == list(range(1, 41))
    assert (made["result"].rows_out, made["result"].rows_late) == (1, 40)


def test_a_lookup_table_is_replaced_in_all_lanes() -> None:
    plan = views().window(ps.tumbling(1_000), by="k").agg(weight=ps.max("weight"))
    feed = ps.PushSource()
    with ps.Engine(workers=2) as engine:
        query = engine.submit(plan, source=feed, sink="collect", parallelism=2)
        query.replace_lookup(pa.table({"k": ["a", "b"], "weight": [7, 8]}))
        for t in range(20):
            assert feed.push(pa.table({"t": [t, t], "k": ["a", "b"], "x": [1, 1]}))
        feed.close()
        assert {row["k"]: row["weight"] for row in query.result().to_pylist()} == {"a": 7, "b": 8}


def test_rejected_rows_of_all_lanes_are_counted() -> None:
    plan = (
        ps.stream(SCHEMA, time="t").with_columns(y=10 // col("x")).window(ps.tumbling(10)).agg(n=ps.count())
    )
    data = [pa.table({"t": range(n, n + 10), "k": ["a"] * 10, "x": range(10)}) for n in range(0, 500, 10)]
    result = plan.run(data, parallelism=3, workers=2, on_error="skip")
    assert (result.rows_rejected, result.rows_in) == (50, 500)
    with pytest.raises(ps.ComputeError, match="zero"):
        plan.run(data, parallelism=3, workers=2)


@pytest.mark.usefixtures("unset")
@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (PLANS["tumbling"], "on 2 workers, merged"),
        (views().window(ps.session(5)).agg(ps.count()), "on one worker: it has no key"),
        (PLANS["session"], "on 2 workers, exchanged by key: sessions of several"),
        (PLANS["corrected"], "on 2 workers, exchanged by key: it corrects its results"),
        (PLANS["join"], "on 2 workers, exchanged by key: it reads two streams"),
        (PLANS["window of windows"], "on 2 workers, exchanged by key: its rows come from other operators"),
        (
            views().window(ps.tumbling(5), close_after="1s").agg(ps.count()),
            "on one worker: it closes by the clock",
        ),
        (PLANS["no key"].window(ps.tumbling(14)).agg(ps.count()), "on one worker: it has no key"),
    ],
)
def test_explain_says_what_was_chosen_and_why(plan: ps.Stream, words: str) -> None:
    assert words in plan.explain(workers=2)
    assert "worker" not in plan.explain()


@pytest.mark.usefixtures("unset")
def test_explain_says_what_comes_of_a_strategy() -> None:
    assert "on 3 workers, exchanged by key: as asked for" in PLANS["tumbling"].explain(3, "exchange")
    assert "on one worker: sessions of several workers" in PLANS["session"].explain(3, "merge")
    assert "on one worker: there is no other" in PLANS["session"].explain(1)


def test_strategies_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ps.PlanError, match='did you mean "merge"'):
        PLANS["tumbling"].run([], strategy="merged")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="strategy"):
        PLANS["tumbling"].run([], strategy=2)  # type: ignore[arg-type]
    with pytest.raises(ps.PlanError, match="exchange"):
        PLANS["tumbling"].explain(2, "exchanges")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1, 65, "many", 1.5, None])
def test_values_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises((ps.PlanError, TypeError), match="parallelism"):
        PLANS["tumbling"].run([], parallelism=wrong)
