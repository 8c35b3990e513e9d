"""The Arrow PyCapsule protocol as types: how data comes and goes without a dependency on any one library.

pyarrow, pandas, polars, DuckDB, Spark and others have these methods; see
https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html.
"""

from collections.abc import Iterable
from typing import Protocol, TypeAlias, runtime_checkable

__all__ = ["ArrowArray", "ArrowData", "ArrowSchema", "ArrowStream"]


@runtime_checkable
class ArrowSchema(Protocol):
    """An object that describes columns, such as a `pyarrow.Schema`.

    Example:
        >>> import pyarrow as pa
        >>> isinstance(pa.schema({"price": pa.int64()}), ArrowSchema)
        True
    """

    def __arrow_c_schema__(self) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """An object that is one batch of rows, such as a `pyarrow.RecordBatch`.

    Example:
        >>> import pyarrow as pa
        >>> isinstance(pa.record_batch({"price": [1, 2]}), ArrowArray)
        True
    """

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


@runtime_checkable
class ArrowStream(Protocol):
    """An object that is a sequence of batches, such as a `pyarrow.Table` or a DataFrame of pandas or polars.

    Example:
        >>> import pyarrow as pa
        >>> isinstance(pa.table({"price": [1, 2]}), ArrowStream)
        True
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


ArrowData: TypeAlias = ArrowStream | ArrowArray | Iterable[ArrowStream | ArrowArray]
