"""Windows of every kind: which rows they hold, and which rows come too late for them.

Lateness belongs to a row and its source: the watermark that counts is the one that stood just before the row,
in the source it came from. Numbers are unbounded here; bounds are clamped where they are given out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import penstock as ps
from reference.plans import Row, group_key
from reference.types import I64_MAX, I64_MIN, Value

Group = tuple[int, int, Hashable]
"""Start, end and key of a window."""


@dataclass(frozen=True)
class Windows:
    """Tumbling, sliding or session windows; `size` is the gap of a session."""

    kind: str
    size: int
    slide: int = 0
    offset: int = 0

    @property
    def step(self) -> int:
        """From the start of one window to that of the next."""
        return self.slide if self.kind == "sliding" else self.size

    def build(self, unit: str = "") -> ps.Window:
        """The same, spoken in penstock; lengths have a unit, except below zero and of whole numbers."""

        def length(number: int) -> int | str:
            return f"{number}{unit}" if unit and number >= 0 else number

        if self.kind == "session":
            return ps.session(length(self.size))
        offset = length(self.offset)
        if self.kind == "sliding":
            return ps.sliding(length(self.size), length(self.slide), offset=offset)
        return ps.tumbling(length(self.size), offset=offset)

    def holding(self, time: int) -> list[tuple[int, int]]:
        """The windows that hold a time, the earliest first. Sessions: the one a row begins by itself."""
        if self.kind == "session":
            return [(time, time + self.size)]
        start = (time - self.offset) // self.step * self.step + self.offset
        found = []
        while start + self.size > time:
            found.append((start, start + self.size))
            start -= self.step
        return found[::-1]


@dataclass(frozen=True)
class Arrived:
    """A row, its time, and the watermark of its own source just before it; None if nothing came before."""

    row: Row
    time: int
    watermark: int | None = None


@dataclass
class Grouped:
    """The rows of each window and key in arrival order, and those that were late for all their windows."""

    groups: dict[Group, list[Arrived]] = field(default_factory=dict)
    late: list[Arrived] = field(default_factory=list)


def arrive(rows: Sequence[Row], time: str, delay: int = 0, marks: str | None = None) -> list[Arrived]:
    """Rows of one source in arrival order, where the watermark goes by the times or by a column of marks."""
    found: list[Arrived] = []
    greatest: int | None = None
    for row in rows:
        at, mark = row[time], row[time if marks is None else marks]
        assert isinstance(at, int)
        watermark = None if greatest is None else min(max(greatest - delay, I64_MIN), I64_MAX)
        found.append(Arrived(row, at, watermark))
        if mark is not None:
            assert isinstance(mark, int)
            greatest = mark if greatest is None else max(greatest, mark)
    return found


def still_open(windows: Windows, one: Arrived, allowed: int = 0) -> list[tuple[int, int]]:
    """The windows of a row that take it in: those that are not over by the watermark before it."""
    return [
        (start, end)
        for start, end in windows.holding(one.time)
        if one.watermark is None or end + allowed > one.watermark
    ]


def group(
    windows: Windows, arrived: Sequence[Arrived], key: Callable[[Row], Sequence[Value]], allowed: int = 0
) -> Grouped:
    """Rows by window and key."""
    made = Grouped()
    taken: list[tuple[Arrived, Hashable]] = []
    for one in arrived:
        if not still_open(windows, one, allowed):
            made.late.append(one)
            continue
        mine = group_key(key(one.row))
        taken.append((one, mine))
        if windows.kind != "session":
            for start, end in still_open(windows, one, allowed):
                made.groups.setdefault((start, end, mine), []).append(one)
    if windows.kind == "session":
        made.groups = sessions(windows.size, taken)
    return made


def sessions(gap: int, taken: Sequence[tuple[Arrived, Hashable]]) -> dict[Group, list[Arrived]]:
    """Rows of a key that follow each other by less than the gap, whenever they came."""
    groups: dict[Group, list[Arrived]] = {}
    for key in dict.fromkeys(key for _, key in taken):
        of_key = sorted((one for one, mine in taken if mine == key), key=lambda one: one.time)
        runs: list[list[Arrived]] = []
        for one in of_key:
            if runs and one.time - runs[-1][-1].time < gap:
                runs[-1].append(one)
            else:
                runs.append([one])
        for run in runs:
            groups[(run[0].time, run[-1].time + gap, key)] = run
    return groups


def clamped(time: int) -> int:
    """A bound as it is given out: beyond the range of int64 it is the last time there is."""
    return min(max(time, I64_MIN), I64_MAX)
