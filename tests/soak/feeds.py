"""What comes in: rows out of order and late, cut into batches, and the sources that bring them."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

import penstock as ps
from reference.engine import arrow_schema, batches_of, build_duration, rows_of
from reference.plans import Columns, Row
from reference.types import INT64, Type
from reference.windowing import Arrived, arrive
from soak.graphs import KEYS, PoisonError

MARKS = ("times", "times", "times", "column", "function")
"""Who says how far event time has come."""
WAYS = ("push", "push", "iterator", "replay", "table")
"""How a stream comes in."""


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

    def batches(self) -> list[pa.RecordBatch]:
        """The rows as record batches, some of them empty."""
        return batches_of(self.columns, self.rows, self.cuts)

    def parts(self) -> list[Sequence[Row]]:
        """The rows of each batch."""
        edges = [0, *sorted(self.cuts), len(self.rows)]
        return [self.rows[low:high] for low, high in itertools.pairwise(edges)]

    def arrived(self) -> list[Arrived]:
        """Each row with the watermark just before it."""
        if self.marks != "function":
            found = arrive(self.rows, "t", self.delay, "m" if self.marks == "column" else None)
            return [Arrived(named(one.row), one.time, one.watermark) for one in found]
        made: list[Arrived] = []
        watermark: int | None = None
        for part in self.parts():
            times = [int(str(row["t"])) for row in part]
            made += [Arrived(named(row), at, watermark) for row, at in zip(part, times, strict=True)]
            if times:
                latest = max(times) - LAG
                watermark = latest if watermark is None else max(watermark, latest)
        return made


LAG = 4
"""How far functions that say watermarks stay behind the largest time of a batch."""


def named(row: Row) -> Row:
    """A row without what only its source reads."""
    return {name: row[name] for name in ("t", "k", "v")}


class Asked:
    """A watermark function that remembers what it was called with."""

    def __init__(self) -> None:
        self.seen: list[list[object]] = []

    def __call__(self, batch: ps.Batch) -> int | None:
        times = [row["t"] for row in rows_of(batch)]
        self.seen.append(list(times))
        return max(int(str(at)) for at in times) - LAG if times else None


def draw_feed(rng: random.Random, kind: Type, key: Type, most: int) -> Feed:
    """A stream around time zero; whole numbers without a sign lie a little above it."""
    keys = dict(KEYS)[key]
    base = 0 if kind.signed else 20
    marks = rng.choice(MARKS)
    count = rng.choice([0, 1, 3, most // 2, most, most])
    spread, jitter = rng.choice([(55, 55), (55, 8), (90, 15), (20, 20)])
    rows: list[dict[str, object]] = []
    for place in range(count):
        at = base - 15 + min(spread, place * spread // max(count, 1) + rng.randrange(-jitter, jitter + 1))
        at = min(max(at, base - 18), base + 90)
        rows.append({"t": at, "k": rng.choice(keys), "v": rng.choice([None, *range(-3, 9)])})
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
    delay = 0 if marks == "function" else rng.choice([0, 0, 0, 2, 7, 12])
    made = tuple(dict(row) for row in rows)
    return Feed(
        columns, made, tuple(cuts), delay, marks, rng.random() < 0.1,  # type: ignore[arg-type]
        rng.choice(WAYS), rng.choice([1, 2, 4, 64]),
    )  # fmt: skip


def declare(feed: Feed, number: int, asked: Asked | None) -> ps.Stream:
    """The stream in penstock; `asked` is its watermark function, if it has one."""
    return ps.stream(
        arrow_schema(feed.columns),
        time="t",
        delay=build_duration(feed.delay, dict(feed.columns)["t"]) if feed.delay else 0,
        watermark="m" if feed.marks == "column" else asked,
        idle_after="1h" if feed.idles else None,
        name=f"s{number}",
    )


class Supply:
    """The sources of a case: batches that wait to be pushed, and those that are pulled."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.turns: list[tuple[ps.PushSource, pa.RecordBatch | None]] = []
        self.pushed: dict[ps.PushSource, int] = {}
        self.thread: threading.Thread | None = None

    def open(self, feed: Feed, fails_at: int | None, closes: bool = True) -> object:
        """A source for the feed. One that fails does so before that batch."""
        batches, way = feed.batches(), feed.way
        if fails_at is not None:
            return failing(batches, fails_at)
        if way == "table":
            return pa.Table.from_batches(batches, arrow_schema(feed.columns))
        if way == "iterator":
            return iter(batches) if self.rng.random() < 0.5 else slowly(batches, self.rng.random() * 0.004)
        # A replay of nothing has no rounds to make.
        if way == "replay" and feed.rows:
            return ps.replay(batches, rate=self.rng.choice([None, None, 50_000.0]))
        source = ps.PushSource(feed.capacity)
        self.pushed[source] = 0
        self.turns += [(source, batch) for batch in batches]
        if closes:
            self.turns.append((source, None))
        return source

    def shuffle(self) -> None:
        """Lets sources take turns at random, each in its own order."""
        queues: dict[int, list[tuple[ps.PushSource, pa.RecordBatch | None]]] = {}
        for turn in self.turns:
            queues.setdefault(id(turn[0]), []).append(turn)
        order = [number for number, queue in queues.items() for _ in queue]
        if self.rng.random() < 0.7:
            self.rng.shuffle(order)
        self.turns = [queues[number].pop(0) for number in order]
        if self.rng.random() < 0.3:
            # One source has long ended when the others begin.
            first = self.turns[0][0] if self.turns else None
            self.turns.sort(key=lambda turn: turn[0] is not first)

    def start(self, pause: float, settled: Callable[[], bool] | None) -> None:
        """Pushes on a thread of its own; now and then it pauses.

        With `settled`, it also waits for that to become true: rows that are there are not to wait for those
        that come next, nor for the end.
        """
        self.shuffle()
        if settled is not None:
            self.turns.sort(key=lambda turn: turn[1] is None)
        pauses = [self.rng.random() < 0.15 for _ in self.turns]
        settles = [self.rng.random() < 0.4 for _ in self.turns]

        def work() -> None:
            closed = settled is None
            for (source, batch), waits, settle in zip(self.turns, pauses, settles, strict=True):
                if waits:
                    time.sleep(pause)
                while settled is not None and not closed and (settle or batch is None) and not settled():
                    time.sleep(0.001)
                if batch is None:
                    closed = True
                    source.close()
                    continue
                with contextlib.suppress(ps.PenstockError):  # its query has ended
                    source.push(batch)
                    self.pushed[source] += batch.num_rows

        self.thread = threading.Thread(target=work, name="feeder", daemon=True)
        self.thread.start()

    def join(self) -> None:
        """Waits for the thread."""
        if self.thread is not None:
            self.thread.join()


def slowly(batches: Sequence[pa.RecordBatch], pause: float) -> Iterator[pa.RecordBatch]:
    """An iterator that takes its time."""
    for batch in batches:
        time.sleep(pause)
        yield batch


def failing(batches: Sequence[pa.RecordBatch], fails_at: int) -> Iterator[pa.RecordBatch]:
    """An iterator that fails."""
    yield from batches[:fails_at]
    raise PoisonError("the source is empty")
