"""Random graphs of queries: one source, and what several plans make of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from reference.expressions import Column
from reference.plans import Agg, Lookup, Plan, Row, Source, Step, Window
from reference.strategies import (
    AGGREGATES,
    KEY_TYPES,
    TIME_TYPES,
    cuts,
    delays,
    groupings,
    rows,
    sizes,
    source_columns,
    steps,
)

FEEDS = ("table", "iterator", "push", "replay")
SINKS = ("collect", "function")


@dataclass(frozen=True)
class Dag:
    """Plans over one source, its rows in arrival order, and how rows come in and results go out."""

    plans: tuple[Plan, ...]
    rows: list[Row]
    cuts: list[int]
    feed: str
    sinks: tuple[str, ...]

    @property
    def source(self) -> Source:
        """What all of the plans read."""
        return self.plans[0].source


@st.composite
def dags(draw: st.DrawFn, least: int, most: int) -> Dag:
    """From `least` to `most` plans over one source. Only the last may be read by an iterator."""
    time, key = draw(st.sampled_from(TIME_TYPES)), draw(st.sampled_from(KEY_TYPES))
    size = draw(sizes(time))
    source = Source(source_columns(time, key), "t", draw(delays(time, size)))
    count = draw(st.integers(least, most))
    plans = tuple(Plan(source, draw(branches(source, size))) for _ in range(count))
    arriving = draw(rows(time, key, size))
    # A reader that waits for its batches holds up a shared source: at most one, read at once, can do so.
    sinks = (*(draw(st.sampled_from(SINKS)) for _ in plans[1:]), draw(st.sampled_from([*SINKS, "iterator"])))
    feed = draw(st.sampled_from(FEEDS))
    return Dag(plans, arriving, draw(cuts(len(arriving))), feed, sinks)


@st.composite
def branches(draw: st.DrawFn, source: Source, size: int) -> tuple[Step, ...]:
    """What one of the plans does: a few steps, with a window behind them or not."""
    before = draw(steps(dict(source.columns)["k"]))
    if not draw(st.sampled_from([True, True, False])):
        return tuple(before)
    by = draw(groupings(any(isinstance(step, Lookup) for step in before)))
    chosen = st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique_by=lambda a: a.name)
    aggs = (Agg("n", "count"), Agg("id_sum", "sum", Column("id")), *draw(chosen))
    return (*before, Window(size, by, aggs))
