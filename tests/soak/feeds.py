"""What comes in: rows out of order, late, without a time or far ahead, and batches of another schema."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

import penstock as ps
from reference.engine import arrow_schema, batches_of, build_duration, rows_of
from reference.plans import Columns, Row
from reference.types import INT64, Type
from reference.windowing import Arrived
from soak.graphs import KEYS

MARKS = ("times", "times", "times", "column", "function")
"""Who says how far event time has come."""
WAYS = ("push", "push", "push", "iterator", "iterator", "async", "replay", "table")
"""How a stream comes in."""
ROW_BY_ROW = ("push", "iterator", "async")
"""Ways on which a batch can have other columns than the one before."""
FARTHEST = 127
"""The largest time: every type of time columns has it."""


@dataclass(frozen=True)
class Piece:
    """A batch: rows, or so many rows of another schema."""

    rows: tuple[Row, ...]
    misfit: int = 0


@dataclass(frozen=True)
class Screened:
    """What a source takes of a feed, each row with the watermark just before it, and what it rejects."""

    taken: list[Arrived]
    rejected: int
    taken_of: list[int]
    """Rows taken of each piece."""


@dataclass(frozen=True)
class Feed:
    """The rows of a stream in arrival order, where they are cut, and how it is brought in."""

    columns: Columns
    rows: tuple[Row, ...]
    cuts: tuple[int, ...]
    delay: int
    marks: str
    idles: bool
    way: str
    capacity: int
    ahead: int | None = None
    misfits: tuple[int, ...] = ()
    """The pieces that have a batch of another schema in front of them."""

    def pieces(self) -> list[Piece]:
        """What is brought in, piece by piece."""
        edges = [0, *sorted(self.cuts), len(self.rows)]
        made: list[Piece] = []
        for number, (low, high) in enumerate(itertools.pairwise(edges)):
            if number in self.misfits and self.way in ROW_BY_ROW:
                made.append(Piece((), 1 + number % 3))
            made.append(Piece(self.rows[low:high]))
        return made

    def batches(self) -> list[pa.RecordBatch]:
        """The pieces as record batches, some of them empty."""
        return [
            misfit(self.columns, piece.misfit)
            if piece.misfit
            else batches_of(self.columns, list(piece.rows))[0]
            for piece in self.pieces()
        ]

    def screen(self, pieces: int | None = None) -> Screened:
        """What becomes of the first pieces, in words of the documentation of `stream`; None is for all.

        A row is judged by those before it that were taken; what is rejected does not move the watermark. A
        push of another schema is refused, and is in no account.
        """
        taken: list[Arrived] = []
        taken_of: list[int] = []
        rejected = 0
        greatest: int | None = None
        for piece in self.pieces()[:pieces]:
            before = len(taken)
            if self.way != "push":
                rejected += piece.misfit
            for row in piece.rows:
                watermark = None if greatest is None else greatest - self.delay
                at, mark = row["t"], row.get("m", row["t"])
                if at is None or self.is_ahead(at, watermark) or self.is_ahead(mark, watermark):
                    rejected += 1
                    continue
                assert isinstance(at, int)
                taken.append(Arrived(named(row), at, watermark))
                if self.marks != "function" and mark is not None:
                    assert isinstance(mark, int)
                    greatest = mark if greatest is None else max(greatest, mark)
            said = said_of([row["t"] for row in piece.rows]) if self.marks == "function" else None
            if said is not None:
                greatest = said if greatest is None else max(greatest, said)
            taken_of.append(len(taken) - before)
        return Screened(taken, rejected, taken_of)

    def is_ahead(self, at: object, watermark: int | None) -> bool:
        """Whether a time is too far ahead of the watermark."""
        if at is None or self.ahead is None or watermark is None:
            return False
        return int(str(at)) > watermark + self.ahead


LAG = 4
"""How far functions that say watermarks stay behind the largest time of a batch."""


def said_of(times: Sequence[object]) -> int | None:
    """What a watermark function says about a batch with these times."""
    known = [int(str(at)) for at in times if at is not None]
    return max(known) - LAG if known else None


def misfit(columns: Columns, rows: int) -> pa.RecordBatch:
    """A batch of another schema: without a column, or with one of another type."""
    times = pa.array([f"at {row}" for row in range(rows)])
    values = pa.array(range(rows), pa.int64())
    if rows == 1:
        return pa.record_batch({"v": values, "x": times})
    return pa.record_batch(
        {"t": times, "k": times, "v": values, **({"m": times} if len(columns) > 3 else {})}
    )


def named(row: Row) -> Row:
    """A row without what only its source reads."""
    return {name: row[name] for name in ("t", "k", "v")}


class Asked:
    """A watermark function that remembers what it was called with."""

    def __init__(self) -> None:
        self.seen: list[list[object]] = []

    def __call__(self, batch: ps.Batch) -> int | None:
        table = pa.table(batch)
        if "x" in table.column_names or table.schema.field("t").type == pa.string():
            return None  # it does not have the columns of the stream
        times: list[object] = [row["t"] for row in rows_of(batch)]
        self.seen.append(times)
        return said_of(times)


def draw_feed(rng: random.Random, kind: Type, key: Type, most: int) -> Feed:
    """A stream around time zero; whole numbers without a sign lie a little above it."""
    keys = dict(KEYS)[key]
    base = 0 if kind.signed else 20
    marks = rng.choice(MARKS)
    count = rng.choice([0, 1, 3, most // 2, most, most])
    spread, jitter = rng.choice([(55, 55), (55, 8), (90, 15), (20, 20)])
    delay = 0 if marks == "function" else rng.choice([0, 0, 0, 2, 7, 12])
    ahead = delay + rng.choice([1, 10, 30, 60]) if rng.random() < 0.25 else None
    null_share = rng.choice([0.0, 0.0, 0.0, 0.1, 0.3])
    rows: list[dict[str, object]] = []
    for place in range(count):
        at = base - 15 + min(spread, place * spread // max(count, 1) + rng.randrange(-jitter, jitter + 1))
        at = min(max(at, base - 18), base + 90)
        if ahead is not None and rng.random() < 0.1:
            at = rng.randrange(base + 90, FARTHEST + 1)
        is_null = rng.random() < null_share
        rows.append(
            {"t": None if is_null else at, "k": rng.choice(keys), "v": rng.choice([None, *range(-3, 9)])}
        )
        if marks == "column":
            rows[-1]["m"] = rng.choice([None, at, at, at - 5])
    columns: tuple[tuple[str, Type], ...] = (("t", kind), ("k", key), ("v", INT64))
    if marks == "column":
        columns = (*columns, ("m", kind))
        for row in rows:
            mark = row["m"]
            row["m"] = None if mark is None or int(str(mark)) < kind.low else mark
    cutting = rng.choice(["each", "some", "none", "none"])
    cuts = list(range(1, count)) if cutting == "each" else []
    if cutting == "some":
        cuts = sorted(rng.randrange(count + 1) for _ in range(rng.randrange(8)))
    misfits = [rng.randrange(len(cuts) + 1) for _ in range(rng.choice([1, 2]))] if rng.random() < 0.15 else []
    made = tuple(dict(row) for row in rows)
    return Feed(
        columns, made, tuple(cuts), delay, marks, rng.random() < 0.1,  # type: ignore[arg-type]
        rng.choice(WAYS), rng.choice([1, 2, 4, 64]), ahead, tuple(misfits),
    )  # fmt: skip


def declare(feed: Feed, number: int, asked: Asked | None, bounded: bool = True) -> ps.Stream:
    """The stream in penstock; `asked` is its watermark function, if it has one.

    Without `bounded`, the source that it is read from says how far ahead times may be.
    """
    kind = dict(feed.columns)["t"]
    return ps.stream(
        arrow_schema(feed.columns),
        time="t",
        delay=build_duration(feed.delay, kind) if feed.delay else 0,
        watermark="m" if feed.marks == "column" else asked,
        idle_after="1h" if feed.idles else None,
        max_ahead=bound_of(feed) if bounded else None,
        name=f"s{number}",
    )


def bound_of(feed: Feed) -> str | int | timedelta | None:
    """How far ahead its times may be."""
    return None if feed.ahead is None else build_duration(feed.ahead, dict(feed.columns)["t"])
