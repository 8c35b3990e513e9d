"""Runs random graphs of queries on an engine, and holds what comes out against the reference."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import penstock as ps
from reference import engine as built
from reference import plans
from reference.compare import assert_same_rows
from reference.dags import Dag
from reference.plans import Outcome, Plan, Window
from reference.types import Value

ACCOUNT = ("rows_contributed", "rows_filtered", "rows_late", "rows_shed", "rows_rejected")


class Running:
    """A query, and where its results go."""

    def __init__(self, engine: ps.Engine, plan: ps.Stream, source: Any, sink: str) -> None:
        self._rows: list[dict[str, Value]] = []
        self._sink = sink
        takers: dict[str, Any] = {"collect": "collect", "function": self._take, "iterator": None}
        self.query = engine.submit(plan, source=source, sink=takers[sink])

    def _take(self, batch: ps.Batch) -> None:
        self._rows.extend(built.rows_of(batch))

    def rows(self) -> list[dict[str, Value]]:
        """All rows that came out, when the query has ended."""
        if self._sink == "collect":
            return built.rows_of(self.query.result())
        if self._sink == "iterator":
            for batch in self.query.results():
                self._take(batch)
        assert self.query.wait()
        return self._rows


def feed(dag: Dag) -> tuple[Any, threading.Thread | None]:
    """The rows of the graph as a source, and a thread that pushes them if it has to be pushed."""
    columns = dag.source.columns
    if dag.feed == "table":
        return built.table_of(columns, dag.rows), None
    batches = built.batches_of(columns, dag.rows, dag.cuts)
    if dag.feed == "replay":
        return ps.replay(batches), None
    if dag.feed == "iterator":

        def lazily() -> Iterator[Any]:
            yield from batches

        return lazily(), None
    source = ps.PushSource(capacity=2)

    def push() -> None:
        with source:
            for batch in batches:
                assert source.push(batch)

    return source, threading.Thread(target=push)


def run(engine: ps.Engine, dag: Dag, watching: list[ps.Query]) -> None:
    """Runs all plans of the graph over its one source, and checks each."""
    source, pusher = feed(dag)
    if len(dag.plans) > 1:
        shared = engine.source(built.build(Plan(dag.source, ())), source, hold=True)
        source = shared
    started = [
        Running(engine, built.build(plan), source, sink)
        for plan, sink in zip(dag.plans, dag.sinks, strict=True)
    ]
    watching[:] = [running.query for running in started]
    if len(dag.plans) > 1:
        shared.start()
    if pusher is not None:
        pusher.start()
    # The last one is read as it goes, so that it does not hold up the others.
    for plan, running in reversed(list(zip(dag.plans, started, strict=True))):
        check(plan, plans.run(plan, dag.rows), running.rows(), running.query.metrics())
        assert running.query.status == "finished"
    if pusher is not None:
        pusher.join()


def check(plan: Plan, expected: Outcome, found: list[dict[str, Value]], metrics: dict[str, Any]) -> None:
    """The rows and the account are those of the reference."""
    window = next((step for step in plan.steps if isinstance(step, Window)), None)
    keys = ["id"] if window is None else ["window_start", "window_end", *(name for name, _ in window.by)]
    assert_same_rows(expected.rows, found, keys)
    assert metrics["rows_in"] == sum(metrics[name] for name in ACCOUNT), metrics
    account = {
        "rows_in": expected.rows_in, "rows_filtered": expected.rows_filtered, "rows_late": expected.rows_late,
        "rows_contributed": expected.rows_contributed, "rows_shed": 0, "rows_out": len(expected.rows),
    }  # fmt: skip
    assert {name: metrics[name] for name in account} == account
