"""The Arrow PyCapsule protocol as types: how data comes and goes without a dependency on any one library.

pyarrow, pandas, polars, DuckDB, Spark and others have these methods; see
https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html.
"""

from collections.abc import AsyncIterable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

__all__ = ["ArrowArray", "ArrowData", "ArrowSchema", "ArrowStream", "Record"]


@runtime_checkable
class ArrowSchema(Protocol):
    """An object that describes columns, such as a `pyarrow.Schema`.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.io.protocols import ArrowSchema
        >>> isinstance(pa.schema({"price": pa.int64()}), ArrowSchema)
        True
    """

    def __arrow_c_schema__(self) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """An object that is one batch of rows, such as a `pyarrow.RecordBatch`.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.io.protocols import ArrowArray
        >>> isinstance(pa.record_batch({"price": [1, 2]}), ArrowArray)
        True
    """

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


@runtime_checkable
class ArrowStream(Protocol):
    """An object that is a sequence of batches, such as a `pyarrow.Table` or a DataFrame of pandas or polars.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.io.protocols import ArrowStream
        >>> isinstance(pa.table({"price": [1, 2]}), ArrowStream)
        True
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class _LazyBatches(Protocol):
    """A frame that is computed as it is read, such as a `polars.LazyFrame`."""

    def collect_batches(self, *, lazy: bool) -> Any: ...


@runtime_checkable
class _Scannable(Protocol):
    """Files or tables that can be scanned, such as a `pyarrow.dataset.Dataset`."""

    def scanner(self) -> Any: ...


@runtime_checkable
class _Readable(Protocol):
    """Something that opens a reader, such as a `pyarrow.dataset.Scanner`."""

    def to_reader(self) -> Any: ...


class _Dataclass(Protocol):
    """An object of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class _Model(Protocol):
    """An object of a pydantic model."""

    def model_dump(self) -> dict[str, Any]: ...


# `tuple`: a NamedTuple.
Record: TypeAlias = _Dataclass | _Model | tuple[Any, ...]
_Item: TypeAlias = ArrowStream | ArrowArray | Record | Sequence[Record]
_Whole: TypeAlias = ArrowStream | ArrowArray | _LazyBatches | _Scannable | _Readable
ArrowData: TypeAlias = _Whole | Record | Iterable[_Item] | AsyncIterable[_Item]
