"""The queries and shared sources of one engine, as Python holds them.

Threads of the user add to the roster and read it under its lock. The collector may run a finaliser of the
user at any time, on a thread that holds the lock, and that finaliser may use the engine: so the lock is
reentrant, and objects are dropped outside of it.

ROSTER-1. A query or source is held while it runs, and after its end until its failure or its late rows have
          been reported.
ROSTER-2. After that it is listed for as long as another object holds it.
"""

from contextlib import suppress
from threading import RLock
from weakref import ReferenceType, ref

from penstock.display.notices import warn_failed
from penstock.engine.query import Query
from penstock.engine.shared import SharedSource

__all__ = ["Roster"]


class Roster:
    """The queries and shared sources of one engine."""

    __slots__ = ("_ended", "_lock", "_queries", "_sources")

    def __init__(self) -> None:
        # ROSTER-1.
        self._queries: list[Query] = []
        self._sources: list[SharedSource] = []
        # ROSTER-2.
        self._ended: list[ReferenceType[Query] | ReferenceType[SharedSource]] = []
        self._lock = RLock()

    def add_query(self, query: Query) -> None:
        """Adds a query that runs."""
        with self._lock:
            dropped = self._drop_ended()
            self._queries.append(query)
        del dropped

    def add_source(self, source: SharedSource) -> None:
        """Adds a shared source that runs."""
        with self._lock:
            dropped = self._drop_ended()
            self._sources.append(source)
        del dropped

    def queries(self) -> list[Query]:
        """Returns the queries that are held, in the order in which they were submitted."""
        with self._lock:
            return list(self._queries)

    def sources(self) -> list[SharedSource]:
        """Returns the shared sources that are held."""
        with self._lock:
            return list(self._sources)

    def listed(self) -> list[Query | SharedSource]:
        """Returns the sources and queries that run, then those that have ended and still exist."""
        with self._lock:
            dropped = self._drop_ended()
        del dropped
        with self._lock:
            ended = [one for one in (weak() for weak in self._ended) if one is not None]
            return [*self._sources, *self._queries, *ended]

    def tell(self, above: int) -> None:
        """Warns of failures and late rows that have not been reported.

        Args:
            above: Whose line the warnings name, counted from here.
        """
        queries, sources = self.queries(), self.sources()
        for query in queries:
            query._warn_late(above=above)
            if query._native.has_failed_unseen:
                _ = query.error  # marks the failure as seen
                warn_failed("query", query.name, query._native.error_text, above=above)
        # After the queries: an error of a query counts as a report of the failure of its source.
        for source in sources:
            if source._native.has_failed_unseen:
                _ = source.error
                warn_failed("source", source.name, source._native.error_text, above=above)
        with self._lock:
            dropped = self._drop_ended()
        del dropped

    def _drop_ended(self) -> list[Query | SharedSource]:
        """Stops holding what has ended and has nothing to report. Needs the lock.

        Returns the dropped objects, for the caller to release without the lock. A finaliser may change the
        lists meanwhile, so each object is removed on its own.
        """
        queries = [one for one in list(self._queries) if one.status != "running" and not _has_news(one)]
        sources = [one for one in list(self._sources) if one.status != "running" and not _has_news(one)]
        for weak in [weak for weak in list(self._ended) if weak() is None]:
            with suppress(ValueError):
                self._ended.remove(weak)
        for source in sources:
            with suppress(ValueError):
                self._sources.remove(source)
                self._ended.append(ref(source))
        for query in queries:
            with suppress(ValueError):
                self._queries.remove(query)
                self._ended.append(ref(query))
        return [*sources, *queries]


def _has_news(one: Query | SharedSource) -> bool:
    late = isinstance(one, Query) and one._native.has_late_unseen
    return one._native.has_failed_unseen or late
