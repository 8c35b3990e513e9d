"""A random graph, fed and ended at random, and held against the oracle."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import penstock as ps
from soak import setups
from soak.feeds import Asked, Feed, declare, draw_feed
from soak.graphs import Graph
from soak.oracle import Outcome

ENDS = (
    *("finish",) * 14, *("drain",) * 2, "drain early", *("close",) * 2, "exit", "exit early",
    "source fails", "sink fails", "stop", "leave", "drop",
)  # fmt: skip
"""How a case ends. "drain", "exit" and "close" come when everything is pushed, the early ones in between."""
CUTTING = ("drain", "drain early", "exit", "exit early", "close")
"""Ends that cut the input off: what was pushed before counts, and nobody closes the sources."""
SINKS = ("collect", "collect", "function", "iterator")


@dataclass
class Case:
    """Everything that is drawn for a case."""

    seed: int
    graph: Graph
    feeds: list[Feed]
    outcomes: list[Outcome]
    options: dict[str, Any]
    spreading: dict[str, Any]
    on_error: str
    shared: list[bool]
    source_errors: list[str]
    """What shared sources are told about what they cannot take."""
    source_bounds: list[bool]
    """Whether it is the shared source that says how far ahead times may be, not the stream."""
    queries: list[tuple[int, ...]]
    sinks: list[str]
    end: str
    on_lag: str
    plain: bool

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: times {self.graph.time}, keys {self.graph.key}"]
        for number, node in enumerate(self.graph.nodes):
            shown = f"  {number}: {node.op} {list(node.inputs)} {node.how} {node.number}"
            stream = number < len(self.feeds)
            lines.append(f"{shown} {self.feeds[number] if stream else node.windows}")
        lines.append(f"  {self.options} {self.spreading} on_error={self.on_error} on_lag={self.on_lag}")
        lines.append(f"  shared {self.shared} with {self.source_errors}, bounds {self.source_bounds}")
        lines.append(f"  queries {self.queries} with sinks {self.sinks}")
        lines.append(f"  plain run: {self.plain}, end: {self.end}")
        return "\n".join(lines)


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(f"graph {seed}")
    types = setups.draw_types(rng)
    # Some are about operators that read a source themselves and others by edges, woken by each in turn.
    meets = rng.random() < 0.2
    count = rng.choice([2, 2, 3] if meets else [1, 1, 2, 2, 3])
    feeds = [draw_feed(rng, *types, most=rng.choice([8, 16, 24])) for _ in range(count)]
    end = "finish" if meets else rng.choice(ENDS)
    plain = end == "finish" and not meets and rng.random() < 0.15
    if meets or end in CUTTING or rng.random() < 0.3:
        # Whatever was pushed before a drain counts; of an iterator nobody knows how far it was read.
        feeds = [dataclasses.replace(feed, way="push") for feed in feeds]
    if plain:
        feeds = [dataclasses.replace(feed, way="iterator") for feed in feeds]
    graph, outcomes = setups.draw_graph(rng, types, feeds, setups.MEETINGS if meets else setups.MOTIFS)
    options = {**setups.draw_options(rng), **(setups.draw_apart(rng) if meets else {})}
    apart = len(graph.outputs) > 1 and rng.random() < 0.4
    queries: list[tuple[int, ...]] = [(n,) for n in graph.outputs] if apart else [graph.outputs]
    if rng.random() < 0.2:
        queries = queries * 2
    shares = 0.8 if meets else 0.7 if end == "close" else rng.choice([0.0, 0.5])
    if end == "drain early":
        shares = 0.0  # what a shared source has read by then is known to nobody
    return Case(
        seed, graph, feeds, outcomes, options, {} if meets else setups.draw_spreading(rng),
        rng.choice(["fail", "skip", "skip", "skip", "function", "function"]),
        [rng.random() < shares for _ in feeds],
        [rng.choice(["fail", "skip", "skip", "function"]) for _ in feeds],
        [rng.random() < 0.5 for _ in feeds], queries,
        [rng.choice(SINKS) for _ in queries], end, rng.choice(["wait"] * 8 + ["shed", "fail"]), plain,
    )  # fmt: skip


def functions(case: Case) -> list[Asked | None]:
    """The watermark functions of its streams."""
    return [Asked() if feed.marks == "function" else None for feed in case.feeds]


def declared(case: Case, asked: Sequence[Asked | None], bounded: Sequence[bool]) -> list[ps.Stream]:
    """Its streams; those that are not bounded have sources that are."""
    return [
        declare(feed, n, asked[n], bound)
        for n, (feed, bound) in enumerate(zip(case.feeds, bounded, strict=True))
    ]


def read_by_graphs(case: Case, streams: Sequence[ps.Stream]) -> list[ps.Stream]:
    """The streams as graphs read them: without what only the source reads."""
    return [
        stream.select("t", "k", "v") if feed.marks == "column" else stream
        for stream, feed in zip(streams, case.feeds, strict=True)
    ]
