"""What `finish` and the end of a `with` block do after a stop or a failure: nothing is lost in silence."""

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as ps
from penstock import col
from penstock.spark import SparkJobError, SparkStream, stream
from reference.stateful import SCHEMA, table_of
from spark.streaming import COUNTS, NOW, BreakdownError, Collected, simple

ROWS: list[list[tuple[int, str | None, int]]] = [
    [(1, "a", 1), (2, "b", 1)],
    [(13, "a", 1), (14, "b", 1)],
    [(25, "a", 1), (38, "b", 1)],
]
ANSWER = [(0, "a", 1), (0, "b", 1), (10, "a", 1), (10, "b", 1), (20, "a", 1), (30, "b", 1)]


def found(sink: Collected) -> list[tuple[int, str, int]]:
    return sorted((row["window_start"], row["k"], row["n"]) for row in sink.rows.to_pylist())


class Slow(Collected):
    """Takes long over one micro-batch, and falls when it is stopped in the middle of it."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.batch = batch
        self.is_at_it = threading.Event()
        self.falls = threading.Event()

    def __call__(self, results: DataFrame, batch: int) -> None:
        if batch == self.batch and not self.is_at_it.is_set():
            self.is_at_it.set()
            assert self.falls.wait(120)
            raise BreakdownError("cancelled")
        super().__call__(results, batch)

    def stop_in_the_middle(self, running: SparkStream) -> None:
        assert self.is_at_it.wait(120)
        stopping = threading.Thread(target=running.stop)
        stopping.start()
        while not running._is_stopping:
            time.sleep(0.01)
        self.falls.set()
        stopping.join()


def test_results_that_were_not_handed_out_are_by_finish(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, ROWS)
    sink = Slow(2)
    with stream(COUNTS, frame, checkpoint=str(tmp_path / "kept"), sink=sink, trigger=NOW) as running:
        sink.stop_in_the_middle(running)
        running.finish()
    assert sink.calls == [0, 1, 2, 3]
    assert found(sink) == ANSWER


def test_rows_that_spark_has_begun_with_are_not_given_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = simple(spark, tmp_path, ROWS)
    sink = Collected()

    def start() -> SparkStream:
        return stream(COUNTS, frame, checkpoint=str(tmp_path / "kept"), sink=sink, trigger=NOW)

    def fall(*given: Any, **options: Any) -> None:
        raise BreakdownError("not today")

    running = start()
    with monkeypatch.context() as patched:
        patched.setattr("penstock.spark._microbatch.MicroBatches._make", fall)
        with pytest.raises(BreakdownError):
            running.wait()
    # It has failed, and says so again.
    with pytest.raises(BreakdownError):
        running.finish()
    # Another one, which is stopped before anything is made.
    with monkeypatch.context() as patched:
        reached = threading.Event()

        def wait_for_the_end(*given: Any) -> None:
            reached.set()
            while not running._is_stopping:
                time.sleep(0.01)
            raise BreakdownError("cancelled")

        patched.setattr("penstock.spark._microbatch.MicroBatches.take", wait_for_the_end)
        running = start()
        assert reached.wait(120)
        running.stop()
        with pytest.raises(RuntimeError, match=r"micro-batch 0 has begun and is not done: .* wait\(\)"):
            running.finish()
    with start() as running:
        running.wait()
        running.finish()
    assert found(sink) == ANSWER


def test_a_failure_that_nobody_was_told_of_is_raised_at_the_end(spark: SparkSession, tmp_path: Path) -> None:
    plan = ps.stream(SCHEMA, time="t").with_columns(y=10 // col("x"))
    frame = simple(spark, tmp_path, [[(1, "a", 0)]])

    def start() -> SparkStream:
        return stream(plan, frame, checkpoint=str(tmp_path / "kept"), sink=Collected(), trigger=NOW)

    def end_of(running: SparkStream) -> None:
        deadline = time.monotonic() + 120
        while running.is_active and time.monotonic() < deadline:
            time.sleep(0.05)

    with pytest.raises(SparkJobError, match="zero"), start() as running:
        end_of(running)
    # Once is enough, and what the block fails with itself comes first.
    with start() as running, pytest.raises(SparkJobError, match="zero"):
        running.wait()

    def break_down() -> None:
        with start() as running:
            end_of(running)
            raise BreakdownError

    with pytest.raises(BreakdownError):
        break_down()


def test_to_stop_is_no_failure(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, ROWS)
    sink = Slow(0)
    with stream(COUNTS, frame, checkpoint=str(tmp_path / "kept"), sink=sink) as running:
        sink.stop_in_the_middle(running)
    assert not running.is_active
    assert sink.calls == []


def test_to_finish_again_does_nothing(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, ROWS)
    sink = Collected()
    with stream(COUNTS, frame, checkpoint=str(tmp_path / "kept"), sink=sink, trigger=NOW) as running:
        running.wait()
        running.finish()
        running.finish()
    assert sink.calls == [0, 1, 2, 3]


def test_a_folder_has_the_results_of_one_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, ROWS)
    out = tmp_path / "out"

    def start(kept: str, to: Path = out) -> SparkStream:
        return stream(COUNTS, frame, checkpoint=str(tmp_path / kept), out=str(to), trigger=NOW)

    with start("kept") as running:
        running.wait()
    with pytest.raises(ValueError, match="has the results of another checkpoint"):
        start("other")
    # The same one goes on.
    with start("kept") as running:
        running.wait()
        running.finish()
    assert spark.read.parquet(str(out)).count() == len(ANSWER)
    strange = tmp_path / "strange" / "batch=0"
    strange.mkdir(parents=True)
    with pytest.raises(ValueError, match=r"is not empty \(batch=0, ...\)"):
        start("third", strange.parent)
    named = ps.stream(SCHEMA, time="t").select("t", Batch=col("x"))
    with pytest.raises(ValueError, match="the results have a column 'Batch'"):
        stream(named, frame, checkpoint=str(tmp_path / "fourth"), out=str(tmp_path / "fifth"))


def test_what_spark_knows_belongs_to_the_state(spark: SparkSession, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    frame = simple(spark, tmp_path, ROWS[:1])
    sink = Collected()
    with stream(COUNTS, frame, checkpoint=str(kept), sink=sink, trigger=NOW) as running:
        running.wait()
    (kept / "spark").rename(tmp_path / "away")
    with (
        stream(COUNTS, frame, checkpoint=str(kept), sink=sink, trigger=NOW) as running,
        pytest.raises(ValueError, match="is not what the state in .* belongs to"),
    ):
        running.wait()
    assert sink.calls == [0]


def test_a_lookup_with_other_values_is_another_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, ROWS[:1])

    def start(value: int) -> SparkStream:
        table = table_of([(0, "a", value)]).select(["k", "x"]).rename_columns(["k", "y"])
        plan = ps.stream(SCHEMA, time="t").lookup(table, on="k")
        return stream(plan, frame, checkpoint=str(tmp_path / "kept"), sink=Collected(), trigger=NOW)

    for _ in range(2):
        with start(1) as running:
            running.wait()
    with pytest.raises(ValueError, match="is of another pipeline"):
        start(2)


def test_folders_may_be_called_anything(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "run[1] {a,b} *"
    folder.mkdir()
    frame = simple(spark, tmp_path, ROWS)
    with stream(
        COUNTS, frame, checkpoint=str(folder / "kept"), out=str(folder / "out"), trigger=NOW
    ) as running:
        running.wait()
        running.finish()
    files = (folder / "out").glob("batch=*/*.parquet")
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert sorted((row["window_start"], row["k"], row["n"]) for row in rows) == ANSWER
