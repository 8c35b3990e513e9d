"""Cuts pipelines into stages, each of which can run on any part of its rows: for runs on many machines.

A keyed operator needs all rows of a key in one place. The pipeline is cut before it: what precedes it is a
stage of its own, whose rows are repartitioned by the key. All other operators run where the rows are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from penstock import _penstock
from penstock.io.protocols import ArrowData
from penstock.io.rejecting import OnError
from penstock.io.result import Result
from penstock.plan.options import read_options
from penstock.plan.outputs import Outputs
from penstock.plan.running import run_part_of
from penstock.plan.stream import Stream

__all__ = [
    "Spread",
    "Stage",
    "StageInput",
    "StagePart",
    "Staged",
    "key_groups",
    "run_stage_part",
    "stages",
]

Spread = Literal["anyhow", "by_key", "together"]
"""How rows are spread over the parts of a stage."""


@dataclass(frozen=True, slots=True)
class StageInput:
    """What a stage reads.

    Attributes:
        stream: The name of the stream in the pipelines of the stage.
        stage: The number of the stage that the rows come from; `None` for a stream of the whole pipeline.
        name: The name of that stream, or of the output of that stage.
        spread: How the rows are to be spread over the parts of the stage. Where they have to be together, the
            stage may also run on any part of them, if all states are merged afterwards: see `run_stage_part`.
        keys: The columns that rows are partitioned by, if they are spread by key.
        time: The column with the time of the rows, if they have one: in its order no row is late.
        delay: How many ticks the watermark trails the largest time.
        watermark: The column with the watermark before each row, where lateness follows the order of arrival.
            The caller that supplies the rows of a stream fills it in.
        schema: All columns of the rows.

    Example:
        >>> import penstock as ps
        >>> from penstock.staging import stages
        >>> stages(ps.stream({"price": "int64"})).stages[0].inputs[0].spread
        'anyhow'
    """

    stream: str
    stage: int | None
    name: str
    spread: Spread
    keys: tuple[str, ...]
    time: str | None
    delay: int
    watermark: str | None
    schema: _penstock.Schema


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a pipeline that runs on any part of its rows.

    Attributes:
        inputs: What it reads.
        outputs: What it does, with an output for each stage that reads it.

    Example:
        >>> import penstock as ps
        >>> from penstock.staging import stages
        >>> stages(ps.stream({"price": "int64"})).stages[0].outputs.names
        ['result']
    """

    inputs: tuple[StageInput, ...]
    outputs: Outputs


@dataclass(frozen=True, slots=True)
class StagePart:
    """What `run_stage_part` gives back.

    Attributes:
        results: The rows of each output.
        state: The state of the stage after this part; `None` after the last.
        behind: The watermark after each output, in ticks, if there is one.

    Example:
        >>> from penstock.staging import StagePart
        >>> StagePart({}, None, {"result": 12}).behind
        {'result': 12}
    """

    results: Mapping[str, Result]
    state: bytes | None
    behind: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Staged:
    """A pipeline in stages.

    Attributes:
        stages: The stages, each after those that it reads.
        results: For each output of the pipeline, the stage that produces it, and its name there.

    Example:
        >>> import penstock as ps
        >>> from penstock.staging import stages
        >>> stages(ps.stream({"price": "int64"})).results
        ((0, 'result'),)
    """

    stages: tuple[Stage, ...]
    results: tuple[tuple[int, str], ...]


def stages(plan: Stream | Outputs, *, ordered: bool = False) -> Staged:
    """Cuts a pipeline into stages.

    Args:
        plan: The pipeline.
        ordered: Whether the order of the rows decides which of them are late. Then rows carry the watermark
            before them up to the first operator with windows; otherwise no row is late.

    Returns:
        The stages, and where the results come from.

    Raises:
        PlanError: The answer would depend on the partitioning: windows that close by the clock, times of
            arrival, watermarks of the data, late rows as an output. With `ordered`, also if lateness cannot
            be decided.

    Example:
        >>> import penstock as ps
        >>> from penstock.staging import stages
        >>> views = ps.stream({"at": "int64", "page": "string"}, time="at")
        >>> staged = stages(views.window(ps.tumbling(10), by="page").agg(n=ps.count()))
        >>> [stage.inputs[0].keys for stage in staged.stages]
        [(), ('page',)]
    """
    native = plan._native if isinstance(plan, Outputs) else _penstock.Outputs([("result", plan._plan)])
    parts, results = native.stages(ordered)
    made = (
        Stage(
            tuple(
                StageInput(stream, stage, name, cast("Spread", spread), tuple(keys), *time, schema)
                for stream, stage, name, spread, keys, time, schema in inputs
            ),
            Outputs(outputs),
        )
        for inputs, outputs in parts
    )
    return Staged(tuple(made), tuple(results))


def run_stage_part(
    outputs: Outputs,
    data: Mapping[str, ArrowData],
    states: Sequence[bytes] = (),
    *,
    imposed_watermarks: Mapping[str, int],
    last: bool = False,
    on_error: OnError = "fail",
) -> StagePart:
    """Runs a stage over the next part of its rows, with watermarks that the caller imposes.

    All rows are judged by the watermarks before this part. Parts of a stage that run side by side with the
    same imposed watermarks can be merged: the next part takes the states of all of them.

    Args:
        outputs: What the stage does: `Stage.outputs`.
        data: The rows of each stream.
        states: The state after the previous part; several, if several parts ran side by side.
        imposed_watermarks: The watermark after these rows, in ticks, for each stream that has one.
        last: Whether this is the last part: all open windows close.
        on_error: What happens to a row that an operator rejects: see `Stream.run`.

    Returns:
        The results, and the state after this part.

    Raises:
        PlanError: A state is damaged, of another pipeline, or at another watermark than the others.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> from penstock.staging import run_stage_part, stages
        >>> counts = ps.stream({"at": "int64"}, time="at").window(ps.tumbling(9)).agg(n=ps.count())
        >>> counting = stages(counts).stages[1]
        >>> name = counting.inputs[0].stream
        >>> parts = [pa.table({"at": [1, 2]}), pa.table({"at": [3]})]
        >>> def run(rows, states=(), last=False):
        ...     data = {name: rows}
        ...     return run_stage_part(counting.outputs, data, states, imposed_watermarks={}, last=last)
        >>> done = run([], [run(part).state for part in parts], last=True)
        >>> done.results["result"].to_pylist()
        [{'window_start': 0, 'window_end': 9, 'n': 3}]
    """
    results, state, behind = run_part_of(
        outputs._native,
        data,
        read_options(usual_workers=1),
        states=states,
        last=last,
        imposed_watermarks=imposed_watermarks,
        on_error=on_error,
        warn_above=3,
    )
    return StagePart(results, state, behind)


def key_groups(batch: object, columns: tuple[str, ...]) -> bytes:
    """Computes the key group of each row: one of 256, the same everywhere and in every release.

    Args:
        batch: Arrow data.
        columns: The columns of the key, in order.

    Returns:
        A byte for each row.

    Raises:
        PlanError: A column is not there, or cannot be a key.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.staging import key_groups
        >>> narrow = key_groups(pa.table({"k": pa.array([5], "int32")}), ("k",))
        >>> narrow == key_groups(pa.table({"k": pa.array([5], "int64")}), ("k",))
        True
    """
    return _penstock.key_groups(batch, list(columns))  # type: ignore[arg-type]
