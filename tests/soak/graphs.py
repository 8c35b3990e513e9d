"""Random graphs of operators over several streams, as plain data, and how they are spoken in penstock.

A node reads nodes before it, so there are no cycles, and diamonds come by themselves. What comes out of a
node has one of these shapes, and is brought into it:

* `rows`: `t`, `k` and `v`, with a time.
* `wide`: `window_start`, `window_end`, `k` and `v`, with a time: results of windows.
* `bare`: `t`, `k` and `v`, or the same as `wide`, without a time: rows that came too late.
* `final`: results that nothing reads but an output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps
from penstock import col
from reference.engine import build_duration
from reference.grouping import build_agg
from reference.strategies import LONG
from reference.types import (
    DATE32,
    DATE64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    Type,
    Value,
    timestamp,
)
from reference.windowing import Windows

TIMES = (
    INT64, INT64, INT16, INT32, INT8, UINT8, UINT16, UINT32, DATE32, DATE64,
    timestamp("s"), timestamp("ms"), timestamp("us"), timestamp("ns"), timestamp("ms", "UTC"),
)  # fmt: skip
KEYS: tuple[tuple[Type, tuple[Value, ...]], ...] = (
    (STRING, ("a", "b", LONG, None)),
    (INT64, (1, 2, -(2**63), None)),
    (INT32, (1, 2, 3, None)),
    (UINT8, (0, 255, None)),
)
BOUNDS = ("window_start", "window_end")
EXACT_KINDS = ("count", "sum", "min", "max", "first", "last", "count_distinct")
STATS = {
    "n": ("count", None), "v": ("sum", "v"), "mean": ("mean", "v"), "var": ("var", "v"), "std": ("std", "v"),
    "least": ("min", "v"), "most": ("max", "v"), "first": ("first", "v"), "last": ("last", "v"),
    "different": ("count_distinct", "v"),
}  # fmt: skip
"""Every aggregate there is, at once."""
STATELESS = ("filter", "with_columns", "select", "project", "divide", "lookup", "lookup_left", "map")
WINDOWED = ("window", "stats", "top_k")


class PoisonError(Exception):
    """Raised by functions for rows that they cannot stand."""


@dataclass(frozen=True)
class Node:
    """An operator, the nodes that it reads, and what it is told."""

    op: str
    inputs: tuple[int, ...] = ()
    windows: Windows = Windows("tumbling", 10)  # noqa: RUF009 - it is frozen
    how: str = ""
    number: int = 0


@dataclass(frozen=True)
class Graph:
    """The types of times and keys, how many streams there are, the nodes over them, and the outputs."""

    time: Type
    key: Type
    streams: int
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    def reached(self, outputs: Sequence[int]) -> list[int]:
        """The nodes that lead to one of these."""
        found = set(outputs)
        for number in reversed(range(len(self.nodes))):
            if number in found:
                found.update(self.nodes[number].inputs)
        return sorted(found)

    def sources(self, outputs: Sequence[int]) -> list[int]:
        """The streams that lead to one of these."""
        return [number for number in self.reached(outputs) if number < self.streams]


def table_of(key: Type) -> dict[Value, int]:
    """What keys are looked up in: not all of them are there."""
    return {value: 10 * (place + 1) for place, value in enumerate(dict(KEYS)[key][:2])}


def doubled(value: Value) -> Value:
    """What functions make of a value."""
    assert value is None or isinstance(value, int)
    return None if value is None else 2 * value + 1


MAPS = ("double", "drop", "twice", "poison", "timeless")
"""What functions do with the rows of a batch, by number."""
TIMELESS = 3
"""Rows of that value lose their time in a function."""


def mapping(number: int) -> Callable[[ps.Batch], pa.Table]:
    """A function over batches, which treats each row alike."""
    way = MAPS[number]

    def function(batch: ps.Batch) -> pa.Table:
        table = pa.table(batch)
        values = table["v"].to_pylist()
        if way == "poison" and 2 in values:
            raise PoisonError(f"two is among {len(values)} values")
        chosen = [row for row, value in enumerate(values) if way != "drop" or value is None or value % 2 == 0]
        if way == "twice":
            chosen = [row for row in chosen for _ in range(2)]
        back = table.take(pa.array(chosen, pa.int64()))
        if way == "double":
            place = back.column_names.index("v")
            doubles = pa.array([doubled(value) for value in values], pa.int64())
            back = back.set_column(place, "v", doubles)
        if way == "timeless" and "t" in back.column_names:
            place = back.column_names.index("t")
            lost = pa.array([value == TIMELESS for value in values], pa.bool_())
            times = back["t"]
            back = back.set_column(place, "t", pc.if_else(lost, pa.scalar(None, times.type), times))
        return back

    return function


class Builder:
    """Speaks the nodes of a graph in penstock, each once."""

    def __init__(self, graph: Graph, streams: Sequence[ps.Stream]) -> None:
        self.graph = graph
        self.built: list[ps.Stream] = []
        for number, node in enumerate(graph.nodes):
            if node.op == "stream":
                self.built.append(streams[number])
            else:
                self.built.append(self.build(node, [self.built[n] for n in node.inputs]))

    def outputs(self, chosen: Sequence[int]) -> ps.Outputs:
        """Some of the nodes as outputs."""
        return ps.outputs(**{f"o{number}": self.built[number] for number in chosen})

    def window(self, windows: Windows) -> ps.Window:
        """Windows, in the unit of the times."""
        time = self.graph.time
        return windows.build("" if time.kind == "int" else time.unit)

    def build(self, node: Node, given: Sequence[ps.Stream]) -> ps.Stream:
        """One node."""
        first, number = given[0], node.number
        if node.op in STATELESS:
            return self.build_stateless(node, first)
        if node.op == "union":
            return ps.union(*given)
        if node.op == "late":
            return first.split_late()[1]
        window, shape = self.window(node.windows), [*BOUNDS, "k"]
        if node.op == "join":
            made = first.join(given[1], window=window, on="k", how=node.how)  # type: ignore[arg-type]
            return made.select(*shape, v=col("v") + col("v_right"))
        if node.op == "cogroup":
            both = first.cogroup(given[1], window=window, by="k")
            rows = both.agg(left={"m": ps.count()}, right={"n": ps.count("v")})
            return rows.select(*shape, v=col("m") * 100 + col("n"))
        if node.op == "top_k":
            found = first.window(window, by="k").top_k(number, "v")
            return found.select(*shape, v=col("v") * 10 + col("rank"))
        if node.op == "stats":
            return build_agg(first.window(window, by="k"), STATS)
        if node.how == "lateness":
            unit = self.graph.time
            kept = first.window(window, by="k", allowed_lateness=build_duration(number, unit))
            return kept.agg(v=ps.sum("v"))
        windowed = first.window(window) if number == 0 else first.window(window, by="k")
        return build_agg(windowed, {"v": (node.how, "v")})

    def build_stateless(self, node: Node, first: ps.Stream) -> ps.Stream:
        """A node that takes rows one by one, or a function."""
        number, names = node.number, first.schema.names
        if node.op == "filter":
            return first.filter(col("v") % number != 0)
        if node.op == "with_columns":
            return first.with_columns(v=col("v") * 3 + number)
        if node.op == "select":
            truth = col("v").is_null() | (col("v") > number)
            return first.select(*[name for name in names if name != "v"], v=truth.cast("int64"))
        if node.op == "project":
            return first.rename(v="w").with_columns(v=col("w") - number).drop("w")
        if node.op == "divide":
            # A column that nobody reads is not computed: the filter reads it.
            quotients = first.with_columns(v=ps.lit(60) // (col("v") - number))
            return quotients.filter(col("v").is_null() | (col("v") != 7))
        if node.op == "map":
            return first.map_batches(mapping(number))
        entries = table_of(self.graph.key)
        table = pa.table(
            {
                "k": pa.array(list(entries), self.graph.key.arrow()),
                "w": pa.array(list(entries.values()), pa.int64()),
            }
        )
        how = "inner" if node.op == "lookup" else "left"
        found = first.lookup(table, on="k", how=how)  # type: ignore[arg-type]
        return found.with_columns(v=col("v") + col("w")).drop("w")
