"""Runs a pipeline on Spark: the same pipeline, the same answer, on as many machines as Spark has.

The pipeline is cut into stages where rows have to come together by another key. Each stage is one pass of
Spark over its partitions, with an engine of its own in every Python worker; between two stages Spark moves
rows to where their key group belongs. Rows stay Arrow all the way.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.io.rejecting import OnError
from penstock.plan.stream import Stream
from penstock.spark._arrival import in_order_of_arrival
from penstock.spark._gathering import (
    check_column,
    check_key,
    columns_of,
    frames_of,
    names_of,
    partitions_of,
    placed,
    stages_of,
    tagged,
)
from penstock.spark._leaving import STATE_TYPE, keys_behind, leaving_schema, outputs_of
from penstock.spark._worker import Absorb, Merge, Pass
from penstock.staging import Staged, StageInput

__all__ = ["run"]


def run(
    plan: Stream,
    data: DataFrame | Mapping[str, DataFrame],
    *,
    key: str | Iterable[str] | None = None,
    order_by: str | Iterable[str] | None = None,
    partitions: int | None = None,
    on_error: Literal["fail", "skip"] = "fail",
) -> DataFrame:
    """Runs a pipeline over DataFrames, inside the executors.

    The answer is that of `plan.run` over the same rows: in order of their time, so that none is late, or in
    the order that `order_by` gives. Nothing is computed before the result is read, except that with
    `order_by` rows are sorted at once. Operators without a key, such as the total of all rows, run on every
    partition, and their partial results are merged in one.

    Args:
        plan: The pipeline.
        data: The rows; for several streams a mapping of their names. Columns are found by name, and others
            are left out.
        key: The columns that the first operator with a key goes by. The pipeline knows them itself; given
            here, they are compared, so that a mistake comes to light before the job.
        order_by: The columns that say in which order rows came, for instance a number or the time of arrival:
            a row below the watermark of those before it is late, as on one machine. Rows that arrived
            together are taken in order of their time. By default no row is late.
        partitions: Into how many partitions rows are moved by their key, at most 256; by default as many as
            Spark has shuffle partitions.
        on_error: What becomes of a row that an operator has no answer for: "fail" ends the job, "skip" leaves
            it out.

    Returns:
        The result, with the columns of the pipeline in the types of Spark.

    Raises:
        PlanError: The pipeline depends on the clock or on watermarks in the data, or, with `order_by`, it
            cannot be told which rows come late.
        SchemaMismatchError: A column is of another type. Cast it: what Spark would do by itself may lose
            something.
        TypeError: The pipeline is none, or has several outputs, or the data is no DataFrame.
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
    order = names_of(order_by)
    if order == []:
        raise ValueError("order_by= names no column: give one or more, or leave it out")
    staged = stages_of(plan, ordered=order is not None)
    frames = frames_of(staged, data)
    check_key(staged, key)
    count = partitions_of(next(iter(frames.values())), partitions)
    for name, frame in frames.items():
        for column in order or ():
            check_column(name, frame, column)
    made: dict[tuple[int, str], DataFrame] = {}
    for number, stage in enumerate(staged.stages):
        given = [
            _stream(read, frames[read.name], order) if read.stage is None else made[read.stage, read.name]
            for read in stage.inputs
        ]
        for name, frame in _passed(staged, number, given, count, on_error, order is not None).items():
            made[number, name] = frame
    ((number, name),) = staged.results
    return made[number, name]


def _stream(read: StageInput, frame: DataFrame, order: list[str] | None) -> DataFrame:
    """Returns the rows of a stream, with the columns that a stage reads."""
    names = columns_of(read)
    if order is None or read.watermark is None:
        return frame.select(*(F.col(f"`{name}`") for name in names))
    kept = dict.fromkeys([*names, *order])
    ordered = in_order_of_arrival(frame.select(*(F.col(f"`{name}`") for name in kept)), read, order)
    return ordered.select(read.watermark, *(F.col(f"`{name}`") for name in names))


def _passed(
    staged: Staged, number: int, given: list[DataFrame], partitions: int, on_error: OnError, ordered: bool
) -> dict[str, DataFrame]:
    """Returns each output of a stage."""
    stage = staged.stages[number]
    outputs, keys = stage.outputs, keys_behind(staged, number)
    reads = [(read.stream, pa.schema(read.schema)) for read in stage.inputs]
    schema = leaving_schema(outputs, keys)
    if stage.inputs[0].spread == "together" and not ordered:
        rows = given[0] if len(given) == 1 else tagged(stage.inputs, given)
        states = rows.mapInArrow(Absorb(outputs, reads, on_error), STATE_TYPE)
        made = states.repartition(1).mapInArrow(Merge(outputs, reads, keys), schema)
    else:
        made = placed(stage, given, partitions).mapInArrow(Pass(outputs, reads, keys, on_error), schema)
    return outputs_of(made, outputs, keys)
