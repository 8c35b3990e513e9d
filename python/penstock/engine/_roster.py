"""The queries and shared sources of one engine, as Python holds them.

Threads of the user add to the roster and read it under its lock. The collector may run a finaliser of the
user at any time, on a thread that holds the lock, and that finaliser may use the engine: so the lock is
reentrant, and objects are dropped outside of it.

ROSTER-1. A query or source is held while it runs, and after its end until its failure or its late rows have
          been reported.
ROSTER-2. After that it is listed for as long as another object holds it.
ROSTER-3. Adding looks at a few objects, however many there are: at the newest, which end first, and at others
          in turn, so that each has its turn again and again.
"""

from collections import deque
from itertools import count
from threading import RLock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from penstock.display.notices import warn_failed
from penstock.engine.query import Query
from penstock.engine.shared import SharedSource

__all__ = ["Roster"]

FEW = 8
"""How many of the newest objects, and how many others, one addition looks at."""

One = TypeVar("One", Query, SharedSource)


class Held(Generic[One]):
    """The objects of one kind that are held, in the order in which they were added. Needs the lock."""

    __slots__ = ("_by_number", "_newest", "_numbers", "_turns")

    def __init__(self) -> None:
        self._numbers = count()
        self._by_number: dict[int, One] = {}
        self._newest: deque[int] = deque(maxlen=FEW)
        # Numbers of all objects, and of some that are no longer held: those leave when it is their turn.
        self._turns: deque[int] = deque()

    def add(self, one: One) -> None:
        """Holds an object."""
        number = next(self._numbers)
        self._by_number[number] = one
        self._newest.append(number)
        self._turns.append(number)

    def all(self) -> list[One]:
        """Returns all objects."""
        return list(self._by_number.values())

    def release_all(self) -> list[One]:
        """Stops holding all objects that have ended and have nothing to report, and returns them."""
        return self._release(list(self._by_number))

    def release_some(self) -> list[One]:
        """Stops holding some of the objects that have ended and have nothing to report, and returns them."""
        numbers = list(self._newest)
        for _ in range(min(FEW, len(self._turns))):
            number = self._turns.popleft()
            if number in self._by_number:
                self._turns.append(number)
                if number not in numbers:
                    numbers.append(number)
        return self._release(numbers)

    def _release(self, numbers: list[int]) -> list[One]:
        """A finaliser may change what is held meanwhile, so each object is removed on its own."""
        released = []
        for number in numbers:
            one = self._by_number.get(number)
            if one is None or one.status == "running" or _has_news(one):
                continue
            if self._by_number.pop(number, None) is not None:
                released.append(one)
        return released


class Roster:
    """The queries and shared sources of one engine."""

    __slots__ = ("_ended", "_lock", "_numbers", "_queries", "_sources")

    def __init__(self) -> None:
        # ROSTER-1.
        self._queries: Held[Query] = Held()
        self._sources: Held[SharedSource] = Held()
        # ROSTER-2. Numbered in the order of their ends.
        self._ended: WeakValueDictionary[int, Query | SharedSource] = WeakValueDictionary()
        self._numbers = count()
        self._lock = RLock()

    def add_query(self, query: Query) -> None:
        """Adds a query that runs."""
        with self._lock:
            dropped = self._drop_some()
            self._queries.add(query)
        del dropped

    def add_source(self, source: SharedSource) -> None:
        """Adds a shared source that runs."""
        with self._lock:
            dropped = self._drop_some()
            self._sources.add(source)
        del dropped

    def queries(self) -> list[Query]:
        """Returns the queries that are held, in the order in which they were submitted."""
        with self._lock:
            return self._queries.all()

    def sources(self) -> list[SharedSource]:
        """Returns the shared sources that are held."""
        with self._lock:
            return self._sources.all()

    def listed(self) -> list[Query | SharedSource]:
        """Returns the sources and queries that run, then those that have ended and still exist."""
        with self._lock:
            dropped = self._drop_all()
        del dropped
        with self._lock:
            ended = [one for one in (weak() for weak in self._ended.valuerefs()) if one is not None]
            return [*self._sources.all(), *self._queries.all(), *ended]

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
            dropped = self._drop_all()
        del dropped

    def _drop_all(self) -> list[Query | SharedSource]:
        """Stops holding what has ended and has nothing to report. Needs the lock.

        Returns the dropped objects, for the caller to release without the lock.
        """
        return self._note_ended([*self._sources.release_all(), *self._queries.release_all()])

    def _drop_some(self) -> list[Query | SharedSource]:
        """Does the same for a few objects (ROSTER-3). Needs the lock."""
        return self._note_ended([*self._sources.release_some(), *self._queries.release_some()])

    def _note_ended(self, dropped: list[Query | SharedSource]) -> list[Query | SharedSource]:
        for one in dropped:
            self._ended[next(self._numbers)] = one
        return dropped


def _has_news(one: Query | SharedSource) -> bool:
    late = isinstance(one, Query) and one._native.has_late_unseen
    return one._native.has_failed_unseen or late
