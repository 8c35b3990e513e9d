"""Which objects count as Arrow data, and what the error for any other object suggests."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TypeGuard

from penstock.io._claims import claim
from penstock.io.protocols import ArrowArray, ArrowStream
from penstock.io.records import is_record, records_to_arrow

__all__ = [
    "ACCEPTED",
    "ACCEPTED_DATA",
    "check_item",
    "hint_for",
    "is_list_of_records",
    "open_item",
    "refusal",
]

ACCEPTED = (
    "an object that speaks the Arrow PyCapsule protocol (a pyarrow Table, RecordBatch or RecordBatchReader, "
    "a pandas or polars DataFrame, ...)"
)
ACCEPTED_DATA = f"{ACCEPTED} or an iterable of such objects"


def open_item(item: object, name: str) -> ArrowStream | ArrowArray:
    """Opens an item of an iterable as Arrow data."""
    if is_record(item):
        return records_to_arrow([item], name)
    if is_list_of_records(item):
        return records_to_arrow(item, name)
    opened = check_item(item, name)
    claim(opened, name)
    return opened


def is_list_of_records(item: object) -> TypeGuard[Sequence[object]]:
    return isinstance(item, list | tuple) and len(item) > 0 and is_record(item[0])


def check_item(item: object, name: str) -> ArrowStream | ArrowArray:
    if isinstance(item, type) or not isinstance(item, ArrowStream | ArrowArray):
        raise TypeError(refusal(name, ACCEPTED, item, hint_for(item)))
    return item


def refusal(argument: str, accepted: str, data: object, hint: str | None) -> str:
    return f"{argument} must be {accepted}, not {type(data).__name__}" + ("" if hint is None else f": {hint}")


def hint_for(data: object) -> str | None:
    """Suggests what to do instead, for objects that users often try."""
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
