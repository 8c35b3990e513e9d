"""A submission that is refused leaves its sources as they are: they can be submitted again."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pyarrow as pa

import penstock as ps
from soak.leftovers import Finding
from soak.nesting import STREAM, numbers, numbers_from
from soak.watch import Watch

LEFT = ps.stream({"t": "int64", "v": "int64"}, time="t", name="left")
RIGHT = ps.stream({"t": "int64", "v": "int64"}, time="t", name="right")
KINDS = ("push", "push", "generator", "async", "reader", "query", "results", "replay")
FAULTS = ("name", "sink", "stream", "missing", "consumed", "ended", "memory", "other engine", "misfit")


def generated() -> Iterator[pa.Table]:
    yield numbers_from(0, 4)
    yield numbers_from(4, 6)


async def awaited() -> AsyncIterator[pa.Table]:
    for table in generated():
        yield table


def draw_source(rng: random.Random, engine: ps.Engine, held: list[Any]) -> tuple[str, Any]:
    """A source of ten rows, which for the most part can be read once."""
    kind = rng.choice(KINDS)
    if kind == "push":
        source = ps.PushSource(16)
        for table in generated():
            source.push(table)
        source.close()
        return kind, source
    if kind in ("query", "results"):
        query = engine.submit(STREAM, source=numbers(10))
        held.append(query)
        return kind, query if kind == "query" else query.results()
    made: dict[str, Any] = {
        "generator": generated,
        "async": awaited,
        "reader": lambda: pa.RecordBatchReader.from_batches(numbers(1).schema, numbers(10).to_batches()),
        "replay": lambda: ps.replay(numbers(10)),
    }
    return kind, made[kind]()


def draw_fault(
    rng: random.Random, engine: ps.Engine, other: ps.Engine, sources: dict[str, Any]
) -> tuple[str, Any, dict[str, Any]]:
    """A plan and arguments by which `submit` is refused."""
    plan, fault = LEFT.union(RIGHT), rng.choice(FAULTS)
    if fault == "name":
        return fault, plan, {"source": sources, "name": "taken"}
    if fault == "sink":
        return fault, plan, {"source": sources, "sink": {"nowhere": "discard"}}
    if fault == "stream":
        return fault, plan, {"source": {**sources, "middle": []}}
    if fault == "missing":
        return fault, plan, {"source": {"left": sources["left"]}}
    if fault == "consumed":
        spent = iter([numbers(1)])
        LEFT.run(spent)
        return fault, plan, {"source": {**sources, "right": spent}}
    if fault == "ended":
        ended = engine.source(RIGHT, numbers(1))
        engine.submit(RIGHT, source=ended, sink="discard").wait()
        return fault, plan, {"source": {**sources, "right": ended}}
    if fault == "memory":
        table = pa.table({"v": range(400_000), "w": range(400_000)})
        return fault, plan.lookup(table, on="v"), {"source": sources}
    if fault == "other engine":
        return fault, plan, {"source": {**sources, "right": other.source(RIGHT, numbers(1))}}
    wrong = ps.PushSource()
    wrong.push(pa.table({"t": ["x"]}))
    return fault, plan, {"source": {**sources, "right": wrong}}


def refused(rng: random.Random, watch: Watch) -> None:
    """Tries a submission with a fault, and then the same sources without."""
    held: list[Any] = []
    with ps.Engine(workers=1, budget="4MiB") as engine, ps.Engine(workers=1, budget="4MiB") as other:
        watch.add(engine)
        blocking = ps.PushSource()
        engine.submit(STREAM, source=blocking, sink="discard", name="taken")
        drawn = {name: draw_source(rng, engine, held) for name in ("left", "right")}
        sources = {name: source for name, (_, source) in drawn.items()}
        shown = {name: kind for name, (kind, _) in drawn.items()}
        for _ in range(rng.choice([1, 1, 2])):
            fault, plan, arguments = draw_fault(rng, engine, other, sources)
            try:
                engine.submit(plan, **arguments)
            except ps.PenstockError:
                pass
            else:
                raise Finding(f"a submission with the fault {fault!r} was not refused")
            shown["fault"] = f"{shown.get('fault', '')} {fault}"
        try:
            query = engine.submit(LEFT.union(RIGHT), source=sources, sink="collect")
            watch.add(engine, query)
            values = sorted(row["v"] for row in query.result().to_pylist())
        except ps.PenstockError as error:
            raise Finding(f"{shown}: behind a refused submission, {type(error).__name__}: {error}") from error
        if values != sorted([*range(10)] * 2):
            raise Finding(f"{shown}: behind a refused submission there are {len(values)} rows of 20")
        blocking.close()
