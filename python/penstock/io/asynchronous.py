"""Asynchronous iterables as sources.

Each is read by one task of an event loop of its own, on a thread of its own. So it may be handed in from
anywhere, also from within a running loop; its timeouts and task groups work as in `async for`; and what it
does in the background continues while the engine has no room for more. Objects that belong to another loop,
such as a connection that was opened there, cannot be used in it: open them inside.

An item is requested when a reader waits for it. When the query ends first, the task is cancelled where it
waits, and the iterable is closed with `aclose`, which is not cancelled. At the end of the interpreter, its
cleanup is awaited for a limited time.
"""

import asyncio
import atexit
import contextvars
import os
import threading
import time
from collections.abc import AsyncIterable
from typing import Any
from weakref import WeakSet

from penstock.io.reading import Reading, Taker, no_taker, note_task

__all__ = ["Pump"]

# How long `close` waits for a task that was cancelled. One that ignores the cancellation ends with the
# process.
_PATIENCE_SECONDS = 10.0


class Pump:
    """Reads an asynchronous iterable, item by item.

    Args:
        source: The iterable.

    Example:
        >>> from penstock.io.asynchronous import Pump
        >>> async def numbers():
        ...     yield 1
        ...     yield 2
        >>> pump = Pump(numbers())
        >>> pump.take(), pump.take()
        (1, 2)
        >>> pump.close()
    """

    def __init__(self, source: AsyncIterable[object]) -> None:
        self._source = source
        self._changed = threading.Condition()
        self._items: list[object] = []
        self._error: BaseException | None = None
        self._has_ended = False
        self._is_closing = False
        self._is_asked = True  # for the first one, when it starts
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._wanted: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._taker: Taker = no_taker

    def note_taker(self, engine: object, taker: Taker) -> None:
        """Sets the reader of the iterable.

        Args:
            engine: The engine that does.
            taker: Returns the query or shared source that does.

        Example:
            >>> from penstock.io.asynchronous import Pump
            >>> async def numbers():
            ...     yield 1
            >>> Pump(numbers()).note_taker(None, lambda: None)
        """
        self._taker = taker

    def ready(self, seconds: float | None) -> bool:
        """Waits for the next item, or the end.

        Args:
            seconds: For how long; None is for ever.

        Returns:
            Whether `take` would not have to wait.

        Example:
            >>> from penstock.io.asynchronous import Pump
            >>> async def nothing():
            ...     return
            ...     yield
            >>> pump = Pump(nothing())
            >>> pump.ready(None)
            True
            >>> pump.close()
        """
        with self._changed:
            if self._thread is None and not self._is_closing:
                self._start()
            if not (self._items or self._has_ended or self._is_asked):
                self._is_asked = True
                if self._loop is not None and self._wanted is not None:
                    self._loop.call_soon_threadsafe(self._wanted.set)
            return self._changed.wait_for(lambda: bool(self._items) or self._has_ended, seconds)

    @property
    def waiter(self) -> "Pump":
        """What a thread waits with that does not hold the items: itself.

        Example:
            >>> from penstock.io.asynchronous import Pump
            >>> async def numbers():
            ...     yield 1
            >>> pump = Pump(numbers())
            >>> pump.waiter is pump
            True
        """
        return self

    def take(self) -> object:
        """Takes the next item.

        Returns:
            The item.

        Raises:
            StopIteration: There are no more. What the iterable raises comes out as itself.

        Example:
            >>> from penstock.io.asynchronous import Pump
            >>> async def numbers():
            ...     yield 1
            >>> pump = Pump(numbers())
            >>> pump.take()
            1
            >>> pump.close()
        """
        self.ready(None)
        with self._changed:
            if self._items:
                return self._items.pop()
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def close(self) -> None:
        """Cancels the task, which closes the iterable, and waits for its thread.

        Example:
            >>> from penstock.io.asynchronous import Pump
            >>> async def numbers():
            ...     yield 1
            >>> Pump(numbers()).close()
        """
        self.cancel()
        thread = self._thread
        # By number: `current_thread` makes an object for a thread of the engine, and keeps it.
        if thread is not None and thread.ident != threading.get_ident():
            thread.join(_PATIENCE_SECONDS)

    def cancel(self) -> None:
        """Cancels the task, which closes the iterable, without waiting.

        Example:
            >>> from penstock.io.asynchronous import Pump
            >>> async def numbers():
            ...     yield 1
            >>> Pump(numbers()).cancel()
        """
        with self._changed:
            if self._loop is not None and not self._is_closing:
                self._loop.call_soon_threadsafe(self._cancel_reading)
            self._is_closing = True
            if self._thread is None:  # the task will never start
                self._has_ended = True
                self._changed.notify_all()

    def _cancel_reading(self) -> None:
        if self._task is not None:  # otherwise it cleans up already
            self._task.cancel()

    def _start(self) -> None:
        context = contextvars.copy_context()
        run = threading.Thread(target=context.run, args=(self._run,), name="penstock-async", daemon=True)
        run.start()
        self._thread = run
        _running.add(self)

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            with Reading(lambda: self._taker()), asyncio.Runner() as runner:
                runner.run(self._read())
        except asyncio.CancelledError as cancelled:
            # Cancelled from here, it is over; from within, it is the iterable's own doing.
            error = None if self._is_closing else cancelled
        except BaseException as raised:
            error = raised
        with self._changed:
            self._has_ended, self._error = True, error
            is_closing = self._is_closing
            self._changed.notify_all()
        if is_closing and isinstance(error, Exception):
            self._error = None
            raise error  # no reader is left: `threading.excepthook` reports it

    async def _read(self) -> None:
        note_task()
        wanted = asyncio.Event()
        with self._changed:
            if self._is_closing:
                return
            self._loop, self._task, self._wanted = asyncio.get_running_loop(), asyncio.current_task(), wanted
        try:
            await self._read_from(aiter(self._source), wanted)
        finally:
            with self._changed:  # `take` and `cancel` use the loop they find here, under this lock
                self._loop = self._task = self._wanted = None

    async def _read_from(self, items: Any, wanted: asyncio.Event) -> None:
        try:
            async for item in items:
                wanted.clear()
                with self._changed:
                    if self._is_closing:  # the iterable has caught what cancelled it
                        return
                    self._items.append(item)
                    self._is_asked = False
                    self._changed.notify_all()
                await wanted.wait()
        finally:
            self._task = None
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()


_running: WeakSet[Pump] = WeakSet()


# A child has none of the threads of its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)


@atexit.register
def _leave() -> None:
    """Lets iterables clean up before the interpreter goes: their threads would be stopped where they are."""
    pumps, deadline = list(_running), time.monotonic() + _PATIENCE_SECONDS
    for pump in pumps:
        pump.cancel()
    for pump in pumps:
        if pump._thread is not None:
            pump._thread.join(max(0.0, deadline - time.monotonic()))
