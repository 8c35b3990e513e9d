"""Random ways to set an engine up, and to draw a graph for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from reference.types import Type
from reference.windowing import Windows
from soak.feeds import Feed
from soak.graphs import EXACT_KINDS, KEYS, MAPS, STATELESS, TIMES, Graph, Node
from soak.oracle import Outcome, interpret, is_small, stream_of

MOST_ROWS = 250
"""Of a node: joins of joins grow quickly, and the oracle is slow."""
OPERATORS = (
    *STATELESS, "map", "filter", "union", "union", "window", "window", "window", "stats", "top_k",
    "join", "join", "cogroup", "late",
)  # fmt: skip

MOTIFS = (
    ("map", "window"), ("map", "window"), ("map", "stats"), ("map", "stats"), ("map", "join"),
    ("filter", "join"), ("filter", "cogroup"),
    ("window", "divide"), ("map", "divide"), ("join", "lookup"), ("cogroup", "divide"), ("window", "lookup"),
    ("window", "late", "lookup"), ("window", "late", "divide"), ("union", "window"), ("map", "top_k"),
    ("join", "window", "divide"), ("window", "window", "map"),
)  # fmt: skip
"""What some graphs begin with, one behind the other: where operators of two kinds meet."""
MEETINGS = tuple(
    (one, other) for one in ("filter", "with_columns", "map", "union") for other in ("join", "cogroup")
)
"""The same, where an operator reads a source beside something else."""


def draw_options(rng: random.Random) -> dict[str, Any]:
    """Options of an engine: the usual ones more often than others."""
    options: dict[str, Any] = {
        "workers": rng.choice([1, 1, 2, 4]),
        "policy": rng.choice([None, "adaptive", "fcfs", "rr"]),
        "mode": rng.choice([None, None, None, "threads"]),
        "memory": rng.choice([None, None, None, "queue"]),
        "chain": rng.choice([None, "off"]),
        "block_rows": rng.choice([None, None, 1, 7, 64, 4096]),
        "budget": rng.choice([None, "64MiB"]),
    }
    return {name: value for name, value in options.items() if value is not None}


def draw_apart(rng: random.Random) -> dict[str, Any]:
    """Options by which every operator has a task of its own, and is not spread."""
    return {"workers": 1, **rng.choice([{"chain": "off"}, {"mode": "threads"}])}


def draw_spreading(rng: random.Random) -> dict[str, Any]:
    """On how many workers an operator runs, and how."""
    made: dict[str, Any] = {}
    if rng.random() < 0.4:
        made["parallelism"] = rng.choice(["auto", 1, 2, 4])
    if rng.random() < 0.4:
        made["strategy"] = rng.choice(["auto", "merge", "exchange"])
    return made


def draw_windows(rng: random.Random, sessions: bool) -> Windows:
    """Small windows, so that rows are late and many windows close."""
    kind = rng.choice(["tumbling", "tumbling", "sliding", *(["session"] if sessions else [])])
    if kind == "session":
        return Windows("session", rng.randrange(2, 10))
    offset = rng.choice([0, 0, -3, 2])
    if kind == "tumbling":
        return Windows("tumbling", rng.randrange(3, 16), 0, offset)
    slide = rng.randrange(2, 8)
    return Windows("sliding", slide * rng.randrange(2, 7) // 2, slide, offset)


def draw_node(
    rng: random.Random, time: Type, nodes: Sequence[Node], outcomes: Sequence[Outcome], motif: str | None
) -> Node | None:
    """One more node over those that are there, or None if there is nothing for it to read."""
    op = motif or rng.choice(OPERATORS)
    open_ones = [n for n, one in enumerate(outcomes) if one.shape != "final"]
    first = open_ones[-1] if motif or rng.random() < 0.5 else rng.choice(open_ones)
    shape = outcomes[first].shape
    if op == "late":
        windows = [n for n, node in enumerate(nodes) if node.op in ("window", "stats", "top_k")]
        return Node(op, (windows[-1] if motif else rng.choice(windows),)) if windows else None
    if op in STATELESS:
        return Node(op, (first,), number=rng.randrange(len(MAPS)) if op == "map" else rng.randrange(2, 5))
    if op == "union":
        alike = [n for n in open_ones if same_columns(outcomes, n, first)]
        return Node(op, (first, *(rng.choice(alike) for _ in range(rng.randrange(1, 3)))))
    if shape == "bare":
        return None
    if op == "window":
        if rng.random() < 0.15 and has_one_way(nodes, first):
            return Node(op, (first,), draw_windows(rng, False), "lateness", rng.randrange(1, 12))
        keyed = int(rng.random() < 0.8)
        return Node(op, (first,), draw_windows(rng, True), rng.choice(EXACT_KINDS), keyed)
    if op == "stats":
        return Node(op, (first,), draw_windows(rng, True))
    if op == "top_k":
        return Node(op, (first,), draw_windows(rng, False), number=rng.randrange(1, 4))
    # Times of both sides are of the same type: windows of narrow whole numbers have wide bounds.
    mixes = time.kind != "int" or (time.bits == 64 and time.signed)
    seconds = [n for n in open_ones if outcomes[n].shape == shape or (mixes and outcomes[n].shape != "bare")]
    sources = [n for n in seconds if nodes[n].op == "stream"]
    second = rng.choice(sources if sources and rng.random() < (0.8 if motif else 0.4) else seconds)
    if rng.random() < 0.5:
        first, second = second, first
    if op == "cogroup":
        return Node(op, (first, second), draw_windows(rng, True))
    return Node(op, (first, second), draw_windows(rng, False), rng.choice(["inner", "left", "right", "full"]))


def same_columns(outcomes: Sequence[Outcome], one: int, other: int) -> bool:
    """Whether two nodes can be put together."""
    mine, theirs = outcomes[one], outcomes[other]
    return mine.shape == theirs.shape and (mine.shape != "bare" or mine.origin == theirs.origin)


def has_one_way(nodes: Sequence[Node], number: int) -> bool:
    """Whether rows come from one source by one way: only then it is certain what a window gives out first."""
    node = nodes[number]
    return node.op != "union" and all(has_one_way(nodes, n) for n in node.inputs[:1]) and len(node.inputs) < 2


def draw_types(rng: random.Random) -> tuple[Type, Type]:
    """The types of times and of keys."""
    return rng.choice(TIMES), rng.choice(KEYS)[0]


def draw_graph(
    rng: random.Random, types: tuple[Type, Type], feeds: Sequence[Feed], motifs: Sequence[tuple[str, ...]]
) -> tuple[Graph, list[Outcome]]:
    """A few operators over the streams, one to three outputs, and what each node must give."""
    time, key = types
    nodes = [Node("stream", number=n) for n in range(len(feeds))]
    outcomes = [stream_of(feed) for feed in feeds]
    graph = Graph(time, key, len(feeds), tuple(nodes), ())
    motif: Sequence[str | None] = rng.choice(motifs) if motifs is MEETINGS or rng.random() < 0.6 else ()
    more = [0, 0, 0, 1] if motifs is MEETINGS else [0, 1, 2, 3, 4, 6] if motif else [1, 2, 3, 4, 6, 8]
    for op in (*motif, *[None] * rng.choice(more)):
        node = draw_node(rng, time, nodes, outcomes, op)
        # Two nodes that are alike are one to the engine.
        if node is None or node in nodes:
            continue
        made = interpret(graph, node, [outcomes[n] for n in node.inputs])
        if len(made.items) <= MOST_ROWS and is_small(made):
            nodes.append(node)
            outcomes.append(made)
    last = len(nodes) - 1
    others = [rng.randrange(last + 1) for _ in range(rng.choice([0] if motifs is MEETINGS else [0, 0, 1, 2]))]
    outputs = tuple(dict.fromkeys([last, *others]))
    return Graph(time, key, len(feeds), tuple(nodes), outputs), outcomes
