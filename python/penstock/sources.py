"""What may be handed to a pipeline as data, and what is said about everything else.

Objects that speak the Arrow PyCapsule protocol go to the engine as they are. An iterable is read lazily, one
item at a time, and each item is checked as it comes: nothing is collected, and an exception of the iterable
passes untouched.
"""

import inspect
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from os import PathLike
from types import GeneratorType
from weakref import WeakSet

from penstock.exceptions import StreamConsumedError
from penstock.protocols import ArrowArray, ArrowData, ArrowStream

__all__ = ["open_one", "open_source"]

_ACCEPTED = (
    "an object that speaks the Arrow PyCapsule protocol (a pyarrow Table, RecordBatch or RecordBatchReader, "
    "a pandas or polars DataFrame, ...)"
)
_ACCEPTED_DATA = f"{_ACCEPTED} or an iterable of such objects"

# Readers that were handed in before. An Arrow reader at its end gives an empty stream when it is asked again,
# without a word, so this is remembered here.
_read_before: WeakSet[object] = WeakSet()


def open_source(data: ArrowData, argument: str) -> ArrowStream | ArrowArray | Iterator[object]:
    """Turns data into what the engine reads.

    Args:
        data: Whatever the user handed in.
        argument: How the user knows it, for the error message.

    Returns:
        The object itself if it speaks the protocol, else an iterator that checks each item.

    Raises:
        TypeError: It is neither, with a hint at what to do instead.
        StreamConsumedError: It is a generator that has ended, or a reader that was read before.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"price": [1, 2]})
        >>> open_source(table, "data") is table
        True
    """
    # A class has the methods too, but only its instances can be called upon.
    if isinstance(data, type):
        raise TypeError(f"{argument} must be {_ACCEPTED_DATA}, not the class {data.__name__} itself")
    if isinstance(data, ArrowStream | ArrowArray):
        _claim(data, argument)
        return data
    hint = _hint(data)
    if hint is not None or not isinstance(data, Iterable):
        raise TypeError(_refusal(argument, _ACCEPTED_DATA, data, hint))
    if isinstance(data, GeneratorType) and inspect.getgeneratorstate(data) == inspect.GEN_CLOSED:
        raise StreamConsumedError(
            f"{argument} is a generator that has ended: it can be read only once. "
            "Call the function that made it again."
        )
    # A list is looked at before the engine starts; other iterables give their items away only once.
    if isinstance(data, list | tuple) and data:
        _check(data[0], 0, argument)
    return _checked(iter(data), argument)


def open_one(data: ArrowStream | ArrowArray, argument: str) -> ArrowStream | ArrowArray:
    """Turns data that has to be one Arrow object into what the engine reads.

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
        >>> table = pa.table({"price": [1, 2]})
        >>> open_one(table, "data") is table
        True
    """
    if isinstance(data, type) or not isinstance(data, ArrowStream | ArrowArray):
        raise TypeError(_refusal(argument, _ACCEPTED, data, _hint(data)))
    _claim(data, argument)
    return data


def _checked(items: Iterator[object], argument: str) -> Iterator[object]:
    for number, item in enumerate(items):
        _check(item, number, argument)
        _claim(item, f"item {number} of {argument}")
        yield item


def _claim(data: object, argument: str) -> None:
    """Refuses a reader that was read before; tables and batches may come as often as they like."""
    if not hasattr(data, "read_next_batch"):
        return
    try:
        if data in _read_before:
            raise StreamConsumedError(
                f"{argument} is a {type(data).__name__} that was read before: it can be read only once. "
                "Open it again, or keep the data in a table."
            )
        _read_before.add(data)
    except TypeError:  # a reader of some other library that cannot be remembered
        return


def _check(item: object, number: int, argument: str) -> None:
    if isinstance(item, type) or not isinstance(item, ArrowStream | ArrowArray):
        raise TypeError(_refusal(f"item {number} of {argument}", _ACCEPTED, item, _hint(item)))


def _refusal(argument: str, accepted: str, data: object, hint: str | None) -> str:
    return f"{argument} must be {accepted}, not {type(data).__name__}" + ("" if hint is None else f": {hint}")


def _hint(data: object) -> str | None:
    """What to do instead, for the things that people try."""
    if isinstance(data, Mapping):
        return (
            "build a table of it first, with pyarrow.table({...}) from columns "
            "or with pyarrow.Table.from_pylist([...]) from rows"
        )
    if isinstance(data, str | PathLike):
        return "open the file first, for example with pyarrow.parquet.ParquetFile(path).iter_batches()"
    if isinstance(data, bytes | bytearray | memoryview):
        return "decode it first, for example with pyarrow.ipc.open_stream(data)"
    if isinstance(data, AsyncIterable):
        return "an asynchronous iterable has to be collected first"
    if callable(data):
        return "call it, and hand in what it returns"
    return None
