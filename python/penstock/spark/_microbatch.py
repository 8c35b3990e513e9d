"""One micro-batch after the other through the stages of a pipeline, with state in between."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.spark._arrival import NEVER, ticks_of
from penstock.spark._checkpoint import Checkpoint
from penstock.spark._gathering import columns_of, placed, tagged
from penstock.spark._leaving import STATE_TYPE, keys_behind, leaving_schema, outputs_of
from penstock.spark._worker import GROUP, INPUT, PART, PIECE, STATE, Pass, PassPart
from penstock.spark.parquet import as_it_stands
from penstock.spark.types import spark_schema
from penstock.staging import Stage, Staged, run_stage_part

__all__ = ["MicroBatches"]

Times = Mapping[str, int | None]
"""The watermark in ticks, or None before the first, for each stream or output by name."""


@dataclass
class _Made:
    """The intermediate results of a micro-batch.

    Attributes:
        frames: The rows of each output of each stage.
        watermarks: The watermark after each output, before this micro-batch and after it.
    """

    frames: dict[tuple[int, str], DataFrame] = field(default_factory=dict)
    watermarks: dict[tuple[int, str], tuple[int | None, int | None]] = field(default_factory=dict)


class MicroBatches:
    """The micro-batches of one pipeline.

    Args:
        spark: The session.
        staged: The pipeline.
        kept: Where state and results are kept.
        partitions: Into how many partitions rows are moved by their key.
        on_error: What becomes of rows that an operator has no answer for.

    Attributes:
        identity: That of the checkpoint.

    Raises:
        ValueError: What is kept is of another pipeline, or has been finished.
    """

    def __init__(
        self,
        spark: SparkSession,
        staged: Staged,
        kept: Checkpoint,
        partitions: int,
        on_error: Literal["fail", "skip"],
    ) -> None:
        if kept.is_finished:
            raise ValueError(f"the checkpoint {kept.path} has been finished: begin anew in another folder")
        self.identity = kept.claim(
            {"pipeline": _mark(staged), "number of partitions": partitions},
            "\n".join(stage.outputs.explain() for stage in staged.stages),
        )
        self._spark = spark
        self._staged = staged
        self._kept = kept
        self._partitions = partitions
        self._on_error = on_error
        self._reads = [read for stage in staged.stages for read in stage.inputs if read.stage is None]

    def take(self, rows: DataFrame, batch: int) -> DataFrame:
        """Makes the results of a micro-batch, unless they have been made before.

        Args:
            rows: The rows of all streams.
            batch: Its number.

        Returns:
            The results, which are on disk.
        """
        record = self._kept.record(batch)
        if record is None:
            before = self._before(batch)
            rows.persist()
            try:
                record = self._make(self._streams(rows), before, batch, last=False)
            finally:
                rows.unpersist()
        elif record["last"]:
            raise ValueError(
                f"the checkpoint {self._kept.path} is being finished, and there are new rows: finish() it, "
                "and begin anew in another folder"
            )
        else:
            self._check_query(record)
        return self._results(record)

    @property
    def is_closing(self) -> bool:
        """Whether everything has been closed, and only has to be handed out."""
        newest = self._kept.newest()
        record = None if newest is None else self._kept.record(newest)
        return record is not None and bool(record["last"])

    def not_done(self) -> tuple[DataFrame, int] | None:
        """Returns the newest results that may not have been delivered.

        Returns:
            The results and the number of the micro-batch, unless Spark knows that they were.

        Raises:
            RuntimeError: Spark has begun a micro-batch that does not count yet: its rows would be lost.
        """
        newest, begun = self._kept.newest(), self._kept.begun()
        if begun is not None and (newest is None or begun > newest):
            raise RuntimeError(
                f"micro-batch {begun} has begun and is not done: start the stream again with the checkpoint "
                f"{self._kept.path}, and wait() for its end, before finish()"
            )
        record = None if newest is None else self._kept.record(newest)
        if newest is None or record is None or self._kept.is_done(newest):
            return None
        return self._results(record), newest

    def close(self) -> tuple[DataFrame, int]:
        """Closes everything that is open, as a micro-batch of its own without rows.

        Returns:
            The last results, and the number that they have.
        """
        newest = self._kept.newest()
        if newest is not None and self.is_closing:
            record = self._kept.record(newest)
            assert record is not None
            return self._results(record), newest
        batch = 0 if newest is None else newest + 1
        nothing = {
            read.name: self._spark.createDataFrame([], spark_schema(pa.schema(read.schema)))
            for read in self._reads
        }
        return self._results(self._make(nothing, self._before(batch), batch, last=True)), batch

    def forget(self, batch: int) -> None:
        """Deletes the files of older micro-batches, once a micro-batch has been delivered.

        Args:
            batch: Its number.
        """
        self._kept.forget(batch)

    def _before(self, batch: int) -> dict[str, Any] | None:
        """Returns the record from which a micro-batch continues."""
        newest = self._kept.newest()
        if newest is None and batch == 0:
            return None
        record = None if newest is None else self._kept.record(newest)
        if record is None or newest != batch - 1:
            raise ValueError(
                f"{self._kept.path} has the state behind micro-batch {newest}, and Spark brings {batch}: "
                "parts of the checkpoint are missing or from elsewhere"
            )
        self._check_query(record)
        return record

    def _check_query(self, record: dict[str, Any]) -> None:
        if record["query"] != self._kept.query:
            raise ValueError(
                f"{self._kept.spark_path} is not what the state in {self._kept.path} belongs to: it was "
                "removed, or is from elsewhere. Begin anew in another folder"
            )

    def _streams(self, rows: DataFrame) -> dict[str, DataFrame]:
        """Returns the rows of each stream."""
        if len(self._reads) == 1:
            return {self._reads[0].name: rows}
        return {
            read.name: rows.where(F.col(INPUT) == number).select(f"i{number}.*")
            for number, read in enumerate(self._reads)
        }

    def _make(
        self, streams: Mapping[str, DataFrame], before: dict[str, Any] | None, batch: int, *, last: bool
    ) -> dict[str, Any]:
        """Runs all stages, and lets the micro-batch count."""
        attempt = self._kept.attempt(batch)
        seen: dict[str, int | None] = before["seen"] if before else {}
        latest = {read.name: self._latest(read.name, streams[read.name], seen) for read in self._reads}
        made = _Made()
        for number, stage in enumerate(self._staged.stages):
            given = [
                streams[read.name].select(*(F.col(f"`{name}`") for name in columns_of(read)))
                if read.stage is None
                else made.frames[read.stage, read.name]
                for read in stage.inputs
            ]
            times = [
                _delayed(seen.get(read.name), latest[read.name], read.delay)
                if read.stage is None
                else made.watermarks[read.stage, read.name]
                for read in stage.inputs
            ]
            if stage.inputs[0].spread == "anyhow":
                frames = self._pass(number, stage, given)
                watermarks = dict.fromkeys(stage.outputs.names, (_least(times, 0), _least(times, 1)))
            else:
                frames = self._pass_part(number, stage, given, times, (attempt, before), last=last)
                watermarks = self._watermarks(stage, times)
            made.frames |= {(number, name): frame for name, frame in frames.items()}
            made.watermarks |= {(number, name): pair for name, pair in watermarks.items()}
        ((number, name),) = self._staged.results
        if self._staged.stages[number].inputs[0].spread == "anyhow":
            made.frames[number, name].write.parquet(f"{self._kept.folder(attempt)}/results")
        record: dict[str, Any] = {
            "attempt": attempt,
            "query": self._kept.query,
            "seen": latest,
            "last": last,
        }
        if not self._kept.commit(batch, record):
            # Another attempt was faster, and its results count.
            record = self._kept.record(batch) or record
        self._kept.remove_rest(batch, record["attempt"])
        return record

    def _latest(self, name: str, rows: DataFrame, seen: Times) -> int | None:
        """Returns the largest time of a stream so far, in ticks."""
        read = next(read for read in self._reads if read.name == name)
        if read.time is None:
            return None
        kind = pa.schema(read.schema).field(read.time).type
        found = rows.agg(F.max(f"`{read.time}`").alias("latest")).toArrow().column("latest")
        largest: int | None = int(ticks_of(found.cast(kind).combine_chunks())[0])
        largest = None if largest == NEVER else largest
        known = [time for time in (seen.get(name), largest) if time is not None]
        return max(known, default=None)

    def _pass(self, number: int, stage: Stage, given: list[DataFrame]) -> dict[str, DataFrame]:
        """Runs a stage without state."""
        keys = keys_behind(self._staged, number)
        reads = [(read.stream, pa.schema(read.schema)) for read in stage.inputs]
        run = Pass(stage.outputs, reads, keys, self._on_error)
        made = placed(stage, given, self._partitions).mapInArrow(run, leaving_schema(stage.outputs, keys))
        return outputs_of(made, stage.outputs, keys)

    def _pass_part(
        self,
        number: int,
        stage: Stage,
        given: list[DataFrame],
        times: list[tuple[int | None, int | None]],
        between: tuple[str, dict[str, Any] | None],
        *,
        last: bool,
    ) -> dict[str, DataFrame]:
        """Runs a stage with state: results and state are written before they are read."""
        attempt, before = between
        keys = keys_behind(self._staged, number)
        count = self._partitions if stage.inputs[0].spread == "by_key" else 1
        part = (F.col(GROUP) % count).cast("bigint").alias(PART)
        nothing = [F.lit(None).cast(kind.dataType).alias(kind.name) for kind in STATE_TYPE.fields[1:]]
        rows = tagged(stage.inputs, given).select("*", part, *nothing)
        if before is not None:
            held = self._read(before["attempt"], number)
            rows = rows.unionByName(
                held.where(F.col(STATE).isNotNull()).select(PART, PIECE, STATE), allowMissingColumns=True
            )
        run = PassPart(
            stage.outputs,
            [(read.stream, pa.schema(read.schema)) for read in stage.inputs],
            keys,
            _known(stage, times, 0),
            _known(stage, times, 1),
            last,
            self._on_error,
        )
        schema = leaving_schema(stage.outputs, keys, with_state=True)
        made = rows.repartitionById(count, F.col(PART).cast("int")).mapInArrow(run, schema)
        made.write.parquet(f"{self._kept.folder(attempt)}/stage-{number}")
        return outputs_of(self._read(attempt, number), stage.outputs, keys, with_state=True)

    def _read(self, attempt: str, number: int) -> DataFrame:
        outputs = self._staged.stages[number].outputs
        schema = leaving_schema(outputs, keys_behind(self._staged, number), with_state=True)
        return self._parquet(schema, f"{self._kept.folder(attempt)}/stage-{number}")

    def _parquet(self, schema: StructType, folder: str) -> DataFrame:
        return self._spark.read.schema(schema).parquet(as_it_stands(folder))

    def _watermarks(
        self, stage: Stage, times: list[tuple[int | None, int | None]]
    ) -> dict[str, tuple[int | None, int | None]]:
        """Returns the watermarks after a stage with state: the same in every partition, also without rows."""
        come = [
            run_stage_part(
                stage.outputs,
                {read.stream: [] for read in stage.inputs},
                imposed_watermarks=_known(stage, times, when),
            ).behind
            for when in (0, 1)
        ]
        return {name: (come[0][name], come[1][name]) for name in stage.outputs.names}

    def _results(self, record: dict[str, Any]) -> DataFrame:
        """Reads the results that a record refers to."""
        ((number, name),) = self._staged.results
        stage = self._staged.stages[number]
        attempt = record["attempt"]
        if stage.inputs[0].spread == "anyhow":
            schema = spark_schema(pa.schema(stage.outputs[name].schema))
            return self._parquet(schema, f"{self._kept.folder(attempt)}/results")
        keys = keys_behind(self._staged, number)
        frames = outputs_of(self._read(attempt, number), stage.outputs, keys, with_state=True)
        return frames[name]


def _mark(staged: Staged) -> str:
    """Identifies a pipeline by all of its parts, except the code of functions."""
    parts = "\n".join(stage.outputs._native.to_parts()[0] for stage in staged.stages)
    return hashlib.sha256(parts.encode()).hexdigest()


def _delayed(before: int | None, after: int | None, delay: int) -> tuple[int | None, int | None]:
    return None if before is None else before - delay, None if after is None else after - delay


def _least(times: list[tuple[int | None, int | None]], when: int) -> int | None:
    """Returns the smallest watermark of all inputs.

    Example:
        >>> from penstock.spark._microbatch import _least
        >>> _least([(None, 5), (2, 3)], 0), _least([(None, 5), (2, 3)], 1)
        (None, 3)
    """
    found = [time[when] for time in times]
    known = [time for time in found if time is not None]
    return min(known) if len(known) == len(found) else None


def _known(stage: Stage, times: list[tuple[int | None, int | None]], when: int) -> dict[str, int]:
    come = {read.stream: time[when] for read, time in zip(stage.inputs, times, strict=True)}
    return {stream: time for stream, time in come.items() if time is not None}
