"""Schemas as people have them: of Arrow libraries, as names and types, or as classes with annotated fields.

A class is read by its annotations: a dataclass, a `TypedDict`, a `NamedTuple`, or a model of pydantic, which
is known by its `model_fields` and never imported. A field that may be None may be null, all others may not.
"""

import dataclasses
import datetime
import decimal
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NewType, NotRequired, Required, Union, get_args, get_origin

from penstock import _penstock
from penstock.io.protocols import ArrowSchema

__all__ = ["SchemaLike", "read_schema", "schema_of_class"]

# `type`: a dataclass, a TypedDict, a NamedTuple or a pydantic model.
SchemaLike: typing.TypeAlias = ArrowSchema | Mapping[str, Any] | type

_TYPES: dict[object, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    bytes: "binary",
    datetime.datetime: "timestamp[us]",
    datetime.date: "date32",
    datetime.time: "time64[us]",
    datetime.timedelta: "duration[us]",
}
# Python 3.13 adds ReadOnly.
_QUALIFIERS = (Required, NotRequired, getattr(typing, "ReadOnly", Required))
_CLASSES = "a dataclass, a TypedDict, a NamedTuple or a pydantic model"


def read_schema(schema: object) -> _penstock.Schema:
    """Reads a schema.

    Args:
        schema: Any object with `__arrow_c_schema__`, such as a `pyarrow.Schema` or a `polars.Schema`; a
            mapping of column names to types; or a class with annotated fields: see `schema_of_class`. A type
            is a name such as "int64", an Arrow type such as `pyarrow.int64()`, or a Python type, as `int`.

    Returns:
        The schema.

    Raises:
        TypeError: This is no schema, or a type of Python has no counterpart.
        PlanError: There is no type of that name.

    Example:
        >>> from penstock.io.schemas import read_schema
        >>> read_schema({"price": "int64", "kind": str}).types
        ['int64', 'string']
    """
    if isinstance(schema, _penstock.Schema):
        return schema
    if isinstance(schema, type):
        return schema_of_class(schema)
    if isinstance(schema, ArrowSchema):
        return _penstock.Schema(schema)
    if not isinstance(schema, Mapping):
        hint = _hint(schema)
        raise TypeError(
            "schema must be an Arrow schema (an object with __arrow_c_schema__, such as a pyarrow.Schema), "
            f"a mapping of column names to types, or {_CLASSES}, not {type(schema).__name__}{hint}"
        )
    fields = []
    for name, kind in schema.items():
        if not isinstance(name, str):
            raise TypeError(f"a schema maps column names to types, as in {{'price': 'int64'}}, not {name!r}")
        if not isinstance(kind, str | ArrowSchema) or isinstance(kind, type):
            kind, _ = _read_type(f"column {name!r}", kind, ())
        fields.append((name, kind, True))
    return _penstock.Schema.of_fields(fields)


def schema_of_class(record: type) -> _penstock.Schema:
    """Reads a schema off the annotations of a class.

    The types are bool, int (int64), float (float64), str, bytes, datetime (timestamp[us]), date (date32),
    time (time64[us]) and timedelta (duration[us]). Any other Arrow type is written as
    `Annotated[Decimal, "decimal128(10, 2)"]` or `Annotated[int, pyarrow.int16()]`. A field that may be None,
    or that a TypedDict may leave out, may be null.

    Args:
        record: A dataclass, a TypedDict, a NamedTuple or a pydantic model.

    Returns:
        The schema.

    Raises:
        TypeError: It is another class, or a field has a type without a counterpart.

    Example:
        >>> from dataclasses import dataclass
        >>> from penstock.io.schemas import schema_of_class
        >>> @dataclass
        ... class Trade:
        ...     symbol: str
        ...     price: float | None
        >>> schema = schema_of_class(Trade)
        >>> schema.types, schema.nullable
        (['string', 'float64'], [False, True])
    """
    fields = []
    for name, annotation, extras in _annotations(record):
        kind, nullable = _read_type(f"field {name!r} of {record.__name__}", annotation, extras)
        fields.append((name, kind, nullable or name in getattr(record, "__optional_keys__", ())))
    if not fields:
        raise TypeError(f"{record.__name__} has no fields, and a schema has at least one column")
    return _penstock.Schema.of_fields(fields)


def _annotations(cls: type) -> Iterator[tuple[str, object, tuple[object, ...]]]:
    """Yields the fields of a class: name, annotation and further metadata."""
    models = getattr(cls, "model_fields", None)
    if isinstance(models, Mapping):
        for name, field in models.items():
            yield name, field.annotation, tuple(getattr(field, "metadata", ()))
        return
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)]
    elif typing.is_typeddict(cls):
        names = list(cls.__annotations__)
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        names = list(cls._fields)
    else:
        raise TypeError(f"the class {cls.__name__} is no schema: that takes {_CLASSES}")
    hints = _hints(cls)
    for name in names:
        if name not in hints:
            raise TypeError(f"field {name!r} of {cls.__name__} has no type")
        yield name, hints[name], ()


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"the annotations of {cls.__name__} name {error.name!r}, which is not known where the class is "
            "defined"
        ) from error


def _read_type(what: str, annotation: object, extras: tuple[object, ...]) -> tuple[object, bool]:
    """Returns the Arrow type of an annotation, and whether it may be null."""
    nullable = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            extras = (*extras, *more)
        elif origin in _QUALIFIERS:
            nullable = nullable or origin is NotRequired
            (annotation,) = get_args(annotation)
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif origin is Union or origin is types.UnionType:
            others = [one for one in get_args(annotation) if one is not type(None)]
            if len(others) != 1:
                raise TypeError(f"{what} is {_written(annotation)}: a column has one type")
            annotation, nullable = others[0], True
        else:
            break
    for extra in extras:
        if isinstance(extra, str | ArrowSchema) and not isinstance(extra, type):
            return extra, nullable
    if origin is typing.Literal:
        return _literal_type(what, annotation), nullable
    if annotation is decimal.Decimal:
        return _decimal_type(what, extras), nullable
    kind = _TYPES.get(annotation) if isinstance(annotation, type) else None
    if kind is None:
        raise TypeError(f"{what} is {_written(annotation)}: {_instead(annotation)}")
    return kind, nullable


def _literal_type(what: str, annotation: object) -> str:
    kinds = {_TYPES.get(type(value)) for value in get_args(annotation)}
    kind = kinds.pop()
    if kind is None or kinds:
        raise TypeError(f"{what} is {_written(annotation)}: a column has values of one type")
    return kind


def _decimal_type(what: str, extras: tuple[object, ...]) -> str:
    digits = [getattr(extra, "max_digits", None) for extra in extras]
    places = [getattr(extra, "decimal_places", None) for extra in extras]
    digits, places = ([value for value in values if value is not None] for values in (digits, places))
    if not digits or not places:
        raise TypeError(
            f"{what} is Decimal, which does not say how many digits there are: write "
            'Annotated[Decimal, "decimal128(10, 2)"]'
        )
    return f"decimal128({digits[0]}, {places[0]})"


def _instead(annotation: object) -> str:
    origin = get_origin(annotation) or annotation
    nested = isinstance(origin, type) and (
        issubclass(origin, list | tuple | set | frozenset | dict | Mapping)
        or dataclasses.is_dataclass(origin)
        or typing.is_typeddict(origin)
        or hasattr(origin, "model_fields")
    )
    if nested:
        return "columns are not nested; make each of its values a field of its own"
    known = ", ".join(kind.__name__ for kind in _TYPES if isinstance(kind, type))
    return f'a column is one of {known}, or of an Arrow type: Annotated[..., "int32"]'


def _written(annotation: object) -> str:
    return annotation.__name__ if type(annotation) is type else str(annotation)


def _hint(schema: object) -> str:
    is_tuple = isinstance(schema, tuple) and hasattr(schema, "_fields")
    is_model = isinstance(getattr(type(schema), "model_fields", None), Mapping)
    if is_tuple or is_model or dataclasses.is_dataclass(schema):
        return f": use the class, {type(schema).__name__}"
    if callable(getattr(schema, "collect_schema", None)):
        return ": use its .collect_schema()"
    if hasattr(schema, "schema"):
        return ": use its .schema"
    if hasattr(schema, "dtypes"):
        return ": use pyarrow.Schema.from_pandas(frame)"
    return ""
