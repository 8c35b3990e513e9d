"""Joins of windows, by nested loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reference.plans import Row, group_key
from reference.types import Value
from reference.windowing import Arrived, Windows, clamped, still_open

BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True)
class Side:
    """One of the streams: its rows, all its columns in order, and its key."""

    arrived: Sequence[Arrived]
    columns: Sequence[str]
    on: Sequence[str]

    def others(self) -> list[str]:
        """The columns that are neither key nor the bounds of earlier windows."""
        return [name for name in self.columns if name not in self.on and name not in BOUNDS]


def matches(left: Side, one: Row, right: Side, other: Row) -> bool:
    """Whether two rows have the same key; null matches nothing."""
    mine, theirs = [one[name] for name in left.on], [other[name] for name in right.on]
    return None not in mine and None not in theirs and group_key(mine) == group_key(theirs)


def paired(
    window: tuple[int, int], left: Side, one: Row | None, right: Side, other: Row | None, suffix: str
) -> dict[str, Value]:
    """A row of the result: the key under its name on the left, and nulls for a side without a row."""
    made: dict[str, Value] = {"window_start": clamped(window[0]), "window_end": clamped(window[1])}
    for mine, theirs in zip(left.on, right.on, strict=True):
        if one is not None:
            made[mine] = one[mine]
        else:
            assert other is not None
            made[mine] = other[theirs]
    for name in left.others():
        made[name] = None if one is None else one[name]
    for name in right.others():
        taken = name in left.columns and name not in BOUNDS
        made[name + suffix if taken else name] = None if other is None else other[name]
    return made


def joined(
    windows: Windows, left: Side, right: Side, how: str, suffix: str = "_right"
) -> tuple[list[dict[str, Value]], list[Arrived]]:
    """What the join gives, and the rows of both sides that came too late."""
    late = [one for side in (left, right) for one in side.arrived if not still_open(windows, one)]
    rows: list[dict[str, Value]] = []
    for one in left.arrived:
        for window in still_open(windows, one):
            partners = [
                other.row
                for other in right.arrived
                if window in still_open(windows, other) and matches(left, one.row, right, other.row)
            ]
            rows.extend(paired(window, left, one.row, right, other, suffix) for other in partners)
            if not partners and how in ("left", "full"):
                rows.append(paired(window, left, one.row, right, None, suffix))
    if how in ("right", "full"):
        for other in right.arrived:
            for window in still_open(windows, other):
                alone = not any(
                    window in still_open(windows, one) and matches(left, one.row, right, other.row)
                    for one in left.arrived
                )
                if alone:
                    rows.append(paired(window, left, None, right, other.row, suffix))
    return rows, late
