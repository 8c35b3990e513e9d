"""What may be handed to a pipeline as data, and what is said about everything else.

Objects that speak the Arrow PyCapsule protocol go to the engine as they are. An iterable is read lazily, one
item at a time, and each item is checked as it comes: nothing is collected, and an exception of the iterable
passes untouched.
"""

import inspect
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import GeneratorType, TracebackType
from typing import Any, Self, TypeGuard
from weakref import ref

from penstock._claims import claim, is_single, release, settle
from penstock.asynchronous import Pump
from penstock.exceptions import StreamConsumedError
from penstock.protocols import ArrowArray, ArrowData, ArrowStream, _LazyBatches, _Readable, _Scannable
from penstock.reading import Reading, Taker, nobody
from penstock.records import is_record, records_to_arrow

__all__ = ["AwaitedItems", "Items", "Opening", "open_one", "open_source"]

_ACCEPTED = (
    "an object that speaks the Arrow PyCapsule protocol (a pyarrow Table, RecordBatch or RecordBatchReader, "
    "a pandas or polars DataFrame, ...)"
)
_ACCEPTED_DATA = f"{_ACCEPTED} or an iterable of such objects"

# How long a thread waits at a time for an item of an asynchronous iterable or of another query.
_SLICE_SECONDS = 0.05


class Items(Iterator[object]):
    """The items of an iterable, each of them checked as it comes.

    Args:
        data: The iterable.
        argument: How the user knows it, for the error message.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.sources import Items
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
        self.taker: Taker = nobody
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
        return _open_item(item, name)

    def note_taker(self, engine: object, taker: object) -> None:
        """Says who reads the items.

        Args:
            engine: The engine that does.
            taker: The query or shared source that does.

        Example:
            >>> import penstock as ps
            >>> from penstock.sources import Items
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=[])
            ...     Items([], "data").note_taker(engine, query)
        """
        self.taker = ref(taker)

    def give_back(self) -> None:
        """Leaves the iterable to somebody else, unless some of it was read.

        Example:
            >>> from penstock.sources import Items
            >>> tables = iter([])
            >>> Items(tables, "data").give_back()
            >>> list(Items(tables, "data"))
            []
        """
        if not self._is_read:
            self._unclaim()

    def close(self) -> None:
        """Says that nobody reads on.

        Example:
            >>> from penstock.sources import Items
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
    """How often an iterator is referred to that only its items hold."""
    items = Items.__new__(Items)
    items._single = items._items = object()  # type: ignore[assignment]
    return items._references()


_OUR_REFERENCES = _references_of_items()


class _Reader(Items):
    """A reader of Arrow batches as the only item: it is opened when somebody reads it."""

    def __init__(self, reader: ArrowStream | ArrowArray, argument: str) -> None:
        self._begin(reader, argument)
        self._items = iter([reader])

    def _checked(self, item: object) -> ArrowStream | ArrowArray:
        return _check(item, self._argument)


class AwaitedItems(Items):
    """The items of an iterable that can be waited for, and told that nobody reads on.

    Args:
        pump: What gives the items out: `note_taker`, `ready`, `waiter`, `take`,
            `cancel` and `close`, as `Pump` has them.
        source: The iterable, if it can be read only once.
        argument: How the user knows it, for the error message.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.sources import AwaitedItems
        >>> from penstock.asynchronous import Pump
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
            >>> from penstock.asynchronous import Pump
            >>> from penstock.sources import AwaitedItems
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
            >>> from penstock.sources import AwaitedItems
            >>> from penstock.asynchronous import Pump
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
            >>> from penstock.sources import AwaitedItems
            >>> from penstock.asynchronous import Pump
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
        """Says that nobody reads on.

        Example:
            >>> from penstock.sources import AwaitedItems
            >>> from penstock.asynchronous import Pump
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


class Opening:
    """Opens the sources of one query. If that does not come to be, those that were not read are free again.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.sources import Opening
        >>> tables = iter([pa.table({"price": [1]})])
        >>> with Opening() as opening:
        ...     source = opening.open(tables, "source")
        >>> next(source).num_rows
        1
    """

    def __init__(self) -> None:
        self._opened: list[Items] = []

    def open(self, data: ArrowData, argument: str) -> ArrowStream | ArrowArray | Items:
        """Turns data into what the engine reads, as `open_source` does.

        Args:
            data: Whatever the user handed in.
            argument: How the user knows it, for the error message.

        Returns:
            Arrow data, or an iterator that checks each item.

        Raises:
            TypeError: It is neither, with a hint at what to do instead.
            StreamConsumedError: It can be read only once, and was.

        Example:
            >>> import pyarrow as pa
            >>> from penstock.sources import Opening
            >>> table = pa.table({"price": [1, 2]})
            >>> with Opening() as opening:
            ...     opening.open(table, "data") is table
            True
        """
        opened = open_source(data, argument)
        if isinstance(opened, Items):
            self._opened.append(opened)
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            for opened in self._opened:
                opened.give_back()


def open_source(data: ArrowData, argument: str) -> ArrowStream | ArrowArray | Items:
    """Turns data into what the engine reads.

    Besides Arrow objects and iterables of them it takes a polars LazyFrame, a dataset or a scanner of
    pyarrow, a `Query` and its results, asynchronous iterables, and objects of dataclasses and their like.

    Args:
        data: Whatever the user handed in.
        argument: How the user knows it, for the error message.

    Returns:
        Arrow data, or an iterator that checks each item.

    Raises:
        TypeError: It is neither, with a hint at what to do instead.
        StreamConsumedError: It is a generator that has ended, or a reader that was read before.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.sources import open_source
        >>> table = pa.table({"price": [1, 2]})
        >>> open_source(table, "data") is table
        True
    """
    # A class has the methods too, but only its instances can be called upon.
    if isinstance(data, type):
        raise TypeError(f"{argument} must be {_ACCEPTED_DATA}, not the class {data.__name__} itself")
    source: Any = _unwrapped(data, argument)
    if isinstance(source, Items):
        return source
    if isinstance(source, ArrowStream | ArrowArray):
        return _Reader(source, argument) if is_single(source) else source
    if isinstance(source, AsyncIterable):
        single = source if isinstance(source, AsyncIterator) else None
        return AwaitedItems(Pump(source), single, argument)
    if is_record(source):
        return records_to_arrow([source], argument)
    hint = _hint(source)
    if hint is not None or not isinstance(source, Iterable):
        raise TypeError(_refusal(argument, _ACCEPTED_DATA, source, hint))
    if isinstance(source, GeneratorType) and inspect.getgeneratorstate(source) == inspect.GEN_CLOSED:
        raise StreamConsumedError(
            f"{argument} is a generator that has ended: it can be read only once. "
            "Call the function that made it again."
        )
    # A list is looked at before the engine starts; other iterables give their items away only once.
    if isinstance(source, list | tuple) and source:
        if is_record(source[0]):
            return records_to_arrow(source, argument)
        if not _is_list_of_records(source[0]):
            _check(source[0], f"item 0 of {argument}")
    return Items(source, argument)


def open_one(data: ArrowData | Sequence[Any], argument: str) -> ArrowStream | ArrowArray:
    """Turns data that has to be one Arrow object, or one list of rows, into what the engine reads.

    Args:
        data: Whatever the user handed in.
        argument: How the user knows it, for the error message.

    Returns:
        The object itself.

    Raises:
        TypeError: It does not speak the protocol, with a hint at what to do instead.
        StreamConsumedError: It is a reader that was read before.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.sources import open_one
        >>> table = pa.table({"price": [1, 2]})
        >>> open_one(table, "data") is table
        True
    """
    if isinstance(data, type):
        raise TypeError(_refusal(argument, _ACCEPTED, data, None))
    source: Any = _unwrapped(data, argument, is_whole=True)
    return _open_item(source, argument)


def _unwrapped(data: Any, argument: str, is_whole: bool = False) -> Any:
    """What stands behind the objects of other libraries, and of this one, that give their rows when asked."""
    if hasattr(type(data), "_as_source") and not is_whole:  # a query, or its results
        return data._as_source(argument)
    if isinstance(data, ArrowStream | ArrowArray):
        return data
    if isinstance(data, _LazyBatches):
        return data.collect_batches(lazy=True)
    if isinstance(data, _Scannable):
        return data.scanner().to_reader()
    if isinstance(data, _Readable):
        return data.to_reader()
    return data


def _open_item(item: object, name: str) -> ArrowStream | ArrowArray:
    """An item of an iterable as Arrow data."""
    if is_record(item):
        return records_to_arrow([item], name)
    if _is_list_of_records(item):
        return records_to_arrow(item, name)
    opened = _check(item, name)
    claim(opened, name)
    return opened


def _is_list_of_records(item: object) -> TypeGuard[Sequence[object]]:
    return isinstance(item, list | tuple) and len(item) > 0 and is_record(item[0])


def _check(item: object, name: str) -> ArrowStream | ArrowArray:
    if isinstance(item, type) or not isinstance(item, ArrowStream | ArrowArray):
        raise TypeError(_refusal(name, _ACCEPTED, item, _hint(item)))
    return item


def _refusal(argument: str, accepted: str, data: object, hint: str | None) -> str:
    return f"{argument} must be {accepted}, not {type(data).__name__}" + ("" if hint is None else f": {hint}")


def _hint(data: object) -> str | None:
    """What to do instead, for the things that people try."""
    if isinstance(data, Mapping):
        return (
            "build a table of it first, with pyarrow.table({...}) from columns "
            "or with pyarrow.Table.from_pylist([...]) from rows"
        )
    if isinstance(data, list | tuple) and data and isinstance(data[0], Mapping):
        return (
            "rows that are dictionaries need a schema: build a table first, with "
            "pyarrow.Table.from_pylist([...]), or push them into a PushSource(schema=...)"
        )
    if isinstance(data, str | PathLike):
        return "open the file first, for example with pyarrow.parquet.ParquetFile(path).iter_batches()"
    if isinstance(data, bytes | bytearray | memoryview):
        return "decode it first, for example with pyarrow.ipc.open_stream(data)"
    if callable(getattr(data, "collect", None)):
        return "collect it first, with .collect()"
    if callable(data):
        return "call it, and hand in what it returns"
    return None
