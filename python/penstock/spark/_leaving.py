"""What leaves a stage, as DataFrames: the rows of each output, and state on its way."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegerType, LongType, ShortType, StructField, StructType

from penstock.plan.outputs import Outputs
from penstock.spark._worker import GROUP, OUTPUT, PART, PIECE, STATE
from penstock.spark.types import spark_schema
from penstock.staging import Staged

__all__ = ["STATE_TYPE", "keys_behind", "leaving_schema", "outputs_of"]

STATE_TYPE = StructType(
    [StructField(PART, LongType()), StructField(PIECE, IntegerType()), StructField(STATE, BinaryType())]
)
"""The columns of state on its way."""


def keys_behind(staged: Staged, number: int) -> list[tuple[str, ...]]:
    """Returns the columns that the rows of each output of a stage are partitioned by next.

    Args:
        staged: The pipeline.
        number: The number of the stage.

    Returns:
        The columns for each output; none where rows stay where they are.

    Example:
        >>> import penstock as ps
        >>> from penstock.staging import stages
        >>> from penstock.spark._leaving import keys_behind
        >>> views = ps.stream({"at": "int64", "page": "string"}, time="at")
        >>> keys_behind(stages(views.window(ps.tumbling(9), by="page").agg(ps.count())), 0)
        [('page',)]
    """
    readers = {read.name: read for stage in staged.stages for read in stage.inputs if read.stage == number}
    names = staged.stages[number].outputs.names
    return [readers[name].keys if name in readers else () for name in names]


def leaving_schema(
    outputs: Outputs, keys: Sequence[tuple[str, ...]], *, with_state: bool = False
) -> StructType:
    """Returns the columns that a worker emits.

    Args:
        outputs: What the stage does.
        keys: What the rows of each output are spread by next.
        with_state: Whether state leaves beside the rows.

    Returns:
        The schema: plain where there is one output, otherwise with a struct for each.

    Example:
        >>> import penstock as ps
        >>> from penstock.spark._leaving import leaving_schema
        >>> rows = ps.stream({"x": "int64"})
        >>> both = ps.outputs(a=rows, b=rows.filter(ps.col("x") > 1))
        >>> leaving_schema(both, [(), ()]).names
        ['__output', '__group', 'o0', 'o1']
    """
    schemas = [spark_schema(pa.schema(outputs[name].schema)) for name in outputs.names]
    group = StructField(GROUP, ShortType())
    if len(schemas) == 1 and not with_state:
        return StructType([*schemas[0], *([group] if keys[0] else [])])
    structs = [StructField(f"o{place}", schema) for place, schema in enumerate(schemas)]
    state = STATE_TYPE.fields if with_state else []
    return StructType([StructField(OUTPUT, ShortType()), group, *structs, *state])


def outputs_of(
    made: DataFrame, outputs: Outputs, keys: Sequence[tuple[str, ...]], *, with_state: bool = False
) -> dict[str, DataFrame]:
    """Separates the rows of each output from what the workers emitted.

    Args:
        made: Rows of `leaving_schema`.
        outputs: What the stage does.
        keys: What the rows of each output are spread by next.
        with_state: Whether state leaves beside the rows.

    Returns:
        A DataFrame for each output, with the key group of each row where it is spread by a key next.
    """
    if len(keys) == 1 and not with_state:
        return {outputs.names[0]: made}
    frames = {}
    for place, name in enumerate(outputs.names):
        kept = made.where(F.col(OUTPUT) == place)
        frames[name] = kept.select(f"o{place}.*", *([GROUP] if keys[place] else []))
    return frames
