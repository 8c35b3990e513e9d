"""The sources of a case: batches that wait to be pushed, and those that are pulled."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

import penstock as ps
from reference.engine import arrow_schema
from soak.feeds import Feed
from soak.graphs import PoisonError
from soak.leftovers import Finding


@dataclass(frozen=True)
class Turn:
    """Something to be pushed, or the end of a source."""

    source: ps.PushSource
    batch: pa.RecordBatch | None = None
    is_misfit: bool = False
    counts: int = 0
    """Rows of it that come to a query."""


@dataclass
class Pushed:
    """How much of what is there for a source was pushed."""

    pieces: int = 0
    rows: int = 0
    """All of those."""
    counts: int = 0
    """Those that come to a query."""
    refused: bool = False


class Supply:
    """Opens sources, and pushes to them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.turns: list[Turn] = []
        self.pushed: dict[ps.PushSource, Pushed] = {}
        self.findings: list[Finding] = []
        self.thread: threading.Thread | None = None

    def open(self, feed: Feed, fails_at: int | None, closes: bool = True, shared: bool = False) -> object:
        """A source for the feed. One that fails does so before that batch."""
        batches, way = feed.batches(), feed.way
        if fails_at is not None:
            return failing(batches, fails_at)
        if way == "table":
            return pa.Table.from_batches(batches, arrow_schema(feed.columns))
        if way == "iterator":
            return iter(batches) if self.rng.random() < 0.5 else slowly(batches, self.rng.random() * 0.004)
        if way == "async":
            return awaited(batches, self.rng.random() * 0.002)
        # A replay of nothing has no rounds to make.
        if way == "replay" and feed.rows:
            return ps.replay(batches, rate=self.rng.choice([None, None, 50_000.0]))
        source = ps.PushSource(feed.capacity)
        self.pushed[source] = Pushed()
        for piece, batch, taken in zip(feed.pieces(), batches, feed.screen().taken_of, strict=True):
            self.turns.append(Turn(source, batch, piece.misfit > 0, taken if shared else len(piece.rows)))
        if closes:
            self.turns.append(Turn(source))
        return source

    def shuffle(self) -> None:
        """Lets sources take turns at random, each in its own order."""
        queues: dict[int, list[Turn]] = {}
        for turn in self.turns:
            queues.setdefault(id(turn.source), []).append(turn)
        order = [number for number, queue in queues.items() for _ in queue]
        if self.rng.random() < 0.7:
            self.rng.shuffle(order)
        self.turns = [queues[number].pop(0) for number in order]
        if self.rng.random() < 0.3:
            # One source has long ended when the others begin.
            first = self.turns[0].source if self.turns else None
            self.turns.sort(key=lambda turn: turn.source is not first)

    def start(self, pause: float, settled: Callable[[], bool] | None) -> None:
        """Pushes on a thread of its own; now and then it pauses.

        With `settled`, it also waits for that to become true: rows that are there are not to wait for those
        that come next, nor for the end.
        """
        self.shuffle()
        if settled is not None:
            self.turns.sort(key=lambda turn: turn.batch is None)
        pauses = [self.rng.random() < 0.15 for _ in self.turns]
        settles = [self.rng.random() < 0.4 for _ in self.turns]

        def work() -> None:
            closed = settled is None
            for turn, waits, settle in zip(self.turns, pauses, settles, strict=True):
                if waits:
                    time.sleep(pause)
                while settled is not None and not closed and (settle or turn.batch is None) and not settled():
                    time.sleep(0.001)
                if turn.batch is None:
                    closed = True
                    turn.source.close()
                else:
                    self.push(turn)

        self.thread = threading.Thread(target=work, name="feeder", daemon=True)
        self.thread.start()

    def push(self, turn: Turn) -> None:
        """Pushes one batch, and counts it if it was taken."""
        pushed, batch = self.pushed[turn.source], turn.batch
        assert batch is not None
        try:
            turn.source.push(batch)
        except ps.SchemaMismatchError as error:
            if not turn.is_misfit:
                self.findings.append(Finding(f"a push of the right columns was refused: {error}"))
        except ps.PenstockError:
            pushed.refused = True  # its query has ended
        else:
            if turn.is_misfit:
                self.findings.append(Finding(f"a push of {batch.schema} was taken"))
            if pushed.refused:
                self.findings.append(Finding("a push was taken behind one that was refused"))
            pushed.rows += batch.num_rows
            pushed.counts += turn.counts
        pushed.pieces += not pushed.refused

    def join(self) -> None:
        """Waits for the thread; raises what it has found."""
        if self.thread is not None:
            self.thread.join()
        for finding in self.findings:
            raise finding


def slowly(batches: Sequence[pa.RecordBatch], pause: float) -> Iterator[pa.RecordBatch]:
    """An iterator that takes its time."""
    for batch in batches:
        time.sleep(pause)
        yield batch


async def awaited(batches: Sequence[pa.RecordBatch], pause: float) -> AsyncIterator[pa.RecordBatch]:
    """The same, asynchronous."""
    for batch in batches:
        await asyncio.sleep(pause)
        yield batch


def failing(batches: Sequence[pa.RecordBatch], fails_at: int) -> Iterator[pa.RecordBatch]:
    """An iterator that fails."""
    yield from batches[:fails_at]
    raise PoisonError("the source is empty")
