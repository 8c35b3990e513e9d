"""Random streams under random windows, and what the engine and the reference make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import event
from hypothesis import strategies as st

import penstock as ps
from reference import engine, strategies
from reference.compare import as_bag
from reference.grouping import Aggregates, aggregated, build
from reference.options import run_one, run_options
from reference.plans import Row
from reference.types import INT64, Type, timestamp
from reference.windowing import Windows, arrive

EXACT: Aggregates = {
    "n": ("count", None), "ids": ("sum", "id"), "total": ("sum", "v"), "values": ("count", "v"),
    "different": ("count_distinct", "s"), "least": ("min", "f"), "most": ("max", "d"),
    "first": ("first", "s"), "last": ("last", "f"),
}  # fmt: skip
"""Aggregates that are exact, and do not depend on the order of rows."""
GROUPINGS = ((), ("k",), ("s",), ("b", "k"), ("k", "s", "v"))


@dataclass(frozen=True)
class Case:
    """Windows over a stream, its rows in arrival order, where they are cut, and how it is run."""

    windows: Windows
    time: Type
    key: Type
    by: tuple[str, ...]
    delay: int
    rows: list[Row]
    cuts: list[int]
    options: dict[str, Any]

    @property
    def unit(self) -> str:
        """What lengths are given in; nothing for whole numbers."""
        return self.time.unit

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        """The columns of the stream."""
        return strategies.source_columns(self.time, self.key)

    def stream(self) -> ps.Stream:
        """The stream, before it is cut into windows."""
        delay = f"{self.delay}{self.unit}" if self.unit else self.delay
        return ps.stream(engine.arrow_schema(self.columns), time="t", delay=delay)

    def build(self) -> ps.Stream:
        """The pipeline."""
        windowed = self.stream().window(self.windows.build(self.unit), by=list(self.by) or None)
        return windowed.agg(**build(EXACT))


@st.composite
def sliding_windows(draw: st.DrawFn) -> Windows:
    """Sizes from one unit to enormous, of which a row is in a few dozen at most."""
    size = draw(st.one_of(st.integers(1, 20), st.sampled_from([60, 1000, 2**62, 2**63 - 1])))
    least = max(1, size // 20)
    slide = draw(st.one_of(st.integers(least, size), st.sampled_from([least, size, max(least, size // 2)])))
    return Windows("sliding", size, slide, draw(st.one_of(st.just(0), st.integers(-30, 30))))


def tumbling_windows() -> st.SearchStrategy[Windows]:
    """Tumbling windows that are moved from the epoch, or not."""
    return st.builds(
        Windows,
        st.just("tumbling"),
        st.integers(1, 20),
        st.just(0),
        st.one_of(st.just(0), st.integers(-30, 30)),
    )


def session_windows() -> st.SearchStrategy[Windows]:
    """Gaps from one unit to enormous."""
    return st.builds(
        Windows, st.just("session"), st.one_of(st.integers(1, 20), st.sampled_from([1000, 2**62, 2**63 - 1]))
    )


@st.composite
def cases(draw: st.DrawFn, kinds: st.SearchStrategy[Windows]) -> Case:
    """Any stream under windows of that kind."""
    windows = draw(kinds)
    time = draw(st.sampled_from([INT64, INT64, timestamp("ms"), timestamp("ns", "UTC")]))
    key = draw(st.sampled_from(strategies.KEY_TYPES))
    delay = draw(strategies.delays(time, windows.size))
    rows = draw(strategies.rows(time, key, windows.size))
    by = draw(st.sampled_from(GROUPINGS))
    return Case(windows, time, key, by, delay, rows, draw(strategies.cuts(len(rows))), draw(run_options()))


def check(case: Case) -> ps.Result:
    """The engine gives what the reference gives, and counts what the reference counts."""
    arrived = arrive(case.rows, "t", case.delay)
    expected, late = aggregated(case.windows, arrived, case.by, EXACT)
    batches = engine.batches_of(case.columns, case.rows, case.cuts)
    result = run_one(case.build(), batches, **case.options)
    event(f"late rows: {min(len(late), 3)}")
    assert as_bag(engine.rows_of(result)) == as_bag(expected)
    assert (result.rows_in, result.rows_late) == (len(case.rows), len(late))
    assert result.metrics()["rows_contributed"] == len(case.rows) - len(late)
    by_most = max((one.watermark - one.time for one in late if one.watermark is not None), default=None)
    assert result.metrics()["late_by"] == by_most or (by_most or 0) >= 2**63
    return result


@dataclass(frozen=True)
class Edge:
    """Times in arrival order, and the rows per window that must come out, written by hand."""

    name: str
    times: Sequence[int]
    windows: dict[tuple[int, int], int]
    late: int = 0
    cut: Windows = Windows("tumbling", 10)  # noqa: RUF009 - it is frozen
    delay: int = 0
