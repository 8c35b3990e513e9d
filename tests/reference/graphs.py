"""Random graphs of operators over several streams, as plain data, with a naive interpreter.

A graph is a list of nodes, each of which reads nodes before it: so there are no cycles, and diamonds come by
themselves. Nodes have one of two shapes, and each is brought into it: rows of a stream have the columns `t`,
`k` and `v`, results of windows `window_start`, `window_end`, `k` and `v`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference.engine import batches_of
from reference.grouping import KINDS, aggregate, cogrouped
from reference.joining import Side, joined
from reference.plans import Row
from reference.strategies import cuts
from reference.types import INT64, STRING, Value
from reference.windowing import Arrived, Windows, arrive, group

SCHEMA = {"t": "int64", "k": "string", "v": "int64"}
MOST_ROWS = 250
"""Of a node: joins of joins grow quickly."""
BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True)
class Node:
    """An operator, the nodes that it reads, and what it is told."""

    op: str
    inputs: tuple[int, ...] = ()
    windows: Windows = Windows("tumbling", 10)  # noqa: RUF009 - it is frozen
    how: str = ""
    number: int = 0


@dataclass(frozen=True)
class Stream:
    """A source: its rows in arrival order, where they are cut into batches, and how late they may be."""

    rows: tuple[Row, ...]
    delay: int
    cuts: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """Nodes, of which the first read the streams of the same number, and those that are given out."""

    streams: tuple[Stream, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    def reached(self) -> list[int]:
        """The nodes that lead to an output."""
        found = set(self.outputs)
        for number in reversed(range(len(self.nodes))):
            if number in found:
                found.update(self.nodes[number].inputs)
        return sorted(found)

    def sources(self) -> dict[str, Stream]:
        """The streams that are read, by name."""
        return {f"s{n}": self.streams[n] for n in self.reached() if n < len(self.streams)}


@dataclass
class Result:
    """What a node gives: rows of a stream or results of windows; and what became of the rows of streams."""

    items: list[Arrived]
    wide: bool = False
    late: int = 0
    filtered: int = 0
    contributed: int = 0


@dataclass
class Answer:
    """The rows of each output, and the account of the whole run."""

    rows: list[list[Row]]
    account: dict[str, int] = field(default_factory=dict)


def wide_item(row: Mapping[str, Value], value: Value, key: Value) -> Arrived:
    """A result of a window: its time is the last one of the window, and it is never late."""
    start, end = row["window_start"], row["window_end"]
    assert isinstance(end, int)
    return Arrived({"window_start": start, "window_end": end, "k": key, "v": value}, end - 1)


def whole(value: Value) -> int:
    assert isinstance(value, int)
    return value


def changed(item: Arrived, value: Value) -> Arrived:
    return Arrived({**item.row, "v": value}, item.time, item.watermark)


def interpret(node: Node, given: Sequence[Result]) -> Result:
    """What a node other than a source makes of what it reads."""
    items, wide = given[0].items, given[0].wide
    if node.op == "filter":
        kept = [i for i in items if i.row["v"] is not None and whole(i.row["v"]) % node.number != 0]
        return Result(kept, wide, filtered=0 if wide else len(items) - len(kept))
    if node.op == "with_columns":
        new = [changed(i, None if i.row["v"] is None else whole(i.row["v"]) * 3 + node.number) for i in items]
        return Result(new, wide)
    if node.op == "select":
        return Result(
            [changed(i, int(i.row["v"] is None or whole(i.row["v"]) > node.number)) for i in items], wide
        )
    if node.op == "union":
        return Result([item for one in given for item in one.items], wide)
    if node.op == "join":
        return join(node, given[0], given[1])
    if node.op == "cogroup":
        counts = ({"m": ("count", None)}, {"n": ("count", "v")})
        rows, late = cogrouped(node.windows, (items, given[1].items), (["k"], ["k"]), counts)
        made = [wide_item(row, whole(row["m"]) * 100 + whole(row["n"]), row["k"]) for row in rows]
        return windowed(made, late, given)
    keyed = node.op != "window" or node.number == 1
    grouped = group(node.windows, items, lambda row: [row["k"]] if keyed else [])
    made = []
    for (start, end, _), members in grouped.groups.items():
        bounds, key = {"window_start": start, "window_end": end}, members[0].row["k"] if keyed else "all"
        if node.op == "window":
            made.append(wide_item(bounds, aggregate(node.how, "v", members), key))
        else:
            placed = sorted((whole(i.row["v"]) for i in members if i.row["v"] is not None), reverse=True)
            for rank, value in enumerate(placed[: node.number], 1):
                made.append(wide_item(bounds, value * 10 + rank, key))
    return windowed(made, len(grouped.late), given)


def windowed(made: list[Arrived], late: int, given: Sequence[Result]) -> Result:
    """The result of something that keeps rows: results of windows are no rows of a stream any more."""
    rows = sum(len(one.items) for one in given if not one.wide)
    return Result(made, True, late=late, contributed=rows - late)


def join(node: Node, left: Result, right: Result) -> Result:
    columns = [["k", "v", *(BOUNDS if one.wide else ["t"])] for one in (left, right)]
    rows, late = joined(
        node.windows, Side(left.items, columns[0], ["k"]), Side(right.items, columns[1], ["k"]), node.how
    )
    made = []
    for row in rows:
        both = row["v"] is not None and row["v_right"] is not None
        made.append(wide_item(row, whole(row["v"]) + whole(row["v_right"]) if both else None, row["k"]))
    return windowed(made, len(late), (left, right))


def build(node: Node, given: Sequence[ps.Stream]) -> ps.Stream:
    """The same node, spoken in penstock."""
    first, shape = given[0], ["window_start", "window_end", "k"]
    wide = "window_start" in first.schema.names
    window, how = node.windows.build(), node.how
    if node.op == "filter":
        return first.filter(col("v") % node.number != 0)
    if node.op == "with_columns":
        return first.with_columns(v=col("v") * 3 + node.number)
    if node.op == "select":
        names = shape if wide else ["t", "k"]
        truth = col("v").is_null() | (col("v") > node.number)
        return first.select(*names, v=truth.cast("int64"))
    if node.op == "union":
        return ps.union(*given)
    if node.op == "join":
        made = first.join(given[1], window=window, on="k", how=how)  # type: ignore[arg-type]
        return made.select(*shape, v=col("v") + col("v_right"))
    if node.op == "cogroup":
        both = first.cogroup(given[1], window=window, by="k")
        rows = both.agg(left={"m": ps.count()}, right={"n": ps.count("v")})
        return rows.select(*shape, v=col("m") * 100 + col("n"))
    if node.op == "top_k":
        found = first.window(window, by="k").top_k(node.number, "v")
        return found.select(*shape, v=col("v") * 10 + col("rank"))
    by = "k" if node.number == 1 else ps.lit("all").alias("k")
    return first.window(window, by=by).agg(v=KINDS[how][0]("v"))


def answer(graph: Graph) -> Answer:
    """Interprets a graph."""
    results = interpret_all(graph.streams, graph.nodes)
    reached = graph.reached()
    account = {"rows_in": sum(len(stream.rows) for stream in graph.sources().values())}
    account["rows_late"] = sum(results[n].late for n in reached)
    account["rows_filtered"] = sum(results[n].filtered for n in reached)
    given_out = sum(len(results[n].items) for n in graph.outputs if not results[n].wide)
    account["rows_contributed"] = given_out + sum(results[n].contributed for n in reached)
    account["rows_shed"] = 0
    readers = [number for n in reached for number in graph.nodes[n].inputs] + list(graph.outputs)
    copies = {n: readers.count(n) - 1 for n in reached if not results[n].wide}
    account["rows_copied"] = sum(len(results[n].items) * more for n, more in copies.items())
    return Answer([[item.row for item in results[n].items] for n in graph.outputs], account)


def interpret_all(streams: Sequence[Stream], nodes: Sequence[Node]) -> list[Result]:
    results: list[Result] = []
    for number, node in enumerate(nodes):
        if node.op == "stream":
            results.append(Result(arrive(streams[number].rows, "t", streams[number].delay)))
        else:
            results.append(interpret(node, [results[n] for n in node.inputs]))
    return results


def build_all(graph: Graph) -> ps.Outputs:
    """The graph as penstock outputs `o0`, `o1` and so on."""
    built: list[ps.Stream] = []
    for number, node in enumerate(graph.nodes):
        if node.op == "stream":
            delay = graph.streams[number].delay
            built.append(ps.stream(SCHEMA, time="t", delay=delay, name=f"s{number}"))
        else:
            built.append(build(node, [built[n] for n in node.inputs]))
    return ps.outputs(**{f"o{place}": built[n] for place, n in enumerate(graph.outputs)})


# Drawing.

SMALL_WINDOWS = st.one_of(
    st.builds(Windows, st.just("tumbling"), st.integers(3, 15), st.just(0), st.integers(-3, 3)),
    st.builds(
        lambda slide, times, offset: Windows("sliding", slide * times // 2, slide, offset),
        st.integers(2, 8), st.integers(2, 6), st.integers(-3, 3),
    ),
)  # fmt: skip
SESSIONS = st.builds(Windows, st.just("session"), st.integers(2, 9))
OPERATORS = ("filter", "with_columns", "select", "union", "window", "window", "join", "cogroup", "top_k")
EXACT_KINDS = ("count", "sum", "min", "max", "first", "last", "count_distinct")


@st.composite
def some_streams(draw: st.DrawFn) -> Stream:
    """Rows around zero, out of order by less and by more than the delay."""
    cell = st.tuples(
        st.integers(-15, 40), st.sampled_from(["a", "b", None]), st.sampled_from([None, *range(-3, 9)])
    )
    rows = draw(st.lists(cell, min_size=draw(st.sampled_from([8, 12, 0])), max_size=16))
    if draw(st.booleans()):
        rows = sorted(rows, key=lambda row: row[0] // 7)
    made = tuple({"t": t, "k": k, "v": v} for t, k, v in rows)
    return Stream(made, draw(st.integers(0, 9)), tuple(draw(cuts(len(made)))))


@st.composite
def nodes_over(draw: st.DrawFn, results: Sequence[Result]) -> Node:
    """One more node over those that are there."""
    op = draw(st.sampled_from(OPERATORS))
    anywhere = st.integers(0, len(results) - 1)
    first = draw(st.one_of(st.just(len(results) - 1), anywhere))
    if op in ("filter", "with_columns", "select"):
        return Node(op, (first,), number=draw(st.integers(2, 4)))
    if op == "union":
        alike = [n for n, one in enumerate(results) if one.wide == results[first].wide]
        return Node(op, (first, *draw(st.lists(st.sampled_from(alike), min_size=1, max_size=2))))
    if op == "window":
        windows = draw(st.one_of(SMALL_WINDOWS, SESSIONS))
        return Node(op, (first,), windows, draw(st.sampled_from(EXACT_KINDS)), draw(st.integers(0, 1)))
    if op == "top_k":
        return Node(op, (first,), draw(SMALL_WINDOWS), number=draw(st.integers(1, 3)))
    second = draw(anywhere)
    if op == "cogroup":
        return Node(op, (first, second), draw(st.one_of(SMALL_WINDOWS, SESSIONS)))
    return Node(
        op, (first, second), draw(SMALL_WINDOWS), draw(st.sampled_from(["inner", "left", "right", "full"]))
    )


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """One to three streams, a few operators over them, and one to three outputs."""
    streams = [draw(some_streams()) for _ in range(draw(st.sampled_from([2, 1, 3])))]
    nodes = [Node("stream", number=n) for n in range(len(streams))]
    results = interpret_all(streams, nodes)
    for _ in range(draw(st.sampled_from([6, 4, 8, 2]))):
        node = draw(nodes_over(results))
        made = interpret(node, [results[n] for n in node.inputs])
        # Two nodes that are alike are one to the engine, and large ones take the reference too long.
        if node not in nodes and len(made.items) <= MOST_ROWS:
            nodes.append(node)
            results.append(made)
    last = len(nodes) - 1
    others = st.lists(st.integers(0, last), max_size=2)
    return Graph(tuple(streams), tuple(nodes), tuple(dict.fromkeys([last, *draw(others)])))


def inputs(graph: Graph) -> dict[str, Any]:
    """The data of each stream that is read, as record batches."""
    columns = (("t", INT64), ("k", STRING), ("v", INT64))
    return {name: batches_of(columns, one.rows, one.cuts) for name, one in graph.sources().items()}
