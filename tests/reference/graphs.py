"""Random graphs of operators over several streams, as plain data, with a naive interpreter.

A graph is a list of nodes, each of which reads nodes before it: so there are no cycles, and diamonds come by
themselves. Nodes have one of two shapes, and each is brought into it: rows of a stream have the columns `t`,
`k` and `v`, results of windows `window_start`, `window_end`, `k` and `v`.

Graphs that are `wild` have times of any width, functions of the user's own, and operators that reject rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference.engine import batches_of
from reference.grouping import aggregate, build_agg, cogrouped
from reference.joining import Side, joined
from reference.plans import Row
from reference.strategies import cuts
from reference.types import INT8, INT16, INT32, INT64, STRING, UINT8, UINT16, UINT32, Type, Value
from reference.windowing import Arrived, Windows, arrive, group, still_open

TIMES = (INT64, INT8, INT16, INT32, UINT8, UINT16, UINT32)
NAMES = pa.table({"k": ["a", "c"], "w": [1, 2]})
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
    time: Type = INT64

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
    raw: bool = True
    """Whether they are rows as they came in, and not made by the pipeline itself."""
    late: int = 0
    late_results: int = 0
    filtered: int = 0
    rejected: int = 0
    contributed: int | None = None
    """Rows that came in and are counted by an operator with state; None for any other node."""


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
    first, items = given[0], given[0].items
    if node.op in CHANGES:
        return CHANGES[node.op](node, first)
    if node.op == "union":
        every = [item for one in given for item in one.items]
        return Result(every, first.wide, all(one.raw for one in given))
    if node.op == "join":
        return join(node, given[0], given[1])
    if node.op == "cogroup":
        counts = ({"m": ("count", None)}, {"n": ("count", "v")})
        rows, _ = cogrouped(node.windows, (items, given[1].items), (["k"], ["k"]), counts)
        made = [wide_item(row, whole(row["m"]) * 100 + whole(row["n"]), row["k"]) for row in rows]
        return windowed(node, made, given)
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
    return windowed(node, made, given)


def kept(given: Result, items: list[Arrived]) -> Result:
    """Some of the rows; the others were filtered."""
    return Result(items, given.wide, given.raw, filtered=len(given.items) - len(items) if given.raw else 0)


def like(given: Result, value: Callable[[int | None], int | None]) -> Result:
    """The same rows with other values."""
    items = [changed(i, value(None if i.row["v"] is None else whole(i.row["v"]))) for i in given.items]
    return Result(items, given.wide, given.raw)


def accepted(given: Result, good: Callable[[int], bool]) -> Result:
    """The rows whose values are good, or null; the others are rejected."""
    items = [i for i in given.items if i.row["v"] is None or good(whole(i.row["v"]))]
    return Result(items, given.wide, given.raw, rejected=len(given.items) - len(items))


def divided(node: Node, given: Result) -> Result:
    good = accepted(given, lambda value: value != node.number)
    parts = like(good, lambda value: None if value is None else 12 // (value - node.number))
    return replace(parts, rejected=good.rejected)


def looked_up(node: Node, given: Result) -> Result:
    there = dict(zip(NAMES["k"].to_pylist(), NAMES["w"].to_pylist(), strict=True))
    found = kept(given, [i for i in given.items if node.how == "left" or i.row["k"] in there])

    def added(one: Value, more: int | None) -> int | None:
        return None if one is None or more is None else whole(one) + more

    return replace(found, items=[changed(i, added(i.row["v"], there.get(i.row["k"]))) for i in found.items])


CHANGES: Mapping[str, Callable[[Node, Result], Result]] = {
    "filter": lambda node, given: kept(
        given, [i for i in given.items if i.row["v"] is not None and whole(i.row["v"]) % node.number != 0]
    ),
    "with_columns": lambda node, given: like(
        given, lambda value: None if value is None else value * 3 + node.number
    ),
    "select": lambda node, given: like(given, lambda value: int(value is None or value > node.number)),
    "divide": divided,
    "narrow": lambda node, given: accepted(given, lambda value: 0 <= value <= 255),
    "lookup": looked_up,
    # What comes back from a function is of the pipeline's own making.
    "function": lambda node, given: replace(accepted(given, lambda value: value != node.number), raw=False),
}
"""Operators that look at one row at a time."""


def windowed(node: Node, made: list[Arrived], given: Sequence[Result]) -> Result:
    """The result of something that keeps rows: results of windows are no rows of a stream any more."""
    late = [sum(not still_open(node.windows, item) for item in one.items) for one in given]
    raw = [(len(one.items), many) for one, many in zip(given, late, strict=True) if one.raw]
    of_raw = sum(many for _, many in raw)
    contributed = sum(rows for rows, _ in raw) - of_raw
    return Result(made, True, False, late=of_raw, late_results=sum(late) - of_raw, contributed=contributed)


def join(node: Node, left: Result, right: Result) -> Result:
    columns = [["k", "v", *(BOUNDS if one.wide else ["t"])] for one in (left, right)]
    rows, _ = joined(
        node.windows, Side(left.items, columns[0], ["k"]), Side(right.items, columns[1], ["k"]), node.how
    )
    made = []
    for row in rows:
        both = row["v"] is not None and row["v_right"] is not None
        made.append(wide_item(row, whole(row["v"]) + whole(row["v_right"]) if both else None, row["k"]))
    return windowed(node, made, (left, right))


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
    if node.op == "divide":
        return first.with_columns(v=12 // (col("v") - node.number))
    if node.op == "narrow":
        return first.with_columns(v=col("v").cast("uint8").cast("int64"))
    if node.op == "lookup":
        names = shape if wide else ["t", "k"]
        found = first.lookup(NAMES, on="k", how=how)  # type: ignore[arg-type]
        return found.select(*names, v=col("v") + col("w"))
    if node.op == "function":
        return first.map_batches(FUNCTIONS[node.number])
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
    return build_agg(first.window(window, by=by), {"v": (how, "v")})


def answer(graph: Graph) -> Answer:
    """Interprets a graph."""
    results = interpret_all(graph.streams, graph.nodes)
    reached = graph.reached()
    account = {"rows_in": sum(len(stream.rows) for stream in graph.sources().values())}
    account["rows_late"] = sum(results[n].late for n in reached)
    account["late_results"] = sum(results[n].late_results for n in reached)
    account["rows_filtered"] = sum(results[n].filtered for n in reached)
    account["rows_shed"] = 0
    reads_raw = {n: all(results[at].raw for at in graph.nodes[n].inputs) for n in reached}
    account["rows_rejected"] = sum(results[n].rejected for n in reached if reads_raw[n])
    account["rejected_results"] = sum(results[n].rejected for n in reached if not reads_raw[n])
    contributed = sum(len(results[n].items) for n in graph.outputs if results[n].raw)
    for n in reached:
        made = results[n]
        if made.contributed is not None:
            contributed += made.contributed
        elif not made.raw:
            # A function, or a union with results: rows that came in end here, unless they are rejected.
            raw = sum(len(results[at].items) for at in graph.nodes[n].inputs if results[at].raw)
            contributed += raw - (made.rejected if reads_raw[n] else 0)
    account["rows_contributed"] = contributed
    readers = [number for n in reached for number in graph.nodes[n].inputs] + list(graph.outputs)
    copies = {n: readers.count(n) - 1 for n in reached if results[n].raw}
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


def stream_of(number: int, stream: Stream, time: Type = INT64) -> ps.Stream:
    """The stream of that number."""
    schema = {"t": str(time), "k": "string", "v": "int64"}
    return ps.stream(schema, time="t", delay=stream.delay, name=f"s{number}")


def build_all(graph: Graph) -> ps.Outputs:
    """The graph as penstock outputs `o0`, `o1` and so on."""
    built: list[ps.Stream] = []
    for number, node in enumerate(graph.nodes):
        if node.op == "stream":
            built.append(stream_of(number, graph.streams[number], graph.time))
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
WILD = ("function", "divide", "lookup", "function", "narrow", *OPERATORS)
EXACT_KINDS = ("count", "sum", "min", "max", "first", "last", "count_distinct")


def picky(number: int) -> Callable[[ps.Batch], pa.Table]:
    """A function of the user's own, which cannot stand one of the values."""

    def function(batch: ps.Batch) -> pa.Table:
        table = pa.table(batch)
        if number in table["v"].to_pylist():
            raise ValueError(f"no {number}")
        return table

    return function


FUNCTIONS = {number: picky(number) for number in range(2, 5)}


@st.composite
def some_streams(draw: st.DrawFn, least: int) -> Stream:
    """Rows from some time on, out of order by less and by more than the delay."""
    cell = st.tuples(
        st.integers(least, least + 55),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([None, *range(-3, 9)]),
    )
    rows = draw(st.lists(cell, min_size=draw(st.sampled_from([8, 12, 0])), max_size=16))
    if draw(st.booleans()):
        rows = sorted(rows, key=lambda row: row[0] // 7)
    made = tuple({"t": t, "k": k, "v": v} for t, k, v in rows)
    return Stream(made, draw(st.integers(0, 9)), tuple(draw(cuts(len(made)))))


@st.composite
def nodes_over(draw: st.DrawFn, results: Sequence[Result], operators: Sequence[str]) -> Node:
    """One more node over those that are there."""
    op = draw(st.sampled_from(operators))
    anywhere = st.integers(0, len(results) - 1)
    first = draw(st.one_of(st.just(len(results) - 1), anywhere))
    if op == "lookup":
        return Node(op, (first,), how=draw(st.sampled_from(["inner", "left"])))
    if op == "narrow":
        return Node(op, (first,))
    if op in CHANGES:
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
def graphs(draw: st.DrawFn, *, wild: bool = False) -> Graph:
    """One to three streams, a few operators over them, and one to three outputs."""
    time = draw(st.sampled_from(TIMES)) if wild else INT64
    streams = [
        draw(some_streams(-15 if time.signed else 60)) for _ in range(draw(st.sampled_from([2, 1, 3])))
    ]
    nodes = [Node("stream", number=n) for n in range(len(streams))]
    results = interpret_all(streams, nodes)
    for _ in range(draw(st.sampled_from([6, 4, 8, 2]))):
        node = draw(nodes_over(results, WILD if wild else OPERATORS))
        made = interpret(node, [results[n] for n in node.inputs])
        # Two nodes that are alike are one to the engine, and large ones take the reference too long.
        # Bounds of windows are wider than narrow times, and two streams that meet have times of one type.
        meet = time == INT64 or len({results[n].wide for n in node.inputs}) == 1
        if node not in nodes and len(made.items) <= MOST_ROWS and meet:
            nodes.append(node)
            results.append(made)
    last = len(nodes) - 1
    others = st.lists(st.integers(0, last), max_size=2)
    return Graph(tuple(streams), tuple(nodes), tuple(dict.fromkeys([last, *draw(others)])), time)


@st.composite
def meetings(draw: st.DrawFn) -> Graph:
    """Two or three streams that meet as they are, or nearly so, in one operator after the other."""
    streams = [draw(some_streams(-15)) for _ in range(draw(st.sampled_from([2, 3])))]
    nodes = [Node("stream", number=n) for n in range(len(streams))]
    results = interpret_all(streams, nodes)

    def add(node: Node) -> int:
        nodes.append(node)
        results.append(interpret(node, [results[n] for n in node.inputs]))
        return len(nodes) - 1

    def side(number: int) -> int:
        """The stream itself, more often than what a filter leaves of it."""
        return number if draw(st.integers(0, 3)) else add(Node("filter", (number,), number=2))

    met = side(0)
    for number in range(1, len(streams)):
        inputs = draw(st.permutations([met, side(number)]))
        how = draw(st.sampled_from(["inner", "left", "right", "full"]))
        made = draw(st.sampled_from([Node("cogroup"), Node("join", how=how)]))
        met = add(replace(made, inputs=tuple(inputs), windows=draw(SMALL_WINDOWS)))
    assume(len(results[met].items) <= MOST_ROWS)
    return Graph(tuple(streams), tuple(nodes), (met,))


def inputs(graph: Graph) -> dict[str, Any]:
    """The data of each stream that is read, as record batches."""
    columns = (("t", graph.time), ("k", STRING), ("v", INT64))
    return {name: batches_of(columns, one.rows, one.cuts) for name, one in graph.sources().items()}
