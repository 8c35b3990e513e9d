"""Iterables as sources: each item is checked as it comes, and nothing is collected.

An exception of the iterable passes untouched.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Self
from weakref import ref

from penstock.io._accepted import check_item, open_item
from penstock.io._claims import claim, release, settle
from penstock.io.protocols import ArrowArray, ArrowStream
from penstock.io.reading import Reading, Taker, no_taker

__all__ = ["AwaitedItems", "Items", "ReaderItems"]

# How long a thread waits at a time for an item of an asynchronous iterable or of another query.
_SLICE_SECONDS = 0.05


class Items(Iterator[object]):
    """The items of an iterable, each of them checked as it comes.

    Args:
        data: The iterable.
        argument: How the user knows it, for the error message.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.io.items import Items
        >>> next(Items([pa.table({"price": [1]})], "data")).num_rows
        1
    """

    def __init__(self, data: Iterable[object], argument: str) -> None:
        source = iter(data)
        self._begin(source if source is data else None, argument)
        self._items = source

    def _begin(self, single: object | None, argument: str) -> None:
        """Claims what can be read only once."""
        if single is not None:
            claim(single, argument, self)
        self.taker: Taker = no_taker
        self._single = single
        self._argument = argument
        self._number = 0
        self._is_read = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ArrowStream | ArrowArray:
        self._is_read = True
        with Reading(lambda: self.taker()):  # it may be told while the iterable runs
            item = next(self._items)
        return self._checked(item)

    def _checked(self, item: object) -> ArrowStream | ArrowArray:
        name = f"item {self._number} of {self._argument}"
        self._number += 1
        return open_item(item, name)

    def note_taker(self, engine: object, taker: object) -> None:
        """Says who reads the items.

        Args:
            engine: The engine that does.
            taker: The query or shared source that does.

        Example:
            >>> import penstock as ps
            >>> from penstock.io.items import Items
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=[])
            ...     Items([], "data").note_taker(engine, query)
        """
        self.taker = ref(taker)

    def give_back(self) -> None:
        """Releases the iterable to another reader, unless some of it was read.

        Example:
            >>> from penstock.io.items import Items
            >>> tables = iter([])
            >>> Items(tables, "data").give_back()
            >>> list(Items(tables, "data"))
            []
        """
        if not self._is_read:
            self._unclaim()

    def close(self) -> None:
        """Ends the reading of the items.

        Example:
            >>> from penstock.io.items import Items
            >>> Items([], "data").close()
        """
        # The thread that reads may come upon items that the collector has emptied.
        if getattr(self, "_single", None) is not None:
            settle(self._single, self._references() > _OUR_REFERENCES)

    def _references(self) -> int:
        return sys.getrefcount(self._single)

    def _unclaim(self) -> None:
        if self._single is not None:
            release(self._single)


def _references_of_items() -> int:
    """Counts the references to an iterator that only its items hold."""
    items = Items.__new__(Items)
    items._single = items._items = object()  # type: ignore[assignment]
    return items._references()


_OUR_REFERENCES = _references_of_items()


class ReaderItems(Items):
    """A reader of Arrow batches as the only item, opened at the first read.

    Args:
        reader: The reader.
        argument: How the user knows it, for the error message.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.io.items import ReaderItems
        >>> reader = pa.table({"price": [1]}).to_reader()
        >>> next(ReaderItems(reader, "data")) is reader
        True
    """

    def __init__(self, reader: ArrowStream | ArrowArray, argument: str) -> None:
        self._begin(reader, argument)
        self._items = iter([reader])

    def _checked(self, item: object) -> ArrowStream | ArrowArray:
        return check_item(item, self._argument)


class AwaitedItems(Items):
    """The items of an iterable that can be waited for and cancelled.

    Args:
        pump: What gives the items out: `note_taker`, `ready`, `waiter`, `take`,
            `cancel` and `close`, as `Pump` has them.
        source: The iterable, if it can be read only once.
        argument: How the user knows it, for the error message.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.io.items import AwaitedItems
        >>> from penstock.io.asynchronous import Pump
        >>> async def tables():
        ...     yield pa.table({"price": [1]})
        >>> items = AwaitedItems(Pump(tables()), None, "data")
        >>> items.ready(60), len(list(items))
        (True, 1)
        >>> items.close()
    """

    def __init__(self, pump: Any, source: object | None, argument: str) -> None:
        self._begin(source, argument)
        self._pump = pump

    def note_taker(self, engine: object, taker: object) -> None:
        """Says who reads the items.

        Args:
            engine: The engine that does.
            taker: The query or shared source that does.

        Example:
            >>> import penstock as ps
            >>> from penstock.io.asynchronous import Pump
            >>> from penstock.io.items import AwaitedItems
            >>> async def nothing():
            ...     yield
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=[])
            ...     AwaitedItems(Pump(nothing()), None, "data").note_taker(engine, query)
        """
        super().note_taker(engine, taker)
        self._pump.note_taker(engine, self.taker)

    def ready(self, seconds: float) -> bool:
        """Waits for the next item, or the end.

        Args:
            seconds: For how long.

        Returns:
            Whether there is one.

        Example:
            >>> from penstock.io.items import AwaitedItems
            >>> from penstock.io.asynchronous import Pump
            >>> async def nothing():
            ...     return
            ...     yield
            >>> AwaitedItems(Pump(nothing()), None, "data").ready(60)
            True
        """
        self._is_read = True
        return bool(self._pump.ready(seconds))

    @property
    def waiter(self) -> Any:
        """The object whose `ready` a thread of the engine calls to wait for the next item.

        It does not refer to the items, so the collector can free them while the thread waits.

        Example:
            >>> import pyarrow as pa
            >>> from penstock.io.items import AwaitedItems
            >>> from penstock.io.asynchronous import Pump
            >>> async def tables():
            ...     yield pa.table({"price": [1]})
            >>> items = AwaitedItems(Pump(tables()), None, "data")
            >>> items.waiter.ready(60)
            True
            >>> items.close()
        """
        self._is_read = True
        return self._pump.waiter

    def __next__(self) -> ArrowStream | ArrowArray:
        while not self.ready(_SLICE_SECONDS):  # signals are handled between two calls
            pass
        return self._checked(self._pump.take())

    def close(self) -> None:
        """Ends the reading of the items.

        Example:
            >>> from penstock.io.items import AwaitedItems
            >>> from penstock.io.asynchronous import Pump
            >>> async def nothing():
            ...     yield
            >>> AwaitedItems(Pump(nothing()), None, "data").close()
        """
        # The reading thread may call this after the collector has cleared the attributes.
        pump = getattr(self, "_pump", None)
        if pump is not None:
            pump.close()
            super().close()

    def __del__(self) -> None:
        # The collector has freed the query and its engine, so nothing else will stop the pump.
        pump = getattr(self, "_pump", None)
        if pump is not None:
            pump.cancel()
