"""What may be handed to a pipeline as data, and how it is opened for the engine.

Objects that speak the Arrow PyCapsule protocol go to the engine as they are. An iterable is read lazily, one
item at a time: see `penstock.io.items`.
"""

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from types import GeneratorType, TracebackType
from typing import Any, Self

from penstock.exceptions import StreamConsumedError
from penstock.io._accepted import (
    ACCEPTED,
    ACCEPTED_DATA,
    check_item,
    hint_for,
    is_list_of_records,
    open_item,
    refusal,
)
from penstock.io._claims import is_single
from penstock.io.asynchronous import Pump
from penstock.io.items import AwaitedItems, Items, ReaderItems
from penstock.io.protocols import ArrowArray, ArrowData, ArrowStream, _LazyBatches, _Readable, _Scannable
from penstock.io.records import is_record, records_to_arrow

__all__ = ["Opening", "open_one", "open_source"]


class Opening:
    """Opens the sources of one query. If the query is refused, sources that were not read are released.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.io.sources import Opening
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
            >>> from penstock.io.sources import Opening
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
        >>> from penstock.io.sources import open_source
        >>> table = pa.table({"price": [1, 2]})
        >>> open_source(table, "data") is table
        True
    """
    # A class has the methods too, but only its instances can be called upon.
    if isinstance(data, type):
        raise TypeError(f"{argument} must be {ACCEPTED_DATA}, not the class {data.__name__} itself")
    source: Any = _unwrapped(data, argument)
    if isinstance(source, Items):
        return source
    if isinstance(source, ArrowStream | ArrowArray):
        return ReaderItems(source, argument) if is_single(source) else source
    if isinstance(source, AsyncIterable):
        single = source if isinstance(source, AsyncIterator) else None
        return AwaitedItems(Pump(source), single, argument)
    if is_record(source):
        return records_to_arrow([source], argument)
    hint = hint_for(source)
    if hint is not None or not isinstance(source, Iterable):
        raise TypeError(refusal(argument, ACCEPTED_DATA, source, hint))
    if isinstance(source, GeneratorType) and inspect.getgeneratorstate(source) == inspect.GEN_CLOSED:
        raise StreamConsumedError(
            f"{argument} is a generator that has ended: it can be read only once. "
            "Call the function that made it again."
        )
    # A list is looked at before the engine starts; other iterables give their items away only once.
    if isinstance(source, list | tuple) and source:
        if is_record(source[0]):
            return records_to_arrow(source, argument)
        if not is_list_of_records(source[0]):
            check_item(source[0], f"item 0 of {argument}")
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
        >>> from penstock.io.sources import open_one
        >>> table = pa.table({"price": [1, 2]})
        >>> open_one(table, "data") is table
        True
    """
    if isinstance(data, type):
        raise TypeError(refusal(argument, ACCEPTED, data, None))
    source: Any = _unwrapped(data, argument, is_whole=True)
    return open_item(source, argument)


def _unwrapped(data: Any, argument: str, is_whole: bool = False) -> Any:
    """Returns the rows behind lazy objects: queries, and frames, datasets and scanners of other libraries."""
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
