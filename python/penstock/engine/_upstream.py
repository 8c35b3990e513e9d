"""The results of a query as the source of another one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.io.batch import Batch
from penstock.io.items import AwaitedItems
from penstock.io.reading import Taker
from penstock.io.result import Result

if TYPE_CHECKING:
    from penstock.engine.engine import Engine
    from penstock.engine.query import Query
    from penstock.engine.results import Results

__all__ = ["Awaited", "Later", "Upstream"]


class Upstream:
    """The results of a query as another one reads them."""

    def __init__(self, results: "Results") -> None:
        # Keeps the engine of the query, unless that is the one that reads it: nothing of its own may keep it.
        self._results: Results | None = results
        self._native, self._output = results._query._native, results._output
        self._lent = results._query._lent
        self.waiter = self._native.waiter(self._output)

    def note_taker(self, engine: "Engine", taker: Taker) -> None:
        """Says who reads it."""
        self._lent[self._output] = taker
        if self._results is not None and self._results._query._engine is engine:
            self._results = None

    def ready(self, seconds: float) -> bool:
        if self._results is not None:
            self._results._query._check_source()
        return self._native.ready(self._output, seconds)

    def take(self) -> Batch:
        try:
            return Batch(self._native.next_batch(self._output, to_the_end=True))
        except StopIteration:
            if self._results is not None:
                self._results._query._warn_late(above=3)
            raise

    def cancel(self) -> None:
        """Leaves unread results to other readers of the query."""

    def close(self) -> None:
        """Leaves unread results to other readers of the query."""


class Awaited(AwaitedItems):
    """The results of a query as the items of another one, which claims them."""

    def __init__(self, results: "Results", argument: str) -> None:
        results._query._native.claim(results._output)
        super().__init__(Upstream(results), None, argument)
        self._results = results

    def _unclaim(self) -> None:
        self._results._query._native.unclaim(self._results._output)


class Later:
    """The whole result of a query, computed at the first read."""

    def __init__(self, query: "Query") -> None:
        self._query = query

    def __iter__(self) -> Iterator[Result]:
        yield self._query.result()
