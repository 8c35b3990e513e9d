"""Objects of Python as rows: those of dataclasses, NamedTuples and pydantic models, and dictionaries."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from penstock import _penstock
from penstock.exceptions import SchemaMismatchError
from penstock.io.protocols import ArrowArray
from penstock.io.schemas import schema_of_class

__all__ = ["is_record", "records_to_arrow"]

# The schemas of classes whose objects came before.
_schemas: WeakKeyDictionary[type, _penstock.Schema] = WeakKeyDictionary()


def is_record(item: object) -> bool:
    """Tells whether an object is a row: its class declares fields and their types.

    A class may have fields and hold data all the same: what speaks the Arrow protocol is data, and so is an
    object of a dataclass that can be iterated over.

    Args:
        item: Any object.

    Returns:
        True for those of a dataclass, a NamedTuple or a pydantic model.

    Example:
        >>> from typing import NamedTuple
        >>> from penstock.io.records import is_record
        >>> class Trade(NamedTuple):
        ...     price: int
        >>> is_record(Trade(3)), is_record((3,)), is_record({"price": 3})
        (True, False, False)
    """
    if isinstance(item, type):
        return False
    cls = type(item)
    if hasattr(cls, "__arrow_c_stream__") or hasattr(cls, "__arrow_c_array__"):
        return False
    return (
        (dataclasses.is_dataclass(cls) and not hasattr(cls, "__iter__") and not hasattr(cls, "__aiter__"))
        or isinstance(getattr(cls, "model_fields", None), Mapping)
        or (isinstance(item, tuple) and hasattr(cls, "_fields"))
    )


def records_to_arrow(
    records: Sequence[object], argument: str, schema: _penstock.Schema | None = None
) -> ArrowArray:
    """Makes a batch of objects. Needs pyarrow.

    Args:
        records: The objects, all of one class; with a schema, dictionaries as well.
        argument: How the user knows them, for the error message.
        schema: The columns; by default those of the class of the first object.

    Returns:
        The batch.

    Raises:
        TypeError: An object is of another class, or a value is not of the type of its column.
        SchemaMismatchError: A value is missing.
        ModuleNotFoundError: pyarrow is not installed.

    Example:
        >>> import pyarrow as pa
        >>> from typing import NamedTuple
        >>> from penstock.io.records import records_to_arrow
        >>> class Trade(NamedTuple):
        ...     price: int
        >>> pa.record_batch(records_to_arrow([Trade(3)], "data")).to_pylist()
        [{'price': 3}]
    """
    pa = _pyarrow()
    if schema is None:
        cls: type[Any] = type(records[0])
        for number, record in enumerate(records):
            if type(record) is not cls:
                raise TypeError(
                    f"item {number} of {argument} is {type(record).__name__}, and the first is "
                    f"{cls.__name__}: rows that come together are of one class"
                )
        schema = _schema_of(cls)
    fields = pa.schema(schema)
    columns = [_column(pa, field, records, argument) for field in fields]
    batch: ArrowArray = pa.RecordBatch.from_arrays(columns, schema=fields)
    return batch


def _schema_of(cls: type) -> _penstock.Schema:
    known = _schemas.get(cls)
    if known is None:
        known = _schemas[cls] = schema_of_class(cls)
    return known


def _column(pa: Any, field: Any, records: Sequence[object], argument: str) -> Any:
    values = [_value(record, field.name, number, argument) for number, record in enumerate(records)]
    for number, value in enumerate(values):
        if value is None and not field.nullable:
            message = f"item {number} of {argument} has no {field.name!r}, which may not be null"
            raise SchemaMismatchError(message, field.name)
        if isinstance(value, datetime) and pa.types.is_timestamp(field.type):
            _check_zone(field, value, number, argument)
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        for number, value in enumerate(values):
            try:
                pa.array([value], field.type)
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                raise TypeError(
                    f"item {number} of {argument}: {field.name!r} takes {field.type}, not "
                    f"{type(value).__name__} {value!r} ({error})"
                ) from None
        raise


def _check_zone(field: Any, value: datetime, number: int, argument: str) -> None:
    if (value.tzinfo is None) == (field.type.tz is None):
        return
    has, wants = ("no", "one") if value.tzinfo is None else ("a", "none")
    raise TypeError(
        f"item {number} of {argument}: {field.name!r} takes {field.type}, and {value!r} has {has} time zone "
        f"where the column has {wants}; times with a zone are declared as "
        'Annotated[datetime, "timestamp[us, tz=UTC]"]'
    )


def _value(record: object, name: str, number: int, argument: str) -> object:
    if isinstance(record, Mapping):
        return record.get(name)
    try:
        return getattr(record, name)
    except AttributeError:
        raise SchemaMismatchError(
            f"item {number} of {argument} is {type(record).__name__}, which has no {name!r}", name
        ) from None


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise ModuleNotFoundError(
            "rows that are Python objects need pyarrow, which is not installed: pip install pyarrow. "
            "Arrow data of any other library needs nothing.",
            name="pyarrow",
        ) from None
