"""Who waits for what this thread reads: a query must not wait for itself.

An iterable runs on the thread that reads it. If it waits for the query that it feeds, both wait for ever. So
a thread that calls into an iterable records which query it reads for, and every function that waits checks
that record.
"""

from collections.abc import Callable
from threading import local
from types import TracebackType
from typing import TypeAlias

__all__ = ["Reading", "Taker", "is_read_here", "nobody"]

Taker: TypeAlias = Callable[[], object | None]
"""Returns the query or shared source that reads, once it is there and as long as it is."""


def nobody() -> None:
    """Returns None: nobody reads yet.

    Example:
        >>> from penstock.reading import nobody
        >>> nobody()
    """


class _Here(local):
    """For whom each thread reads: one iterable may read another."""

    takers: tuple[Taker, ...] = ()


_here = _Here()


class Reading:
    """This thread runs an iterable, for as long as the block lasts.

    Args:
        taker: For whom.

    Example:
        >>> from penstock.reading import Reading, is_read_here
        >>> query = object()
        >>> with Reading(lambda: query):
        ...     is_read_here(query)
        True
    """

    def __init__(self, taker: Taker) -> None:
        self._taker = taker

    def __enter__(self) -> None:
        self._outer = _here.takers
        _here.takers = (*self._outer, self._taker)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _here.takers = self._outer


def is_read_here(taker: object) -> bool:
    """Tells whether this thread is inside of an iterable that a query or a shared source reads.

    Args:
        taker: The query or the shared source.

    Returns:
        Whether it gets no further batch until the iterable goes on.

    Example:
        >>> import penstock as ps
        >>> from penstock.reading import is_read_here
        >>> with ps.Engine(workers=1) as engine:
        ...     is_read_here(engine.submit(ps.stream({"price": "int64"}), source=[]))
        False
    """
    return any(one() is taker for one in _here.takers)
