"""Refuses waits that would never end, such as a query that waits for itself."""

from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from penstock import _penstock
from penstock.exceptions import EngineError, StreamConsumedError
from penstock.expr._frozen import Frozen
from penstock.io.reading import Taker, is_read_here

if TYPE_CHECKING:
    from penstock.engine.query import Query
    from penstock.engine.shared import SharedSource

__all__ = ["SLICE_SECONDS", "WaitChecks"]

# How long a thread of the event loop's executor waits at a time. One that is cancelled is busy for so long.
SLICE_SECONDS = 0.05
_ITSELF = (
    "a query cannot wait for itself: this thread runs its source or its watermark function, and the query "
    "waits for what that gives"
)


class WaitChecks(Frozen):
    """The part of a `Query` that checks, before a wait, that the wait can end."""

    __slots__ = ()

    _native: _penstock.Query
    # The shared sources and queries that it reads, which the engine keeps while they run.
    _reads: "tuple[ReferenceType[SharedSource | Query], ...]"
    # Who reads its results alone, by output.
    _lent: dict[int, Taker]

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def status(self) -> str: ...

    def _is_read_here(self) -> bool:
        """Tells whether the query, or one that it reads, waits for what this thread runs."""
        if self._native.is_pulled_here or is_read_here(self):
            return True
        shared = (one for one in (weak() for weak in self._reads) if not isinstance(one, WaitChecks))
        return any(map(is_read_here, shared)) or any(query._is_read_here() for query in self._queries())

    def _queries(self) -> "list[Query]":
        """Returns the queries that it reads, itself or by way of a shared source."""
        reads = [one for one in (weak() for weak in self._reads) if one is not None]
        return [
            query for one in reads for query in ([one] if isinstance(one, WaitChecks) else one._queries())
        ]

    def _check_source(self) -> None:
        """Refuses to wait for the end inside of an iterable that the query waits for."""
        if self._is_read_here() and self.status == "running":
            raise EngineError(_ITSELF)

    def _runs_at_rest(self) -> int | None:
        """Returns how often all of its tasks have run, if they make no more results of what they have.

        Tasks of queries that it reads count too.
        """
        runs = [self._native.runs_at_rest(), *(query._runs_at_rest() for query in self._queries())]
        return None if None in runs else sum(filter(None, runs))

    def _check_progress(self, before: int | None) -> int | None:
        """Refuses to wait for a result inside of an iterable that the query waits for, once none comes.

        Args:
            before: What this returned a while ago, or None.
        """
        if not self._is_read_here():
            return None
        runs = self._runs_at_rest()
        if runs is not None and runs == before and self.status == "running":
            raise EngineError(_ITSELF)
        return runs

    def _await_result(self, output: int) -> None:
        """Waits for the next result inside of an iterable that the query waits for."""
        runs = None
        while self._is_read_here() and not self._native.ready(output, SLICE_SECONDS):
            runs = self._check_progress(runs)

    def _check_reader(self, output: int) -> None:
        """Refuses to take results away from a query that reads them alone."""
        taker = self._lent.get(output)
        reader: Any = None if taker is None else taker()
        if reader is not None and reader.status == "running":
            raise StreamConsumedError(
                f'the results of query "{self.name}" go to "{reader.name}", which reads them alone as long '
                "as it runs"
            )
