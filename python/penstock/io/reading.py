"""Records which query each thread reads for, since a query must not wait for itself.

An iterable runs on the thread that reads it. If it waits for the query that it feeds, both wait for ever. So
a thread that calls into an iterable records which query it reads for, and every function that waits checks
that record.
"""

import asyncio
from collections.abc import Callable
from threading import local
from types import TracebackType
from typing import TypeAlias

__all__ = ["Reading", "Taker", "is_read_beside", "is_read_here", "no_taker", "note_task"]

Taker: TypeAlias = Callable[[], object | None]
"""Returns the query or shared source that reads, once it is there and as long as it is."""


def no_taker() -> None:
    """Returns None, as long as the reader is not known.

    Example:
        >>> from penstock.io.reading import no_taker
        >>> no_taker()
    """


class _Here(local):
    """For whom each thread reads: one iterable may read another."""

    takers: tuple[Taker, ...] = ()
    # The task that runs an asynchronous iterable. Other tasks of its loop run while that one waits.
    task: asyncio.Task[None] | None = None


_here = _Here()


class Reading:
    """This thread runs an iterable, for as long as the block lasts.

    Args:
        taker: For whom.

    Example:
        >>> from penstock.io.reading import Reading, is_read_here
        >>> query = object()
        >>> with Reading(lambda: query):
        ...     is_read_here(query)
        True
    """

    def __init__(self, taker: Taker) -> None:
        self._taker = taker

    def __enter__(self) -> None:
        self._outer = _here.takers, _here.task
        _here.takers, _here.task = (*_here.takers, self._taker), None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _here.takers, _here.task = self._outer


def note_task() -> None:
    """Notes that the running task, and no other task of its loop, runs the iterable that this thread reads.

    Example:
        >>> import asyncio
        >>> from penstock.io.reading import Reading, is_read_beside, no_taker, note_task
        >>> async def read():
        ...     note_task()
        ...     return is_read_beside()
        >>> with Reading(no_taker):
        ...     asyncio.run(read())
        False
    """
    _here.task = asyncio.current_task()


def is_read_beside() -> bool:
    """Tells whether the iterable that this thread reads continues while the running task waits.

    Returns:
        Whether another task of the same loop runs it.

    Example:
        >>> import asyncio
        >>> from penstock.io.reading import is_read_beside
        >>> async def read():
        ...     return is_read_beside()
        >>> asyncio.run(read())
        False
    """
    task, running = _here.task, asyncio.current_task()
    return task is not None and task is not running and task.get_loop() is asyncio.get_running_loop()


def is_read_here(taker: object) -> bool:
    """Tells whether this thread is inside of an iterable that a query or a shared source reads.

    Args:
        taker: The query or the shared source.

    Returns:
        Whether it gets no further batch until the iterable continues.

    Example:
        >>> import penstock as ps
        >>> from penstock.io.reading import is_read_here
        >>> with ps.Engine(workers=1) as engine:
        ...     is_read_here(engine.submit(ps.stream({"price": "int64"}), source=[]))
        False
    """
    return any(one() is taker for one in _here.takers)
