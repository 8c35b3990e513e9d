"""Pipelines in stages, each of which runs on any part of its rows: how a pipeline runs on many machines.

An operator that keeps rows together by a key needs all rows of a key in one place. Before it, the pipeline is
cut: what is in front is a stage of its own, and its rows are spread anew, by the key. Everything else stays
where the rows are.
"""

from dataclasses import dataclass
from typing import Literal, cast

from penstock import _penstock
from penstock.outputs import Outputs
from penstock.stream import Stream

__all__ = ["Spread", "Stage", "StageInput", "Staged", "key_groups", "stages"]

Spread = Literal["anyhow", "by_key", "together"]
"""How rows are spread over the parts of a stage."""


@dataclass(frozen=True, slots=True)
class StageInput:
    """What a stage reads.

    Attributes:
        stream: The name of the stream in the pipelines of the stage.
        stage: The number of the stage that the rows come from; `None` for a stream of the whole pipeline.
        name: The name of that stream, or of the output of that stage.
        spread: How the rows are to be spread over the parts of the stage.
        keys: The columns that say where a row belongs, if they are spread by key.
        time: The column with the time of the rows, if they have one: in its order no row comes late.
        schema: All columns of the rows.

    Example:
        >>> import penstock as ps
        >>> stages(ps.stream({"price": "int64"})).stages[0].inputs[0].spread
        'anyhow'
    """

    stream: str
    stage: int | None
    name: str
    spread: Spread
    keys: tuple[str, ...]
    time: str | None
    schema: _penstock.Schema


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a pipeline that runs on any part of its rows.

    Attributes:
        inputs: What it reads.
        outputs: What it does, with an output for each stage that reads it.

    Example:
        >>> import penstock as ps
        >>> stages(ps.stream({"price": "int64"})).stages[0].outputs.names
        ['result']
    """

    inputs: tuple[StageInput, ...]
    outputs: Outputs


@dataclass(frozen=True, slots=True)
class Staged:
    """A pipeline in stages.

    Attributes:
        stages: The stages, each behind those that it reads.
        results: For each output of the pipeline, the stage that gives it, and its name there.

    Example:
        >>> import penstock as ps
        >>> stages(ps.stream({"price": "int64"})).results
        ((0, 'result'),)
    """

    stages: tuple[Stage, ...]
    results: tuple[tuple[int, str], ...]


def stages(plan: Stream | Outputs) -> Staged:
    """Cuts a pipeline into stages.

    Args:
        plan: The pipeline.

    Returns:
        The stages, and where the results come from.

    Raises:
        PlanError: The answer would depend on where rows come together: windows that close by the clock, times
            of arrival, watermarks of the data, late rows as an output.

    Example:
        >>> import penstock as ps
        >>> views = ps.stream({"at": "int64", "page": "string"}, time="at")
        >>> staged = stages(views.window(ps.tumbling(10), by="page").agg(n=ps.count()))
        >>> [stage.inputs[0].keys for stage in staged.stages]
        [(), ('page',)]
    """
    native = plan._native if isinstance(plan, Outputs) else _penstock.Outputs([("result", plan._plan)])
    parts, results = native.stages()
    made = (
        Stage(
            tuple(
                StageInput(stream, stage, name, cast("Spread", spread), tuple(keys), time, schema)
                for stream, stage, name, spread, keys, time, schema in inputs
            ),
            Outputs(outputs),
        )
        for inputs, outputs in parts
    )
    return Staged(tuple(made), tuple(results))


def key_groups(batch: object, columns: tuple[str, ...]) -> bytes:
    """The key group of each row of a batch: one of 256, the same everywhere and in every release.

    Args:
        batch: Arrow data.
        columns: The columns of the key, in order.

    Returns:
        A byte for each row.

    Raises:
        PlanError: A column is not there, or cannot be a key.

    Example:
        >>> import pyarrow as pa
        >>> narrow = key_groups(pa.table({"k": pa.array([5], "int32")}), ("k",))
        >>> narrow == key_groups(pa.table({"k": pa.array([5], "int64")}), ("k",))
        True
    """
    return _penstock.key_groups(batch, list(columns))  # type: ignore[arg-type]
