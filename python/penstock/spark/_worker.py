"""What runs inside Spark's Python workers: an engine over the rows of one partition.

Rows come in and leave as Arrow batches with the columns of one input or output, or, where there are several,
with a struct for each and a number that says which one a row is of. State goes along as rows of its own, cut
into pieces.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.io.protocols import ArrowData
from penstock.io.rejecting import OnError
from penstock.io.result import Result
from penstock.plan.outputs import Outputs
from penstock.spark.types import in_spark_types
from penstock.staging import key_groups, run_stage_part

__all__ = [
    "BESIDE",
    "GROUP",
    "INPUT",
    "OUTPUT",
    "PART",
    "PIECE",
    "PLACE",
    "STATE",
    "Absorb",
    "Merge",
    "Pass",
    "PassPart",
]

GROUP, INPUT, OUTPUT = "__group", "__input", "__output"
"""Columns beside those of the rows: their key group, and the input or output that they are of."""
PART, PIECE, STATE = "__part", "__piece", "__state"
"""State on its way: the partition that it belongs to, the number of the piece, and its bytes."""

PLACE = "__place"
"""Rows in order of their arrival: the partition that they are in."""
BESIDE = (GROUP, INPUT, OUTPUT, PART, PIECE, STATE, PLACE)
"""All of them: names that no column of a pipeline can have."""

_PIECE_BYTES = 16 << 20
_STATE_SCHEMA = pa.schema({PART: pa.int64(), PIECE: pa.int32(), STATE: pa.binary()})

Reads = Sequence[tuple[str, pa.Schema]]
"""The name and the columns of each input of a stage."""
Keys = Sequence[tuple[str, ...]]
"""The columns that the next stage goes by, for each output of a stage."""


@dataclass(frozen=True)
class Pass:
    """Runs a stage over all rows of a partition.

    Attributes:
        outputs: What the stage does.
        reads: What it reads.
        keys: What the rows of each output are spread by next.
        on_error: What becomes of rows that an operator has no answer for.

    Example:
        >>> import penstock as ps
        >>> from penstock.spark._worker import Pass
        >>> import pyarrow as pa
        >>> prices = ps.stream({"price": "int64"}).filter(ps.col("price") > 1)
        >>> run = Pass(ps.outputs(result=prices), [("stream", pa.schema({"price": pa.int64()}))], [()])
        >>> [batch.to_pylist() for batch in run([pa.record_batch({"price": [1, 2]})])]
        [[{'price': 2}]]
    """

    outputs: Outputs
    reads: Reads
    keys: Keys
    on_error: OnError = "fail"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the rows of a partition, and yields the results."""
        results = self.outputs.run(_inputs(self.reads, batches), workers=1, on_error=self.on_error)
        return _leaving(self.outputs, self.keys, results)


@dataclass(frozen=True)
class Absorb:
    """Takes the rows of a partition into the state of a stage, and yields only that state.

    Attributes:
        outputs: What the stage does.
        reads: What it reads.
        on_error: What becomes of rows that an operator has no answer for.
    """

    outputs: Outputs
    reads: Reads
    on_error: OnError = "fail"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the rows of a partition, and yields the results."""
        inputs = _inputs(self.reads, batches)
        part = run_stage_part(self.outputs, inputs, imposed_watermarks={}, on_error=self.on_error)
        # Any number that no other partition has.
        return _pieces(uuid.uuid4().int >> 65, part.state)


@dataclass(frozen=True)
class Merge:
    """Puts the states together that `Absorb` has made, and closes everything.

    Attributes:
        outputs: What the stage does.
        reads: What it reads.
        keys: What the rows of each output are spread by next.

    Example:
        >>> import penstock as ps
        >>> from penstock.staging import stages
        >>> import pyarrow as pa
        >>> from penstock.spark._worker import Absorb, Merge
        >>> views = ps.stream({"at": "int64"}, time="at").window(ps.tumbling(9)).agg(n=ps.count())
        >>> counting = stages(views).stages[1]
        >>> reads = [(read.stream, pa.schema(read.schema)) for read in counting.inputs]
        >>> made = [pa.record_batch({"at": [1, 2]}), pa.record_batch({"at": [3]})]
        >>> states = [piece for batch in made for piece in Absorb(counting.outputs, reads)([batch])]
        >>> [batch.to_pylist() for batch in Merge(counting.outputs, reads, [()])(states)]
        [[{'window_start': 0, 'window_end': 9, 'n': 3}]]
    """

    outputs: Outputs
    reads: Reads
    keys: Keys

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the rows of a partition, and yields the results."""
        nothing: dict[str, ArrowData] = {stream: [] for stream, _ in self.reads}
        states = _whole(piece for batch in batches for piece in batch.to_pylist())
        results = run_stage_part(self.outputs, nothing, states, imposed_watermarks={}, last=True).results
        return _leaving(self.outputs, self.keys, results)


@dataclass(frozen=True)
class PassPart:
    """Runs a stage over the rows of a partition that came with one micro-batch, and its state.

    Attributes:
        outputs: What the stage does.
        reads: What it reads.
        keys: What the rows of each output are spread by next.
        watermarks_before: The watermark of each stream before this micro-batch, if it has one.
        imposed_watermarks: The watermark of each stream after this micro-batch.
        last: Whether everything is closed.
        on_error: What becomes of rows that an operator has no answer for.
    """

    outputs: Outputs
    reads: Reads
    keys: Keys
    watermarks_before: Mapping[str, int]
    imposed_watermarks: Mapping[str, int]
    last: bool
    on_error: OnError

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the rows of a partition, and yields the results."""
        inputs: dict[int, dict[str, list[pa.RecordBatch]]] = {}
        pieces: dict[int, list[dict[str, object]]] = {}
        # Usually one part, but Spark may put several of them into one task.
        for batch in batches:
            parts = batch.column(PART)
            for part in parts.unique().to_pylist():
                rows = batch.filter(pc.equal(parts, part))
                is_state = rows.column(STATE).is_valid()
                held = inputs.setdefault(part, {stream: [] for stream, _ in self.reads})
                pieces.setdefault(part, []).extend(
                    rows.filter(is_state).select([PART, PIECE, STATE]).to_pylist()
                )
                _sort_out(self.reads, rows.filter(pc.invert(is_state)), held)
        for part, given in inputs.items():
            yield from self._part(part, given, _whole(pieces[part]))

    def _part(
        self, part: int, inputs: Mapping[str, list[pa.RecordBatch]], states: list[bytes]
    ) -> Iterator[pa.RecordBatch]:
        if not states and self.watermarks_before:
            # A partition that had no rows so far: its state begins at the watermark of the others.
            nothing: dict[str, ArrowData] = {stream: [] for stream, _ in self.reads}
            first = run_stage_part(self.outputs, nothing, imposed_watermarks=self.watermarks_before).state
            states = [cast("bytes", first)]
        done = run_stage_part(
            self.outputs,
            dict(inputs),
            states,
            imposed_watermarks=self.imposed_watermarks,
            last=self.last,
            on_error=self.on_error,
        )
        for batch in _leaving(self.outputs, self.keys, done.results, is_mixed=True):
            yield _beside(batch, _STATE_SCHEMA, first=True)
        empty = _mixed(self.outputs, self.keys, 0, None).schema
        for piece in _pieces(part, done.state):
            yield _beside(piece, empty, first=False)


def _inputs(reads: Reads, batches: Iterable[pa.RecordBatch]) -> dict[str, ArrowData]:
    """Returns the rows for each stream of a stage."""
    if len(reads) == 1:
        stream, schema = reads[0]
        return {stream: (batch.select(schema.names).cast(schema) for batch in batches)}
    # Each stream is read at its own pace, so those that are ahead have to wait somewhere.
    inputs: dict[str, list[pa.RecordBatch]] = {stream: [] for stream, _ in reads}
    for batch in batches:
        _sort_out(reads, batch, inputs)
    return dict(inputs)


def _sort_out(reads: Reads, batch: pa.RecordBatch, to: dict[str, list[pa.RecordBatch]]) -> None:
    """Adds the rows of a batch to those of the stream that each is of."""
    numbers = batch.column(INPUT)
    for number in numbers.unique().to_pylist():
        stream, schema = reads[number]
        structs = batch.filter(pc.equal(numbers, number)).column(f"i{number}")
        to[stream].append(pa.RecordBatch.from_struct_array(structs).cast(schema))


def _leaving(
    outputs: Outputs, keys: Keys, results: Mapping[str, Result], *, is_mixed: bool = False
) -> Iterator[pa.RecordBatch]:
    """Converts results for Spark: plain for one output, otherwise side by side."""
    for place, name in enumerate(outputs.names):
        for batch in pa.table(results[name]).to_batches():
            if is_mixed or len(keys) > 1:
                yield _mixed(outputs, keys, place, batch)
            elif keys[place]:
                yield in_spark_types(batch).append_column(GROUP, _groups(batch, keys[place]))
            else:
                yield in_spark_types(batch)


def _groups(batch: pa.RecordBatch, keys: tuple[str, ...]) -> pa.Array:
    return pa.array(np.frombuffer(key_groups(batch, keys), np.uint8).astype(np.int16))


def _beside(batch: pa.RecordBatch, others: pa.Schema, *, first: bool) -> pa.RecordBatch:
    """Combines rows with nulls for other columns, in either order."""
    missing = pa.RecordBatch.from_arrays(
        [pa.nulls(batch.num_rows, kind) for kind in others.types], names=others.names
    )
    left, right = (batch, missing) if first else (missing, batch)
    return pa.RecordBatch.from_arrays(
        [*left.columns, *right.columns], names=[*left.schema.names, *right.schema.names]
    )


def _mixed(outputs: Outputs, keys: Keys, place: int, batch: pa.RecordBatch | None) -> pa.RecordBatch:
    """Combines rows of one output with nulls for the others; without a batch, no rows but all columns."""
    kinds = [_struct_of(outputs, other) for other in range(len(keys))]
    rows = 0 if batch is None else batch.num_rows
    structs = [pa.nulls(rows, kind) for kind in kinds]
    group = pa.nulls(rows, pa.int16())
    if batch is not None:
        structs[place] = in_spark_types(batch).to_struct_array()
        group = _groups(batch, keys[place]) if keys[place] else group
    tag = pa.array(np.full(rows, place, np.int16))
    names = [OUTPUT, GROUP, *(f"o{other}" for other in range(len(keys)))]
    return pa.RecordBatch.from_arrays([tag, group, *structs], names=names)


def _struct_of(outputs: Outputs, place: int) -> pa.DataType:
    """Packs the rows of an output into one struct column for Spark."""
    schema = pa.schema(outputs[outputs.names[place]].schema)
    return pa.struct(list(in_spark_types(pa.RecordBatch.from_pylist([], schema=schema)).schema))


def _pieces(part: int, state: bytes | None) -> Iterator[pa.RecordBatch]:
    """Cuts a state into pieces that Spark carries without effort."""
    if state is None:
        return
    for number, start in enumerate(range(0, len(state), _PIECE_BYTES)):
        piece = {PART: part, PIECE: number, STATE: state[start : start + _PIECE_BYTES]}
        yield pa.RecordBatch.from_pylist([piece], schema=_STATE_SCHEMA)


def _whole(pieces: Iterable[Mapping[str, object]]) -> list[bytes]:
    """Reassembles states from their pieces, which may arrive in any order."""
    by_part: dict[int, list[tuple[int, bytes]]] = {}
    for piece in pieces:
        held = by_part.setdefault(cast("int", piece[PART]), [])
        held.append((cast("int", piece[PIECE]), cast("bytes", piece[STATE])))
    return [
        b"".join(state for _, state in sorted(held, key=lambda piece: piece[0])) for held in by_part.values()
    ]
