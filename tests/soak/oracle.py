"""What must come out of a graph, and what must become of each row: the naive operators of `reference`.

Rows are *raw* as they came in from a source; behind an operator with state, or a function, they are results.
Only raw rows are in the account; of results it is counted apart how many came too late or were rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reference.aggregates import Approximate
from reference.grouping import aggregate, aggregated, cogrouped
from reference.joining import Side, joined
from reference.plans import Row
from reference.types import Value
from reference.windowing import Arrived, Windows, group, still_open
from soak.feeds import Feed
from soak.graphs import BOUNDS, MAPS, STATS, TIMELESS, Graph, Node, doubled, table_of

LARGEST = 2**60
"""Values above it stay out, so that no sum overflows."""


@dataclass
class Outcome:
    """What a node gives, and what became of the rows that came to it."""

    items: list[Arrived]
    shape: str
    raw: bool
    late: list[Arrived] = field(default_factory=list)
    rows_late: int = 0
    late_results: int = 0
    filtered: int = 0
    contributed: int = 0
    rejected: int = 0
    rejected_results: int = 0
    screened: int = 0
    """Of a stream: rows that its source did not take."""
    origin: str = "rows"
    """The shape of the rows that a late one has gone on from: it says which columns those have."""

    def count_late(self, one: Arrived, raw: bool) -> None:
        """A row came too late."""
        self.late.append(one)
        self.rows_late += raw
        self.late_results += not raw

    def reject(self, rows: int, raw: bool) -> None:
        """An operator had no answer for some rows."""
        self.rejected += rows if raw else 0
        self.rejected_results += 0 if raw else rows


@dataclass
class Answer:
    """The rows of some outputs, and the account of a query that gives them."""

    rows: dict[int, list[Row]]
    account: dict[str, int]
    rejected: int


def whole(value: Value) -> int:
    assert isinstance(value, int)
    return value


def with_value(one: Arrived, value: Value) -> Arrived:
    return Arrived({**one.row, "v": value}, one.time, one.watermark)


def wide(start: Value, end: Value, key: Value, value: Value) -> Arrived:
    """A result of a window: its time is the last one of the window, and no watermark has passed it."""
    return Arrived({"window_start": start, "window_end": end, "k": key, "v": value}, whole(end) - 1)


def interpret(graph: Graph, node: Node, given: Sequence[Outcome]) -> Outcome:
    """What a node other than a source makes of what it reads."""
    first = given[0]
    if node.op in STAGES:
        return STAGES[node.op](graph, node, first)
    if node.op == "map":
        return mapped(node, first)
    if node.op == "union":
        return united(given)
    if node.op == "late":
        items = [Arrived(one.row, one.time) for one in first.late]
        return Outcome(items, "bare", raw=False, origin=first.origin)
    if node.op == "join":
        return join(node, given[0], given[1])
    if node.op == "cogroup":
        return cogroup(node, given[0], given[1])
    return windowed(node, first)


# Rows one by one.


def staged(first: Outcome, change: Callable[[Arrived], Arrived | None]) -> Outcome:
    """Rows that become others, or none."""
    kept = [made for one in first.items if (made := change(one)) is not None]
    dropped = len(first.items) - len(kept) if first.raw else 0
    return Outcome(kept, first.shape, first.raw, filtered=dropped, origin=first.origin)


def filtered(graph: Graph, node: Node, first: Outcome) -> Outcome:
    def change(one: Arrived) -> Arrived | None:
        value = one.row["v"]
        return one if value is not None and whole(value) % node.number != 0 else None

    return staged(first, change)


def computed(graph: Graph, node: Node, first: Outcome) -> Outcome:
    def change(one: Arrived) -> Arrived:
        value = one.row["v"]
        if node.op == "select":
            return with_value(one, int(value is None or whole(value) > node.number))
        if value is None:
            return one
        return with_value(
            one, whole(value) * 3 + node.number if node.op == "with_columns" else whole(value) - node.number
        )

    return staged(first, change)


def divided(graph: Graph, node: Node, first: Outcome) -> Outcome:
    bad = [one for one in first.items if one.row["v"] == node.number]

    def change(one: Arrived) -> Arrived | None:
        value = one.row["v"]
        if value is None:
            return one
        if value == node.number:
            return None
        quotient = 60 // (whole(value) - node.number)
        return None if quotient == 7 else with_value(one, quotient)

    made = staged(first, change)
    made.filtered -= len(bad) if first.raw else 0
    made.reject(len(bad), first.raw)
    return made


def looked_up(graph: Graph, node: Node, first: Outcome) -> Outcome:
    table = table_of(graph.key)

    def change(one: Arrived) -> Arrived | None:
        key, value = one.row["k"], one.row["v"]
        found = None if key is None else table.get(key)
        if found is None:
            return None if node.op == "lookup" else with_value(one, None)
        return with_value(one, None if value is None else whole(value) + found)

    return staged(first, change)


STAGES: dict[str, Callable[[Graph, Node, Outcome], Outcome]] = {
    "filter": filtered, "with_columns": computed, "select": computed, "project": computed,
    "divide": divided, "lookup": looked_up, "lookup_left": looked_up,
}  # fmt: skip


def mapped(node: Node, first: Outcome) -> Outcome:
    """What comes back from a function are results; its rows keep their time."""
    way = MAPS[node.number]
    bad = sum(way == "poison" and one.row["v"] == 2 for one in first.items)
    back: list[Arrived] = []
    timeless = 0
    for one in first.items:
        value = one.row["v"]
        if way == "double":
            back.append(with_value(one, doubled(value)))
        elif way == "drop":
            back.extend([one] if value is None or whole(value) % 2 == 0 else [])
        elif way == "twice":
            back.extend([one, one])
        elif way == "timeless":
            if value != TIMELESS or "t" not in one.row:
                back.append(one)
            elif first.shape == "bare":
                back.append(Arrived({**one.row, "t": None}, one.time, one.watermark))
            else:
                timeless += 1
        elif value != 2:
            back.append(one)
    made = Outcome(back, first.shape, raw=False, origin=first.origin)
    made.contributed = len(first.items) - bad if first.raw else 0
    made.reject(bad, first.raw)
    made.reject(timeless, raw=False)
    return made


def united(given: Sequence[Outcome]) -> Outcome:
    """Raw rows stay raw among themselves; where they meet results, they have contributed."""
    raw = all(one.raw for one in given)
    items = [item for one in given for item in one.items]
    made = Outcome(items, given[0].shape, raw, origin=given[0].origin)
    if not raw:
        made.contributed = sum(len(one.items) for one in given if one.raw)
    return made


# Operators with state.


def entered(made: Outcome, given: Sequence[Outcome]) -> Outcome:
    """Counts what came into an operator with state."""
    made.contributed = sum(len(one.items) for one in given if one.raw) - made.rows_late
    return made


def windowed(node: Node, first: Outcome) -> Outcome:
    windows, items = node.windows, first.items
    made = Outcome([], "wide", raw=False, origin=first.shape)
    if node.op == "stats":
        rows, late = aggregated(windows, items, ["k"], STATS)
        made.items, made.shape = [Arrived(row, whole(row["window_end"])) for row in rows], "final"
    elif node.how == "lateness":
        made.items, late = corrected(windows, items, node.number)
        made.shape = "final"
    else:
        keyed = node.op == "top_k" or node.number == 1
        grouped = group(windows, items, lambda row: [row["k"]] if keyed else [])
        late = grouped.late
        for (start, end, _), members in grouped.groups.items():
            key = members[0].row["k"]
            if node.op == "top_k":
                values = [whole(one.row["v"]) for one in members if one.row["v"] is not None]
                for rank, value in enumerate(sorted(values, reverse=True)[: node.number], 1):
                    made.items.append(wide(start, end, key, value * 10 + rank))
            else:
                made.items.append(wide(start, end, key, aggregate(node.how, "v", members)))
        if not keyed:
            made.shape = "final"
            made.items = [
                Arrived({name: value for name, value in one.row.items() if name != "k"}, one.time)
                for one in made.items
            ]
    for one in late:
        made.count_late(one, first.raw)
    return entered(made, [first])


def corrected(
    windows: Windows, items: Sequence[Arrived], allowed: int
) -> tuple[list[Arrived], list[Arrived]]:
    """Results as they come first, and once more those of windows that took rows in afterwards."""
    grouped = group(windows, items, lambda row: [row["k"]], allowed)
    made = []
    for (start, end, _), members in grouped.groups.items():
        early = [one for one in members if one.watermark is None or one.watermark < end]
        for correction, chosen in ((False, early), (True, members)):
            if chosen and (not correction or len(early) < len(members)):
                value = aggregate("sum", "v", chosen)
                row = {**wide(start, end, members[0].row["k"], value).row, "is_correction": correction}
                made.append(Arrived(row, whole(end)))
    return made, grouped.late


def count_late_of(made: Outcome, windows: Windows, given: Sequence[Outcome]) -> None:
    for side in given:
        for one in side.items:
            if not still_open(windows, one):
                made.count_late(one, side.raw)


def join(node: Node, left: Outcome, right: Outcome) -> Outcome:
    sides = [
        Side(one.items, ["k", "v", *(BOUNDS if one.shape == "wide" else ["t"])], ["k"])
        for one in (left, right)
    ]
    made = Outcome([], "wide", raw=False)
    for row in joined(node.windows, sides[0], sides[1], node.how)[0]:
        both = row["v"] is not None and row["v_right"] is not None
        value = whole(row["v"]) + whole(row["v_right"]) if both else None
        made.items.append(wide(row["window_start"], row["window_end"], row["k"], value))
    count_late_of(made, node.windows, (left, right))
    return entered(made, (left, right))


def cogroup(node: Node, left: Outcome, right: Outcome) -> Outcome:
    counts = ({"m": ("count", None)}, {"n": ("count", "v")})
    rows, _ = cogrouped(node.windows, (left.items, right.items), (["k"], ["k"]), counts)
    made = Outcome([], "wide", raw=False)
    for row in rows:
        value = whole(row["m"]) * 100 + whole(row["n"])
        made.items.append(wide(row["window_start"], row["window_end"], row["k"], value))
    count_late_of(made, node.windows, (left, right))
    return entered(made, (left, right))


# The whole.


def is_small(outcome: Outcome) -> bool:
    """Whether no value is so large that a sum of them could overflow."""
    values = [one.row.get("v") for one in outcome.items]
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, Approximate)]
    return all(abs(value) < LARGEST for value in numbers)


def stream_of(feed: Feed, pieces: int | None = None) -> Outcome:
    """What the first pieces of a feed give; None is for all."""
    screened = feed.screen(pieces)
    return Outcome(screened.taken, "rows", raw=True, screened=screened.rejected)


def outcomes_of(graph: Graph, feeds: Sequence[Feed], pieces: Mapping[int, int]) -> list[Outcome]:
    """What each node gives where of some streams only so many pieces were taken."""
    outcomes: list[Outcome] = []
    for number, node in enumerate(graph.nodes):
        if number < graph.streams:
            outcomes.append(stream_of(feeds[number], pieces.get(number)))
        else:
            outcomes.append(interpret(graph, node, [outcomes[n] for n in node.inputs]))
    return outcomes


def answer(
    graph: Graph,
    outcomes: Sequence[Outcome],
    outputs: Sequence[int],
    shared: frozenset[int] = frozenset(),
) -> Answer:
    """What a query gives that has these nodes as outputs.

    What a source of its own does not take is in its account; what a shared one does not take is in that
    source's.
    """
    reached = graph.reached(outputs)
    chosen = [outcomes[number] for number in reached]
    screened = sum(outcomes[n].screened for n in reached if n not in shared)
    readers = [n for number in reached for n in graph.nodes[number].inputs] + list(outputs)
    copies = {n: readers.count(n) - 1 for n in reached if outcomes[n].raw}
    given_out = sum(len(outcomes[n].items) for n in outputs if outcomes[n].raw)
    account = {
        "rows_in": screened + sum(len(outcomes[n].items) for n in reached if n < graph.streams),
        "rows_copied": sum(len(outcomes[n].items) * more for n, more in copies.items()),
        "rows_contributed": given_out + sum(one.contributed for one in chosen),
        "rows_filtered": sum(one.filtered for one in chosen),
        "rows_late": sum(one.rows_late for one in chosen),
        "rows_shed": 0,
        "rows_rejected": screened + sum(one.rejected for one in chosen),
        "late_results": sum(one.late_results for one in chosen),
        "rows_out": sum(len(outcomes[n].items) for n in outputs),
    }
    rejected = screened + sum(one.rejected + one.rejected_results for one in chosen)
    return Answer({n: [one.row for one in outcomes[n].items] for n in outputs}, account, rejected)
