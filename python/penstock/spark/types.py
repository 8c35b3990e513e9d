"""Arrow types in Spark: each column gets the type of Spark that holds all of its values exactly."""

from typing import TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

__all__ = ["in_spark_types", "spark_schema"]

_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)

# What Spark has not, and what holds the same values there.
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def spark_schema(schema: pa.Schema) -> StructType:
    """Converts the columns of an Arrow schema to those of Spark.

    Timestamps are in microseconds, the only unit of Spark; those without a time zone are `timestamp_ntz`.
    Unsigned integers get the next wider type, and text is `string` however Arrow keeps it.

    Args:
        schema: The Arrow schema.

    Returns:
        The schema for Spark, in which every column may have nulls.

    Raises:
        TypeError: Spark has no type for a column.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.spark.types import spark_schema
        >>> fields = {"at": pa.timestamp("ms"), "n": pa.uint32(), "big": pa.uint64(), "who": pa.string_view()}
        >>> spark_schema(pa.schema(fields)).simpleString()
        'struct<at:timestamp_ntz,n:bigint,big:decimal(20,0),who:string>'
    """
    return from_arrow_schema(_exact(schema), prefer_timestamp_ntz=True)


def in_spark_types(batch: _Rows) -> _Rows:
    """Converts rows to the types of `spark_schema`.

    Args:
        batch: Rows in any types that Spark can hold, as a batch or as a table.

    Returns:
        The rows as Spark takes them.

    Raises:
        pyarrow.ArrowInvalid: A time is finer than a microsecond.
        TypeError: Spark has no type for a column.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.spark.types import in_spark_types
        >>> fields = {"at": pa.timestamp("s"), "n": pa.uint8()}
        >>> batch = pa.RecordBatch.from_pylist([{"at": 1, "n": 200}], schema=pa.schema(fields))
        >>> in_spark_types(batch).schema.types
        [TimestampType(timestamp[us]), DataType(int16)]
    """
    return batch.cast(_exact(batch.schema))


def _exact(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _exact_type(field)) for field in schema])


def _exact_type(field: pa.Field) -> pa.DataType:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    kind = _WIDER.get(kind, kind)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_nested(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        raise TypeError(f"column {field.name!r} is of the type {kind}, for which there is none in Spark")
    return kind
