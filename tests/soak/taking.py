"""What is taken out of a query of a case: its results, on a thread of its own, and what it rejects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import penstock as ps
from reference.engine import rows_of
from reference.types import Value
from soak.graphs import PoisonError
from soak.leftovers import Finding

PATIENCE_SECONDS = 120.0
"""For threads of the case itself; hangs of the engine are found by the watch."""


class Taken:
    """A query of a case, what came out of it, and what it was asked."""

    def __init__(self, outputs: tuple[int, ...], sink: str, fails: bool) -> None:
        self.outputs, self.sink, self.fails = outputs, sink, fails
        self.rows: dict[int, list[dict[str, Value]]] = {number: [] for number in outputs}
        self.letters: list[dict[str, Value]] = []
        self.sources: dict[int, ps.PushSource] = {}
        """Where the streams are pushed to that it reads, whether it shares them or not."""
        self.shared: frozenset[int] = frozenset()
        """The streams that it shares."""
        self.query: ps.Query | None = None
        self.error: BaseException | None = None
        self.thread: threading.Thread | None = None

    def taker(self, number: int) -> Callable[[ps.Batch], None]:
        """A function that takes the results of an output."""

        def take(batch: ps.Batch) -> None:
            if self.fails:
                raise PoisonError("the sink is full")
            self.rows[number].extend(rows_of(batch))

        return take

    def takers(self) -> Any:
        """What `submit` is told about the results."""
        if self.sink == "function" or self.fails:
            return {f"o{number}": self.taker(number) for number in self.outputs}
        return "collect" if self.sink == "collect" else None

    def start(self, query: ps.Query) -> None:
        """Waits for the query on a thread of its own, since it may have to be read."""
        self.query = query
        self.thread = threading.Thread(target=self.work, args=(query,), name="taker", daemon=True)
        self.thread.start()

    def work(self, query: ps.Query) -> None:
        try:
            if self.sink == "iterator" and not self.fails:
                readers = [
                    threading.Thread(target=self.read, args=(query, number), daemon=True)
                    for number in self.outputs
                ]
                for reader in readers:
                    reader.start()
                for reader in readers:
                    reader.join()
            query.wait()
            if self.sink == "collect" and not self.fails and query.status == "finished":
                for number in self.outputs:
                    self.rows[number].extend(rows_of(query.result(f"o{number}")))
        except BaseException as error:
            self.error = error

    def read(self, query: ps.Query, number: int) -> None:
        try:
            for batch in query.results(f"o{number}"):
                self.rows[number].extend(rows_of(batch))
        except BaseException as error:
            self.error = error

    def join(self) -> None:
        """Waits for the thread that waits."""
        assert self.thread is not None
        self.thread.join(PATIENCE_SECONDS)
        if self.thread.is_alive():
            raise Finding("whoever waits for a query that has ended still waits")


def letter_taker(letters: list[dict[str, Value]], on_error: str) -> Any:
    """What is said about rows that are rejected; a function keeps them."""
    if on_error != "function":
        return on_error

    def take(batch: ps.Batch) -> None:
        letters.extend(rows_of(batch))

    return take
