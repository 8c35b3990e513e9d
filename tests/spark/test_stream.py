"""Pipelines on Structured Streaming give the answers of one machine, exactly once, whatever happens."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import col
from penstock.spark import SparkJobError, SparkStream, compare, stream
from penstock.spark._checkpoint import Checkpoint
from penstock.spark._worker import INPUT, PART, PIECE, STATE, PassPart
from penstock.spark.comparison import as_frame
from penstock.spark.validate import tolerance_of
from penstock.staging import stages
from penstock.workloads.catalog import workload
from reference.sizes import SOAK
from reference.stateful import SCHEMA, table_of
from spark.streaming import COUNTS, NOW, BreakdownError, Collected, read_files, simple, write_files

BATCHES, BREAKS_AT, FALLS_AT = (20, 7, 13) if SOAK else (7, 2, 4)
# Rows and options such that windows close all along.
QUERIES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "ysb": ("ysb", 4_000, {"rate": 50, "out_of_order_ms": 500}),
    "nyt": ("nyt", 3_000, {"rate": 100}),
    "q5": ("nexmark", 4_000, {"rate": 100}),
    "q7": ("nexmark", 4_000, {"rate": 100}),
    "q8": ("nexmark", 4_000, {"rate": 100}),
    "lrb": ("lrb", 3_000, {"minutes": 15, "cars_per_second": 40}),
}


def given(data: Mapping[str, Any]) -> Any:
    """Data by name, or the only one."""
    return data if len(data) > 1 else next(iter(data.values()))


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_that_of_one_machine_also_after_failures(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    name, rows, options = QUERIES[query]
    made = workload(name)
    asked = made.queries[query]
    plan = asked.build(7, None)
    tables = {
        table: pa.table(made.tables[table](made.rows_of(table, rows), seed=7, **options))
        for table in asked.tables
    }
    for table, data in tables.items():
        write_files(data, tmp_path / table, BATCHES)
    frames = {table: read_files(spark, tmp_path / table, data.schema) for table, data in tables.items()}
    sink = Collected()
    # Handed out, and Spark does not know of it.
    sink.breaks_at = {BREAKS_AT}
    # State and results are written, and do not count.
    committed = Checkpoint.commit
    falls = {FALLS_AT}

    def commit(self: Checkpoint, batch: int, record: dict[str, Any]) -> bool:
        if batch in falls:
            falls.remove(batch)
            raise BreakdownError(f"out with {batch}")
        return committed(self, batch, record)

    monkeypatch.setattr(Checkpoint, "commit", commit)

    def start() -> SparkStream:
        return stream(
            plan, given(frames), checkpoint=str(tmp_path / "kept"), sink=sink, partitions=2, trigger=NOW
        )

    for reason in (f"down with {BREAKS_AT}", f"out with {FALLS_AT}"):
        with start() as failing, pytest.raises(BreakdownError, match=reason):
            failing.wait()
    with start() as running:
        assert running.wait(300)
        running.finish()
    assert sink.calls == [*range(BREAKS_AT + 1), *range(BREAKS_AT, BATCHES + 1)]
    comparison = compare(
        as_frame(spark, plan.run(given(tables))), sink.rows, asked.keys, tolerance=tolerance_of(query)
    )
    assert comparison.ok, comparison.report()
    assert comparison.equal > 0
    # Not everything came at the end.
    assert sum(len(batch) > 0 for batch in sink.batches.values()) > 2


CHILD = """
import sys, warnings
warnings.simplefilter("ignore")
from penstock.spark import session, stream
from penstock.workloads.catalog import workload
from penstock.spark.types import spark_schema
import pyarrow as pa
folder = sys.argv[1]
spark = session(settings={"spark.sql.codegen.wholeStage": "false"})
plan = workload("ysb").query("ysb").build(7, None)
schema = spark_schema(pa.schema(workload("ysb").generator()(0).schema))
rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/events")
views = stream(plan, rows, checkpoint=f"{folder}/kept", out=f"{folder}/out", trigger={"availableNow": True})
views.wait()
views.finish()
print("finished", flush=True)
"""


def test_a_query_that_is_killed_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    made = workload("ysb")
    rows = pa.table(made.tables["events"](3_000, seed=7, rate=50))
    write_files(rows, tmp_path / "events", 4)
    kills = 0
    for wanted in (1, None):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 300
        while wanted is not None and child.poll() is None and time.monotonic() < end:
            if (tmp_path / "out" / f"batch={wanted}").exists():
                child.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.02)
        printed, _ = child.communicate(timeout=300)
    assert kills == 1
    assert printed == b"finished\n"
    asked = made.query("ysb")
    found = spark.read.parquet(str(tmp_path / "out")).drop("batch")
    comparison = compare(as_frame(spark, asked.build(7, None).run(rows)), found, asked.keys)
    assert comparison.ok, comparison.report()


def test_rows_of_a_batch_come_at_once_and_late_ones_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    # The second row would be late behind the first one, but they come together.
    frame = simple(
        spark, tmp_path, [[(25, "a", 1), (3, "a", 1)], [(4, "a", 1), (13, "b", 1), (24, "b", 1)], []]
    )
    sink = Collected()
    with stream(COUNTS, frame, checkpoint=str(tmp_path / "kept"), sink=sink, trigger=NOW) as running:
        running.wait()
        assert [len(batch) for batch in sink.batches.values()][:2] == [1, 0]
        running.finish()
    rows = sorted((row["window_start"], row["k"], row["n"]) for row in sink.rows.to_pylist())
    assert rows == [(0, "a", 1), (20, "a", 1), (20, "b", 1)]


def test_plans_without_state_or_key(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, [[(1, "a", 1), (2, "b", 5)], [(15, "a", 7)]])
    for name, plan, wanted in [
        ("filter", ps.stream(SCHEMA).filter(col("x") > 1).select("x"), [5, 7]),
        ("total", ps.stream(SCHEMA, time="t").window(ps.tumbling(10)).agg(x=ps.sum("x")), [6, 7]),
    ]:
        sink = Collected()
        with stream(plan, frame, checkpoint=str(tmp_path / name), sink=sink, trigger=NOW) as running:
            running.wait()
            running.finish()
        assert sorted(row["x"] for row in sink.rows.to_pylist()) == wanted


def test_the_error_of_an_executor_is_the_users(spark: SparkSession, tmp_path: Path) -> None:
    plan = ps.stream(SCHEMA, time="t").with_columns(y=10 // col("x"))
    frame = simple(spark, tmp_path, [[(1, "a", 1)], [(2, "b", 0)]])
    out = tmp_path / "out"
    kept = str(tmp_path / "kept")
    with (
        stream(plan, frame, checkpoint=kept, out=str(out), trigger=NOW) as running,
        pytest.raises(SparkJobError, match="zero") as raised,
    ):
        running.wait()
    assert "java" not in str(raised.value).lower()
    with stream(
        plan, frame, checkpoint=str(tmp_path / "kept"), out=str(out), trigger=NOW, on_error="skip"
    ) as running:
        running.wait()
    assert spark.read.parquet(str(out)).count() == 1


def test_a_checkpoint_belongs_to_one_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, [[(1, "a", 1)]])
    kept = str(tmp_path / "kept")

    def start(plan: ps.Stream, **options: Any) -> SparkStream:
        return stream(plan, frame, checkpoint=kept, sink=Collected(), trigger=NOW, **options)

    with start(COUNTS) as running:
        running.wait()
    other = ps.stream(SCHEMA, time="t", delay=2).window(ps.tumbling(11), by="k").agg(n=ps.count())
    with pytest.raises(ValueError, match="is of another pipeline"):
        start(other)
    with pytest.raises(ValueError, match="another number of partitions"):
        start(COUNTS, partitions=7)
    with start(COUNTS) as running:
        running.wait()
        running.finish()
        running.finish()
    with pytest.raises(ValueError, match="has been finished"):
        start(COUNTS)


def test_what_is_wrong_is_said_before_anything_starts(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, [[(1, "a", 1)]])
    kept = str(tmp_path / "kept")
    with pytest.raises(ValueError, match="either out= or sink="):
        stream(COUNTS, frame, checkpoint=kept)
    with pytest.raises(
        ValueError, match=re.escape("is no stream: read it with spark.readStream, or use run()")
    ):
        stream(COUNTS, as_frame(spark, table_of([])), checkpoint=kept, out="x")
    with pytest.raises(ValueError, match="goes by"):
        stream(COUNTS, frame, checkpoint=kept, out="x", key="x")
    clocked = ps.stream(SCHEMA, time="t").window(ps.tumbling(5), close_after="1s").agg(ps.count())
    with pytest.raises(ps.PlanError, match="close by the clock"):
        stream(clocked, frame, checkpoint=kept, out="x")
    assert not (tmp_path / "kept").exists()


def test_types_that_would_have_to_be_changed_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, [[(1, "a", 1)]])
    left, right = (ps.stream(SCHEMA, time="t", name=name) for name in ("left", "right"))
    doubled = frame.withColumn("x", frame["x"] * 1.5)
    for plan, given in ((left, doubled), (left.union(right), {"left": frame, "right": doubled})):
        with pytest.raises(ps.SchemaMismatchError, match="column 'x' of '(left|right)' is double"):
            stream(plan, given, checkpoint=str(tmp_path / "kept"), sink=Collected())


def test_a_state_that_is_missing_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    frame = simple(spark, tmp_path, [[(1, "a", 1)], [(2, "a", 1)]])
    kept = tmp_path / "kept"
    sink = Collected()
    for batch in range(2):
        sink.breaks_at = {batch}
        with (
            stream(COUNTS, frame, checkpoint=str(kept), sink=sink, trigger=NOW) as running,
            pytest.raises(BreakdownError),
        ):
            running.wait()
    for file in (kept / "batches").glob("*.json"):
        file.unlink()
    with (
        stream(COUNTS, frame, checkpoint=str(kept), sink=sink, trigger=NOW) as running,
        pytest.raises(ValueError, match="parts of the checkpoint are missing"),
    ):
        running.wait()


def test_rows_that_come_while_it_is_being_finished_are_not_lost_in_silence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = simple(spark, tmp_path, [[(1, "a", 1)]])
    sink = Collected()

    def start() -> SparkStream:
        return stream(COUNTS, frame, checkpoint=str(tmp_path / "kept"), sink=sink, trigger=NOW)

    def fall(self: Checkpoint) -> None:
        raise BreakdownError("almost there")

    with monkeypatch.context() as patched, start() as running:
        running.wait()
        patched.setattr(Checkpoint, "finish", fall)
        with pytest.raises(BreakdownError):
            running.finish()
    pq.write_table(table_of([(2, "a", 1)]), tmp_path / "rows" / "more.parquet")
    with start() as running:
        with pytest.raises(ValueError, match="is being finished, and there are new rows"):
            running.wait()
        running.finish()
    assert sink.calls == [0, 1, 1]
    assert sink.rows.column("n").to_pylist() == [1]


def test_two_parts_in_one_task_stay_apart() -> None:
    stage = stages(COUNTS).stages[1]
    schema = pa.schema(stage.inputs[0].schema)
    rows = table_of([(1, "a", 1), (2, "b", 1), (3, "a", 1)]).cast(schema).to_batches()[0]
    batch = pa.record_batch(
        {
            INPUT: pa.array([0, 0, 0], pa.int32()),
            "i0": rows.to_struct_array(),
            PART: pa.array([4, 5, 4], pa.int64()),
            PIECE: pa.nulls(3, pa.int32()),
            STATE: pa.nulls(3, pa.binary()),
        }
    )
    run = PassPart(
        stage.outputs, [(stage.inputs[0].stream, schema)], [()], {}, {}, last=False, on_error="fail"
    )
    states = [made for made in run([batch]) if made.column(STATE).null_count == 0]
    assert [made.column(PART).to_pylist() for made in states] == [[4], [5]]
    nothing = [batch.slice(0, 0).column(name) for name in (INPUT, "i0")]
    again = [
        pa.record_batch(
            [*(pa.nulls(1, column.type) for column in nothing), *made.select([PART, PIECE, STATE]).columns],
            names=[INPUT, "i0", PART, PIECE, STATE],
        )
        for made in states
    ]
    close = PassPart(
        stage.outputs, [(stage.inputs[0].stream, schema)], [()], {}, {}, last=True, on_error="fail"
    )
    found = [row["o0"] for made in close(again) for row in made.to_pylist()]
    assert sorted((row["k"], row["n"]) for row in found) == [("a", 2), ("b", 1)]
