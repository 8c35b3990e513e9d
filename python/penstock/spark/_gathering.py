"""Brings the rows of a stage together: the streams of the user, and the rows that other stages have left."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from penstock.exceptions import PlanError, SchemaMismatchError
from penstock.plan.outputs import Outputs
from penstock.plan.stream import Stream
from penstock.spark._worker import BESIDE, GROUP, INPUT
from penstock.spark.types import spark_schema
from penstock.staging import Stage, Staged, StageInput, stages

__all__ = ["check_key", "frames_of", "names_of", "partitions_of", "placed", "stages_of", "tagged"]

_GROUPS = 256
# What a stage calls the columns of a key that is no column of the pipeline.
_COMPUTED = "__key_"
# From the narrowest on.
_WHOLE: list[type[DataType]] = [ByteType, ShortType, IntegerType, LongType]
_FLOATING: list[type[DataType]] = [FloatType, DoubleType]


def names_of(given: str | Iterable[str] | None) -> list[str] | None:
    """Reads one name or several as a list.

    Example:
        >>> from penstock.spark._gathering import names_of
        >>> names_of("at"), names_of(("at", "number")), names_of(None)
        (['at'], ['at', 'number'], None)
    """
    return [given] if isinstance(given, str) else None if given is None else list(given)


def stages_of(plan: object, *, ordered: bool = False) -> Staged:
    """Returns the stages of a pipeline with one output.

    Raises:
        PlanError: It cannot run on several machines.
        TypeError: It is no pipeline, or has several outputs.

    Example:
        >>> import penstock as ps
        >>> from penstock.spark._gathering import stages_of
        >>> rows = ps.stream({"price": "int64"})
        >>> len(stages_of(rows).stages)
        1
        >>> stages_of(ps.outputs(a=rows, b=rows))
        Traceback (most recent call last):
        TypeError: this pipeline has several outputs (a, b): run each of them by itself
    """
    if isinstance(plan, Outputs):
        raise TypeError(
            f"this pipeline has several outputs ({', '.join(plan.names)}): run each of them by itself"
        )
    if not isinstance(plan, Stream):
        raise TypeError(f"a pipeline is a Stream, as ps.stream() makes it, not {type(plan).__name__}")
    staged = stages(plan, ordered=ordered)
    read = [name for stage in staged.stages for each in stage.inputs for name in each.schema.names]
    for name in [*read, *plan.schema.names]:
        if name in BESIDE:
            raise PlanError(f"column {name!r}: on Spark this name is needed beside the rows; rename it")
    return staged


def frames_of(staged: Staged, data: DataFrame | Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Returns the DataFrame of each stream of a pipeline.

    Args:
        staged: The pipeline.
        data: A DataFrame, or one for each stream by name.

    Returns:
        The DataFrames by the names of the streams, as they were given.

    Raises:
        SchemaMismatchError: A column is of another type.
        TypeError: The data is no DataFrame.
        ValueError: Data or a column is missing.
    """
    reads = {read.name: read for stage in staged.stages for read in stage.inputs if read.stage is None}
    if not isinstance(data, Mapping):
        if len(reads) > 1:
            raise ValueError(f"this pipeline reads several streams: give data for each of {sorted(reads)}")
        data = dict.fromkeys(reads, data)
    for name, read in reads.items():
        if name not in data:
            raise ValueError(f"there is no data for the stream {name!r}; there is for {sorted(data)}")
        if not isinstance(data[name], DataFrame):
            raise TypeError(
                f"the data of {name!r} must be a DataFrame of Spark, not {type(data[name]).__name__}; "
                "spark.createDataFrame makes one of a pyarrow.Table"
            )
        for column in columns_of(read):
            check_column(name, data[name], column)
        _check_types(name, data[name], read)
    return {name: data[name] for name in reads}


def columns_of(read: StageInput) -> list[str]:
    """Returns the columns that the input of a stream must have.

    Example:
        >>> import penstock as ps
        >>> from penstock.staging import stages
        >>> from penstock.spark._gathering import columns_of
        >>> columns_of(stages(ps.stream({"price": "int64"})).stages[0].inputs[0])
        ['price']
    """
    return [name for name in read.schema.names if name != read.watermark]


def check_column(stream: str, frame: DataFrame, column: str) -> None:
    """Refuses data without a column.

    Raises:
        ValueError: There is none of that name.
    """
    if column not in frame.columns:
        close = get_close_matches(column, frame.columns, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"the data of {stream!r} has no column {column!r}{hint}: it has {frame.columns}")


def _check_types(stream: str, frame: DataFrame, read: StageInput) -> None:
    """Refuses columns that would have to be changed to fit. On one machine they are refused as well."""
    wanted = spark_schema(pa.schema(read.schema))
    for column in columns_of(read):
        given, needed = frame.schema[column].dataType, wanted[column].dataType
        if not _fits(given, needed):
            declared = pa.schema(read.schema).field(column).type
            raise SchemaMismatchError(
                f"column {column!r} of {stream!r} is {given.simpleString()}, and the stream has {declared}: "
                f'cast it to {needed.simpleString()}, for instance by frame.withColumn("{column}", ...)',
                column,
            )


def _fits(given: DataType, needed: DataType) -> bool:
    """Tells whether a type represents all values of another one exactly.

    Example:
        >>> from pyspark.sql.types import DoubleType, IntegerType, LongType, TimestampNTZType, TimestampType
        >>> from penstock.spark._gathering import _fits
        >>> _fits(IntegerType(), LongType()), _fits(LongType(), IntegerType())
        (True, False)
        >>> _fits(IntegerType(), DoubleType()), _fits(TimestampType(), TimestampNTZType())
        (False, False)
    """
    if isinstance(given, StringType) and isinstance(needed, StringType):
        return True
    if isinstance(given, DecimalType) and isinstance(needed, DecimalType):
        whole = given.precision - given.scale, needed.precision - needed.scale
        return given.scale <= needed.scale and whole[0] <= whole[1]
    for wider in _WHOLE, _FLOATING:
        if type(given) in wider and type(needed) in wider:
            return wider.index(type(given)) <= wider.index(type(needed))
    return given == needed


def check_key(staged: Staged, key: str | Iterable[str] | None) -> None:
    """Refuses a key that is not that of the first operator with one.

    Args:
        staged: The pipeline.
        key: The columns, or None where the pipeline is to know by itself.

    Raises:
        ValueError: It is another one.
    """
    given = names_of(key)
    if given is None:
        return
    keyed = [read.keys for stage in staged.stages for read in stage.inputs if read.spread == "by_key"]
    if not keyed:
        raise ValueError(f"key={given}: this pipeline has no operator with a key; leave key= out")
    if any(name.startswith(_COMPUTED) for name in keyed[0]):
        raise ValueError(f"key={given}: the first operator with a key goes by an expression; leave key= out")
    if sorted(keyed[0]) != sorted(given):
        raise ValueError(
            f"key={given}: the first operator with a key goes by {list(keyed[0])}; leave key= out"
        )


def partitions_of(frame: DataFrame, partitions: object) -> int:
    """Returns the number of partitions that rows are moved into by their key.

    Raises:
        TypeError: It is no whole number.
        ValueError: There are fewer than one, or more than key groups.
    """
    if partitions is None:
        shuffled = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        return max(1, min(shuffled, _GROUPS))
    if not isinstance(partitions, int) or isinstance(partitions, bool):
        raise TypeError(f"partitions must be a whole number, not {type(partitions).__name__}")
    if not 1 <= partitions <= _GROUPS:
        raise ValueError(f"partitions must be from 1 to {_GROUPS}, not {partitions}")
    return partitions


def placed(stage: Stage, given: list[DataFrame], partitions: int) -> DataFrame:
    """Partitions and sorts the rows of all inputs of a stage, in the order that decides lateness.

    Args:
        stage: The stage.
        given: The rows of each of its inputs.
        partitions: How many partitions rows are moved into by their key.

    Returns:
        One DataFrame: that of the only input, or those of all inputs side by side.
    """
    reads = stage.inputs
    orders = [read.watermark or read.time for read in reads]
    if len(reads) == 1:
        rows, times = given[0], [F.col(f"`{order}`") for order in orders if order]
    else:
        rows = tagged(reads, given)
        times = [F.col(f"i{number}.`{order}`") for number, order in enumerate(orders) if order]
        times.insert(0, F.col(INPUT))
    match reads[0].spread:
        case "anyhow":
            return rows
        case "together":
            rows = rows.repartition(1)
        case "by_key":
            rows = rows.repartitionById(partitions, (F.col(GROUP) % partitions).cast("int"))
    return rows.sortWithinPartitions(*times) if times else rows


def tagged(reads: tuple[StageInput, ...], given: list[DataFrame]) -> DataFrame:
    """Combines the rows of all inputs: the number of the input, and a struct per input, null for the others.

    Args:
        reads: The inputs.
        given: The rows of each.

    Returns:
        One DataFrame.
    """
    frames = [_tagged(reads, number, frame) for number, frame in enumerate(given)]
    rows = frames[0]
    for other in frames[1:]:
        rows = rows.unionByName(other)
    return rows


def _tagged(reads: tuple[StageInput, ...], number: int, frame: DataFrame) -> DataFrame:
    def column(other: int, read: StageInput) -> Column:
        fields = spark_schema(pa.schema(read.schema))
        if other != number:
            return F.lit(None).cast(fields).alias(f"i{other}")
        named = (F.col(f"`{field.name}`").cast(field.dataType).alias(field.name) for field in fields)
        return F.struct(*named).alias(f"i{other}")

    group = F.col(GROUP) if GROUP in frame.columns else F.lit(0).cast("smallint").alias(GROUP)
    structs = [column(other, read) for other, read in enumerate(reads)]
    return frame.select(F.lit(number).alias(INPUT), group, *structs)
