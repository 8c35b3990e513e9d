"""Runs a pipeline on Structured Streaming: the same pipeline, on rows that keep coming.

Spark cuts the rows into micro-batches. Each goes through the stages of the pipeline as in
`penstock.spark.run`; open windows are kept as state, from which the next micro-batch continues. State,
results and the record that commits both are written before a result is delivered, so a query that is killed
and restarted neither loses a row nor delivers a result twice.

SPARK-STREAM-1. All rows of a micro-batch are judged by the watermark after the previous micro-batch, so their
                order within the micro-batch does not matter.
SPARK-STREAM-2. After a micro-batch, all partitions of a stage have the same watermark.
SPARK-STREAM-3. The results of a micro-batch are those that its record refers to, however often they are
                delivered.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.plan.stream import Stream
from penstock.spark._checkpoint import Checkpoint
from penstock.spark._gathering import check_key, columns_of, frames_of, partitions_of, stages_of, tagged
from penstock.spark._microbatch import MicroBatches
from penstock.spark._worker import GROUP
from penstock.spark.errors import SparkJobError, spark_errors

__all__ = ["SparkStream", "stream"]

Sink = Callable[[DataFrame, int], None]
"""Takes the results of a micro-batch, and its number."""


def stream(
    plan: Stream,
    data: DataFrame | Mapping[str, DataFrame],
    *,
    checkpoint: str,
    out: str | None = None,
    sink: Sink | None = None,
    key: str | Iterable[str] | None = None,
    partitions: int | None = None,
    trigger: Mapping[str, Any] | None = None,
    on_error: Literal["fail", "skip"] = "fail",
) -> "SparkStream":
    """Runs a pipeline over streaming DataFrames, inside the executors, and starts at once.

    All micro-batches together give the answer of `plan.run`, exactly once: a query that ends, by a failure or
    by a kill, continues when it is started again with the same checkpoint. All rows of a micro-batch are
    judged alike: a row is late if its window was closed by the watermark after the previous micro-batch.

    Args:
        plan: The pipeline.
        data: The rows; for several streams a mapping of their names.
        checkpoint: A folder for the state between runs, on a file system that all executors reach.
        out: A folder for the results of this checkpoint alone: each micro-batch becomes a folder `batch=...`
            of Parquet files, which appears all at once.
        sink: A function that takes the results of a micro-batch as a DataFrame, and its number. It is called
            again, with the same rows and number, if the query ended before Spark knew that it was done.
        key: The columns that the first operator with a key goes by, to be compared: see `run`.
        partitions: Into how many partitions rows are moved by their key. It stays what it was at first.
        trigger: When micro-batches are made, as for Spark's `DataStreamWriter.trigger`, for instance
            `{"availableNow": True}` or `{"processingTime": "1 second"}`; by default one after the other.
        on_error: What becomes of a row that an operator has no answer for: "fail" ends the query, "skip"
            leaves it out.

    Returns:
        The running query.

    Raises:
        PlanError: The pipeline depends on the clock or on watermarks in the data.
        SchemaMismatchError: A column is of another type.
        TypeError: The pipeline is none, or has several outputs, or the data is no DataFrame.
        ValueError: Data or columns are missing, the data is no stream, there is neither `out` nor `sink` or
            there are both, the checkpoint is that of another pipeline or has been finished, or `out` has
            results of another checkpoint.

    Example:
        >>> import tempfile
        >>> import penstock as ps
        >>> from penstock.spark import register, session, stream
        >>> from penstock.workloads import ysb
        >>> spark = session()
        >>> register(spark)
        >>> reader = spark.readStream.format("penstock").option("workload", "ysb")
        >>> reader = reader.option("rows", 2_000).option("rowsPerBatch", 1_000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kept, out = f"{folder}/kept", f"{folder}/out"
        ...     trigger = {"availableNow": True}
        ...     with stream(ysb.query(), reader.load(), checkpoint=kept, out=out, trigger=trigger) as views:
        ...         views.wait()
        ...         views.finish()
        ...     spark.read.parquet(out).selectExpr("sum(views)").collect()[0][0]
        True
        683
    """
    if (out is None) == (sink is None):
        raise ValueError("results need one place to go to: give either out= or sink=")
    staged = stages_of(plan)
    frames = frames_of(staged, data)
    check_key(staged, key)
    for name, frame in frames.items():
        if not frame.isStreaming:
            raise ValueError(
                f"the data of {name!r} is no stream: read it with spark.readStream, or use run()"
            )
    reads = [read for stage in staged.stages for read in stage.inputs if read.stage is None]
    given = [frames[read.name].select(*(f"`{name}`" for name in columns_of(read))) for read in reads]
    spark = given[0].sparkSession
    kept = Checkpoint(spark, checkpoint)
    count = partitions_of(given[0], partitions)
    if out is not None:
        _check_names(plan)
    batches = MicroBatches(spark, staged, kept, count, on_error)
    taking = sink if out is None else _Folders(kept, out, batches.identity)
    assert taking is not None
    rows = given[0] if len(given) == 1 else tagged(tuple(reads), given).drop(GROUP)
    return SparkStream(rows, batches, kept, taking, dict(trigger or {}))


@final
class SparkStream:
    """A pipeline that runs on a stream of Spark. It is made by `stream`.

    It is stopped at the end of a `with` block, which fails if the query has failed unnoticed.

    Attributes:
        query: Spark's own handle.

    Example:
        >>> import tempfile
        >>> import penstock as ps
        >>> from penstock.spark import session, stream
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows = session().readStream.schema("x bigint").parquet(folder)
        ...     with stream(
        ...         ps.stream({"x": "int64"}), rows, checkpoint=f"{folder}/kept", out=f"{folder}/out"
        ...     ) as running:
        ...         type(running.query).__name__
        'StreamingQuery'
    """

    query: StreamingQuery

    def __init__(
        self,
        rows: DataFrame,
        batches: MicroBatches,
        kept: Checkpoint,
        sink: Sink,
        trigger: dict[str, Any],
    ) -> None:
        self._batches = batches
        self._kept = kept
        self._sink = sink
        self._is_stopping = False
        self._stopped_with: Exception | None = None
        self._failure: BaseException | None = None
        self._is_told = False
        writer = rows.writeStream.foreachBatch(self._take).option("checkpointLocation", kept.spark_path)
        if trigger:
            writer = writer.trigger(**trigger)
        self.query = writer.start()

    def _take(self, rows: DataFrame, batch: int) -> None:
        try:
            # Spark's message would only say that a callback has failed.
            with spark_errors():
                self._hand_out(self._batches.take(rows, batch), batch)
        except BaseException as error:
            # To be stopped in the middle is no failure.
            if not self._is_stopping:
                self._failure = error
            raise

    def _hand_out(self, results: DataFrame, batch: int) -> None:
        self._sink(results, batch)
        self._batches.forget(batch)

    @property
    def is_active(self) -> bool:
        """Whether it runs.

        Example:
            >>> import tempfile
            >>> import penstock as ps
            >>> from penstock.spark import session, stream
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     rows = session().readStream.schema("x bigint").parquet(folder)
            ...     plan = ps.stream({"x": "int64"})
            ...     running = stream(plan, rows, checkpoint=f"{folder}/kept", out=f"{folder}/out")
            ...     running.is_active
            ...     running.stop()
            True
        """
        return self.query.isActive

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the stream has ended: because it was stopped, or its trigger has nothing more to do.

        Args:
            timeout: For how many seconds at most.

        Returns:
            Whether it has ended.

        Raises:
            SparkJobError: It has failed: with the message of the operator or function that did.

        Example:
            >>> import tempfile
            >>> import penstock as ps
            >>> from penstock.spark import session, stream
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     rows = session().readStream.schema("x bigint").parquet(folder)
            ...     plan = ps.stream({"x": "int64"})
            ...     running = stream(plan, rows, checkpoint=f"{folder}/kept", out=f"{folder}/out")
            ...     running.wait(timeout=1)
            ...     running.stop()
            False
        """
        with self._explained():
            if timeout is None:
                self.query.awaitTermination()
                return True
            return bool(self.query.awaitTermination(timeout))  # type: ignore[arg-type]

    def stop(self) -> None:
        """Stops the stream. The current micro-batch runs again at the next start.

        Example:
            >>> import tempfile
            >>> import penstock as ps
            >>> from penstock.spark import session, stream
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     rows = session().readStream.schema("x bigint").parquet(folder)
            ...     plan = ps.stream({"x": "int64"})
            ...     running = stream(plan, rows, checkpoint=f"{folder}/kept", out=f"{folder}/out")
            ...     running.stop()
            ...     running.is_active
            False
        """
        if not self._is_stopping:
            # What it fails with from here on, it fails with because it is stopped.
            self._stopped_with = self.query.exception()
            self._is_stopping = True
        self.query.stop()

    def finish(self) -> None:
        """Closes all open windows, because no row follows, and delivers the last results.

        Wait for the end before. Nothing can be added to this checkpoint afterwards; to finish it again does
        nothing. Results that may not have been handed out, because it was stopped in the middle, are handed
        out again, with the number that they had.

        Raises:
            RuntimeError: It still runs, or was stopped while rows were on their way, which would be lost.
            SparkJobError: It has failed, or fails now.

        Example:
            >>> import tempfile
            >>> import penstock as ps
            >>> from penstock.spark import session, stream
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     rows = session().readStream.schema("x bigint").parquet(folder)
            ...     plan = ps.stream({"x": "int64"})
            ...     running = stream(plan, rows, checkpoint=f"{folder}/kept", out=f"{folder}/out")
            ...     running.stop()
            ...     running.finish()
            ...     session().read.parquet(f"{folder}/out").count()
            0
        """
        if self._kept.is_finished:
            return
        if self.is_active:
            raise RuntimeError("it still runs: wait() for its end, or stop() it, before finish()")
        with spark_errors():
            if not self._batches.is_closing:
                self._raise_failure()
                rest = self._batches.not_done()
                if rest is not None:
                    self._hand_out(*rest)
            self._hand_out(*self._batches.close())
        self._kept.finish()

    def __enter__(self) -> "SparkStream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None and not self._is_told:
            self._raise_failure()

    def _raise_failure(self) -> None:
        """Raises what the query has failed with, if it has."""
        with self._explained():
            raised = self._stopped_with if self._is_stopping else self.query.exception()
            if raised is not None:
                raise raised

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._is_told = True
            if self._failure is not None:
                raise self._failure from None
            raise SparkJobError(str(error).strip().split("\n", 1)[0]) from None


def _check_names(plan: Stream) -> None:
    for name in plan.schema.names:
        if name.lower() == "batch":
            raise ValueError(
                f"the results have a column {name!r}, and out= keeps the number of the micro-batch under "
                "that name: rename it"
            )


class _Folders:
    """Results as folders of Parquet files, one for each micro-batch, which appear all at once.

    They are those of one checkpoint: the numbers of another one mean other rows.
    """

    def __init__(self, kept: Checkpoint, out: str, identity: str) -> None:
        self._kept = kept
        self._out = kept.qualified(out)
        owner = f"{self._out}/_penstock.json"
        if not kept.exists(owner):
            there = kept.names_in(self._out)
            if there:
                raise ValueError(
                    f"{self._out} is not empty ({there[0]}, ...), and not of this checkpoint: give out= "
                    "another folder"
                )
            kept.write_once(owner, {"checkpoint": identity})
        if kept.read(owner).get("checkpoint") != identity:
            raise ValueError(
                f"{self._out} has the results of another checkpoint: give out= another folder, or go on with "
                "that checkpoint"
            )

    def __call__(self, results: DataFrame, batch: int) -> None:
        target = f"{self._out}/batch={batch}"
        if not self._kept.exists(target):
            hidden = f"{self._out}/_making-{batch}"
            results.write.mode("overwrite").parquet(hidden)
            if not self._kept.publish(hidden, target) and not self._kept.exists(target):
                raise OSError(f"{hidden} could not be renamed to {target}")
