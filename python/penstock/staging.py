"""Pipelines in stages, each of which runs on any part of its rows: how a pipeline runs on many machines.

An operator that keeps rows together by a key needs all rows of a key in one place. Before it, the pipeline is
cut: what is in front is a stage of its own, and its rows are spread anew, by the key. Everything else stays
where the rows are.
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
            stage may also run on any part of them, if all states are put together then: see `run_stage_part`.
        keys: The columns that say where a row belongs, if they are spread by key.
        time: The column with the time of the rows, if they have one: in its order no row comes late.
        delay: By how many ticks the watermark stays behind the largest time.
        watermark: The column with the watermark before each row, where rows are judged by the order in which
            they came. Whoever brings the rows of a stream fills it in.
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
        state: What the stage knows behind this part; `None` behind the last.
        behind: How far event time has come behind each output, in ticks, if it has begun.

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
        stages: The stages, each behind those that it reads.
        results: For each output of the pipeline, the stage that gives it, and its name there.

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
        ordered: Whether the order of the rows says which of them come late. Then rows carry the watermark
            that stood before them, up to the first operator with windows; otherwise none comes late.

    Returns:
        The stages, and where the results come from.

    Raises:
        PlanError: The answer would depend on where rows come together: windows that close by the clock, times
            of arrival, watermarks of the data, late rows as an output. With `ordered`, also where it cannot
            be told which rows come late.

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
    told: Mapping[str, int],
    last: bool = False,
    on_error: OnError = "fail",
) -> StagePart:
    """Runs a stage over the next part of its rows, while somebody else says how far event time comes.

    All rows are judged by how far event time had come before. Parts of a stage that run side by side and are
    told the same may be put together: the next part takes the states of all of them.

    Args:
        outputs: What the stage does: `Stage.outputs`.
        data: The rows of each stream.
        states: What the part before this one has left; several, if there were several side by side.
        told: How far event time has come behind these rows, in ticks, for each stream where it has.
        last: Whether no part follows: everything that is open is closed.
        on_error: What becomes of a row that an operator has no answer for: see `Stream.run`.

    Returns:
        What has come out, and the state behind this part.

    Raises:
        PlanError: A state is damaged, of another pipeline, or has not come as far as the others.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> from penstock.staging import run_stage_part, stages
        >>> counts = ps.stream({"at": "int64"}, time="at").window(ps.tumbling(9)).agg(n=ps.count())
        >>> counting = stages(counts).stages[1]
        >>> name = counting.inputs[0].stream
        >>> parts = [pa.table({"at": [1, 2]}), pa.table({"at": [3]})]
        >>> left = [run_stage_part(counting.outputs, {name: part}, told={}).state for part in parts]
        >>> done = run_stage_part(counting.outputs, {name: []}, left, told={}, last=True)
        >>> done.results["result"].to_pylist()
        [{'window_start': 0, 'window_end': 9, 'n': 3}]
    """
    results, state, behind = run_part_of(
        outputs._native,
        data,
        read_options(usual_workers=1),
        states=states,
        last=last,
        told=told,
        on_error=on_error,
        warn_above=3,
    )
    return StagePart(results, state, behind)


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
        >>> from penstock.staging import key_groups
        >>> narrow = key_groups(pa.table({"k": pa.array([5], "int32")}), ("k",))
        >>> narrow == key_groups(pa.table({"k": pa.array([5], "int64")}), ("k",))
        True
    """
    return _penstock.key_groups(batch, list(columns))  # type: ignore[arg-type]
