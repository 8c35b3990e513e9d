"""What windows make of their rows: one row for each window and key, with aggregates of every kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import penstock as ps
from reference.aggregates import Approximate, float_sum, sort_key
from reference.plans import group_key
from reference.types import Value
from reference.windowing import Arrived, Windows, clamped, group

Timed = Sequence[tuple[int, Value]]
"""The values of a group with the times of their rows, nulls left out."""
Aggregates = Mapping[str, tuple[str, str | None]]
"""The name of each aggregate, with its kind and its column; without one, rows are counted."""


def as_fraction(value: Value) -> Fraction:
    """A number, exactly."""
    assert isinstance(value, int | float | Decimal)
    return Fraction(value)


def total(values: Sequence[Value]) -> Value:
    """The sum: exact for whole numbers and decimals, with its magnitude for floats."""
    if isinstance(values[0], float):
        return float_sum([float(value) for value in values if isinstance(value, float)])
    if isinstance(values[0], Decimal):
        return sum((value for value in values if isinstance(value, Decimal)), Decimal(0))
    return sum(int(value) for value in values if isinstance(value, int))


def mean(values: Sequence[Value]) -> Value:
    """The mean, with the mean of magnitudes that it is judged by."""
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        floats = float_sum([float(value) for value in values if isinstance(value, float)])
        return Approximate(floats / len(values), floats.magnitude)
    numbers = [as_fraction(value) for value in values]
    magnitude = sum(map(abs, numbers)) / len(numbers)
    return Approximate(float(sum(numbers) / len(numbers)), float(magnitude))


def variance(values: Sequence[Value]) -> Approximate | None:
    """The variance of a sample; not a number if one of the values is infinite or none."""
    if len(values) < 2:
        return None
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return Approximate(math.nan, math.inf)
    numbers = [as_fraction(value) for value in values]
    middle = sum(numbers) / len(numbers)
    squares = sum((number - middle) ** 2 for number in numbers) / (len(numbers) - 1)
    # A sum of squares loses digits to the squares themselves, not to their distance from the mean.
    magnitude = sum(number**2 for number in numbers) / (len(numbers) - 1)
    return Approximate(float(squares), float(magnitude))


def deviation(values: Sequence[Value]) -> Value:
    """The standard deviation of a sample."""
    squares = variance(values)
    if squares is None or math.isnan(squares):
        return squares
    return Approximate(math.sqrt(squares), math.sqrt(squares.magnitude))


def at_first(timed: Timed) -> Value:
    """The smallest of the values at the earliest time."""
    earliest = min(time for time, _ in timed)
    return min((value for time, value in timed if time == earliest), key=sort_key)  # type: ignore[arg-type]


def at_last(timed: Timed) -> Value:
    """The largest of the values at the latest time."""
    latest = max(time for time, _ in timed)
    return max((value for time, value in timed if time == latest), key=sort_key)  # type: ignore[arg-type]


def values_of(timed: Timed) -> list[Value]:
    return [value for _, value in timed]


KINDS: dict[str, tuple[Callable[..., ps.Aggregate], Callable[[Timed], Value]]] = {
    "sum": (ps.sum, lambda timed: total(values_of(timed))),
    "min": (ps.min, lambda timed: min(values_of(timed), key=sort_key)),  # type: ignore[arg-type]
    "max": (ps.max, lambda timed: max(values_of(timed), key=sort_key)),  # type: ignore[arg-type]
    "mean": (ps.mean, lambda timed: mean(values_of(timed))),
    "var": (ps.var, lambda timed: variance(values_of(timed))),
    "std": (ps.std, lambda timed: deviation(values_of(timed))),
    "first": (ps.first, at_first),
    "last": (ps.last, at_last),
    "count": (ps.count, len),
    "count_distinct": (ps.count_distinct, lambda timed: len({group_key([v]) for v in values_of(timed)})),
}
"""How each aggregate is spoken in penstock, and what it makes of at least one value."""


def aggregate(kind: str, column: str | None, rows: Sequence[Arrived]) -> Value:
    """One aggregate over the rows of a group."""
    if column is None:
        return len(rows)
    timed = [(one.time, one.row[column]) for one in rows if one.row[column] is not None]
    if not timed:
        return 0 if kind in ("count", "count_distinct") else None
    return KINDS[kind][1](timed)


def build(aggregates: Aggregates) -> dict[str, ps.Aggregate]:
    """The aggregates, spoken in penstock."""
    return {
        name: ps.count() if column is None else KINDS[kind][0](column)
        for name, (kind, column) in aggregates.items()
    }


def build_agg(windowed: ps.WindowedStream, aggregates: Aggregates) -> ps.Stream:
    """The results of the windows of any stream. Where all rows of a window have one time, the engine refuses
    `first` and `last`: they would be the smallest and the largest value."""
    try:
        return windowed.agg(**build(aggregates))
    except ps.PlanError:
        instead = {"first": "min", "last": "max"}
        other = {name: (instead.get(kind, kind), column) for name, (kind, column) in aggregates.items()}
        if other == aggregates:
            raise
        return windowed.agg(**build(other))


def aggregated(
    windows: Windows,
    arrived: Sequence[Arrived],
    by: Sequence[str],
    aggregates: Aggregates,
    allowed: int = 0,
) -> tuple[list[dict[str, Value]], list[Arrived]]:
    """One row for each window and key, and the rows that came too late."""
    grouped = group(windows, arrived, lambda row: [row[name] for name in by], allowed)
    rows: list[dict[str, Value]] = []
    for (start, end, _), members in grouped.groups.items():
        row: dict[str, Value] = {"window_start": clamped(start), "window_end": clamped(end)}
        row.update({name: members[0].row[name] for name in by})
        row.update({name: aggregate(kind, column, members) for name, (kind, column) in aggregates.items()})
        rows.append(row)
    return rows, grouped.late


def cogrouped(
    windows: Windows,
    sides: tuple[Sequence[Arrived], Sequence[Arrived]],
    by: tuple[Sequence[str], Sequence[str]],
    aggregates: tuple[Aggregates, Aggregates],
) -> tuple[list[dict[str, Value]], int]:
    """One row for each window and key that either side has, and how many rows came too late."""
    tagged = [
        Arrived({"side": side, **one.row}, one.time, one.watermark) for side in (0, 1) for one in sides[side]
    ]

    def key(row: Mapping[str, Value]) -> list[Value]:
        return [row[name] for name in by[int(bool(row["side"]))]]

    grouped = group(windows, tagged, key)
    rows: list[dict[str, Value]] = []
    for (start, end, _), members in grouped.groups.items():
        row: dict[str, Value] = {"window_start": clamped(start), "window_end": clamped(end)}
        row.update(zip(by[0], key(members[0].row), strict=True))
        for side in (0, 1):
            mine = [one for one in members if one.row["side"] == side]
            for name, (kind, column) in aggregates[side].items():
                row[name] = aggregate(kind, column, mine)
        rows.append(row)
    return rows, len(grouped.late)
