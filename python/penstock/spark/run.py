"""Runs a pipeline on Spark: the same pipeline, the same answer, on as many machines as Spark has.

The pipeline is cut into stages where rows have to come together by another key. Each stage is one pass of
Spark over its partitions, with an engine of its own in every Python worker; between two stages Spark moves
rows to where their key group belongs. Rows stay Arrow all the way.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ShortType, StructField, StructType

from penstock.outputs import Outputs
from penstock.spark.types import in_spark_types, spark_schema
from penstock.staging import Stage, Staged, StageInput, key_groups, stages
from penstock.stream import Stream

__all__ = ["run"]

# Columns beside those of the rows, on their way from stage to stage.
_GROUP, _INPUT, _OUTPUT = "__group", "__input", "__output"
_GROUPS = 256


def run(
    plan: Stream,
    data: DataFrame | Mapping[str, DataFrame],
    *,
    key: str | Iterable[str] | None = None,
    order_by: str | Iterable[str] | None = None,
    partitions: int | None = None,
    on_error: Literal["fail", "skip"] = "fail",
) -> DataFrame:
    """Run a pipeline over DataFrames, inside the executors.

    The answer is that of `plan.run` over the same rows in order of their time. Nothing is computed before
    somebody reads the result. Operators without a key, such as the total of all rows, run in one partition.

    Args:
        plan: The pipeline.
        data: The rows; for several streams a mapping of their names. Columns are found by name, and others
            are left out.
        key: The columns that the first operator with a key goes by. The pipeline knows them itself; given
            here, they are compared, so that a mistake comes to light before the job.
        order_by: What rows are put in order by before the first operator with windows, by default their time.
        partitions: Into how many partitions rows are moved by their key, at most 256; by default as many as
            Spark has shuffle partitions.
        on_error: What becomes of a row that an operator has no answer for: "fail" ends the job, "skip" leaves
            it out.

    Returns:
        The result, with the columns of the pipeline in the types of Spark.

    Raises:
        PlanError: The pipeline depends on the clock, or on the order in which rows arrive.
        ValueError: Data or columns are missing, or the key is not that of the pipeline.

    Example:
        >>> import penstock as ps
        >>> from penstock.spark import run, session
        >>> views = ps.stream({"at": "int64", "page": "string"}, time="at")
        >>> counts = views.window(ps.tumbling(10), by="page").agg(n=ps.count())
        >>> made = [(1, "a"), (2, "b"), (3, "a"), (12, "a")]
        >>> rows = session().createDataFrame(made, "at bigint, page string")
        >>> run(counts, rows, partitions=2).orderBy("window_start", "page").show()
        +------------+----------+----+---+
        |window_start|window_end|page|  n|
        +------------+----------+----+---+
        |           0|        10|   a|  2|
        |           0|        10|   b|  1|
        |          10|        20|   a|  1|
        +------------+----------+----+---+
        <BLANKLINE>
    """
    staged = stages(plan)
    frames = _frames(staged, data)
    _check_key(staged, key)
    made: dict[tuple[int, str], DataFrame] = {}
    for number, stage in enumerate(staged.stages):
        given = [
            frames[read.name] if read.stage is None else made[read.stage, read.name] for read in stage.inputs
        ]
        ordered = _names(order_by) if number < len(frames) else None
        rows = _gathered(stage, given, partitions, ordered)
        for name, frame in _passed(staged, number, rows, on_error).items():
            made[number, name] = frame
    ((number, name),) = staged.results
    return made[number, name]


def _names(given: str | Iterable[str] | None) -> list[str] | None:
    return [given] if isinstance(given, str) else None if given is None else list(given)


def _frames(staged: Staged, data: DataFrame | Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The DataFrame of each stream, with the columns that it must have."""
    reads = {read.name: read for stage in staged.stages for read in stage.inputs if read.stage is None}
    if not isinstance(data, Mapping):
        if len(reads) > 1:
            raise ValueError(f"this pipeline reads several streams: give data for each of {sorted(reads)}")
        data = dict.fromkeys(reads, data)
    frames = {}
    for name, read in reads.items():
        if name not in data:
            raise ValueError(f"there is no data for the stream {name!r}; there is for {sorted(data)}")
        for column in read.schema.names:
            if column not in data[name].columns:
                close = get_close_matches(column, data[name].columns, 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ValueError(
                    f"the data of {name!r} has no column {column!r}{hint}: it has {data[name].columns}"
                )
        frames[name] = data[name].select(*(F.col(f"`{column}`") for column in read.schema.names))
    return frames


def _check_key(staged: Staged, key: str | Iterable[str] | None) -> None:
    given = _names(key)
    if given is None:
        return
    keyed = [read.keys for stage in staged.stages for read in stage.inputs if read.spread == "by_key"]
    if not keyed:
        raise ValueError(f"key={given}: this pipeline has no operator with a key; leave key= out")
    if sorted(keyed[0]) != sorted(given):
        raise ValueError(
            f"key={given}: the first operator with a key goes by {list(keyed[0])}; leave key= out"
        )


def _gathered(
    stage: Stage, given: list[DataFrame], partitions: int | None, ordered: list[str] | None
) -> DataFrame:
    """The rows of all inputs of a stage, where they belong and in order."""
    reads = stage.inputs
    if len(reads) == 1:
        rows, times = given[0], [F.col(f"`{reads[0].time}`")] if reads[0].time else []
    else:
        tagged = [_tagged(reads, number, frame) for number, frame in enumerate(given)]
        rows, times = tagged[0], [F.col(_INPUT)]
        for other in tagged[1:]:
            rows = rows.unionByName(other)
        times += [F.col(f"i{number}.`{read.time}`") for number, read in enumerate(reads) if read.time]
    match reads[0].spread:
        case "anyhow":
            return rows.sortWithinPartitions(*ordered) if ordered and len(reads) == 1 else rows
        case "together":
            rows = rows.repartition(1)
        case "by_key":
            count = partitions or int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
            count = max(1, min(count, _GROUPS))
            rows = rows.repartitionById(count, (F.col(_GROUP) % count).cast("int"))
    return rows.sortWithinPartitions(*times) if times else rows


def _tagged(reads: tuple[StageInput, ...], number: int, frame: DataFrame) -> DataFrame:
    """One input of several: its rows as a struct, beside nulls for the others."""

    def column(other: int, read: StageInput) -> Column:
        fields = spark_schema(pa.schema(read.schema))
        if other != number:
            return F.lit(None).cast(fields).alias(f"i{other}")
        named = (F.col(f"`{field.name}`").cast(field.dataType).alias(field.name) for field in fields)
        return F.struct(*named).alias(f"i{other}")

    group = F.col(_GROUP) if _GROUP in frame.columns else F.lit(0).cast("smallint").alias(_GROUP)
    structs = [column(other, read) for other, read in enumerate(reads)]
    return frame.select(F.lit(number).alias(_INPUT), group, *structs)


def _passed(staged: Staged, number: int, rows: DataFrame, on_error: str) -> dict[str, DataFrame]:
    """Each output of a stage."""
    stage = staged.stages[number]
    outputs = stage.outputs
    readers = {read.name: read for other in staged.stages for read in other.inputs if read.stage == number}
    keys = [readers[name].keys if name in readers else () for name in outputs.names]
    reads = [(read.stream, pa.schema(read.schema)) for read in stage.inputs]
    schemas = [pa.schema(outputs[name].schema) for name in outputs.names]
    engine = _Engine(outputs, reads, [tuple(each) for each in keys], on_error)
    if len(schemas) == 1:
        fields = list(spark_schema(schemas[0]))
        if keys[0]:
            fields.append(StructField(_GROUP, ShortType()))
        return {outputs.names[0]: rows.mapInArrow(engine, StructType(fields))}
    structs = [StructField(f"o{place}", spark_schema(schema)) for place, schema in enumerate(schemas)]
    tags = [StructField(_OUTPUT, ShortType()), StructField(_GROUP, ShortType())]
    mixed = rows.mapInArrow(engine, StructType([*tags, *structs]))
    frames = {}
    for place, name in enumerate(outputs.names):
        kept = mixed.where(F.col(_OUTPUT) == place)
        frames[name] = kept.select(f"o{place}.*", *([_GROUP] if keys[place] else []))
    return frames


@dataclass(frozen=True)
class _Engine:
    """What runs in a Python worker: a stage over the rows of one partition."""

    outputs: Outputs
    reads: list[tuple[str, pa.Schema]]
    keys: list[tuple[str, ...]]
    on_error: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        results = self.outputs.run(self._inputs(batches), workers=1, on_error=self.on_error)  # type: ignore[arg-type]
        for place, name in enumerate(self.outputs.names):
            for batch in pa.table(results[name]).to_batches():
                groups = None
                if self.keys[place]:
                    groups = np.frombuffer(key_groups(batch, self.keys[place]), np.uint8).astype(np.int16)
                yield self._leaving(place, batch, groups)

    def _inputs(self, batches: Iterable[pa.RecordBatch]) -> dict[str, Iterable[pa.RecordBatch]]:
        if len(self.reads) == 1:
            stream, schema = self.reads[0]
            return {stream: (batch.select(schema.names).cast(schema) for batch in batches)}
        # Each stream is read at its own pace, so those that are ahead have to wait somewhere.
        inputs: dict[str, list[pa.RecordBatch]] = {stream: [] for stream, _ in self.reads}
        for batch in batches:
            numbers = batch.column(_INPUT)
            for number in numbers.unique().to_pylist():
                stream, schema = self.reads[number]
                structs = batch.filter(pa.compute.equal(numbers, number)).column(f"i{number}")
                inputs[stream].append(pa.RecordBatch.from_struct_array(structs).cast(schema))
        return dict(inputs)

    def _leaving(self, place: int, batch: pa.RecordBatch, groups: np.ndarray | None) -> pa.RecordBatch:
        rows = in_spark_types(batch)
        if len(self.keys) == 1:
            return rows if groups is None else rows.append_column(_GROUP, pa.array(groups))
        tag = pa.array(np.full(len(rows), place, np.int16))
        group = pa.nulls(len(rows), pa.int16()) if groups is None else pa.array(groups)
        structs = [
            rows.to_struct_array() if other == place else pa.nulls(len(rows), _struct_of(self.outputs, other))
            for other in range(len(self.keys))
        ]
        names = [_OUTPUT, _GROUP, *(f"o{other}" for other in range(len(self.keys)))]
        return pa.RecordBatch.from_arrays([tag, group, *structs], names=names)


def _struct_of(outputs: Outputs, place: int) -> pa.DataType:
    """The rows of an output as one column, as Spark has them."""
    schema = pa.schema(outputs[outputs.names[place]].schema)
    return pa.struct(list(in_spark_types(pa.RecordBatch.from_pylist([], schema=schema)).schema))
