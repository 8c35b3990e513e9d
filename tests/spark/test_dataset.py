"""Data sets: whole or not there, the same however they are cut, and what is damaged is found."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.spark import DataSet, DataSetError, SparkJobError, read_dataset, write_dataset
from penstock.spark.checksum import checksum
from penstock.spark.generate import Recipe
from penstock.spark.staging import staged
from penstock.workloads import catalog
from spark.failing import INSIDE, failing_frame


def straight(workload: str, table: str, rows: int, seed: int, **options: int) -> pa.RecordBatch:
    made = catalog.workload(workload).generator(table)(rows, seed=seed, batch_rows=1 << 20, **options)
    return pa.table(made).combine_chunks().to_batches()[0]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return write_dataset(spark, "ysb", tmp_path_factory.mktemp("data") / "ysb", 2_000, partitions=3)


@pytest.fixture
def copied(written: DataSet, tmp_path: Path) -> DataSet:
    """One that may be damaged."""
    folder = tmp_path / "copy"
    (folder / "events").mkdir(parents=True)
    for file in (written.path / "events").glob("part-*"):
        (folder / "events" / file.name).write_bytes(file.read_bytes())
    (folder / "manifest.json").write_bytes((written.path / "manifest.json").read_bytes())
    return read_dataset(folder)


def files_of(data: DataSet) -> list[Path]:
    return [data.path / "events" / file.name for file in data.manifest.tables["events"].files]


@pytest.mark.parametrize("workload", catalog.CATALOG)
def test_checksums_do_not_depend_on_partitions(spark: SparkSession, tmp_path: Path, workload: str) -> None:
    found = []
    for partitions in (1, 3, 16):
        data = write_dataset(spark, workload, tmp_path / f"p{partitions}", 3_000, 5, partitions)
        found.append({name: table.checksum for name, table in data.manifest.tables.items()})
        for name, table in data.manifest.tables.items():
            assert sum(file.rows for file in table.files) == table.rows
            assert pa.Table.from_batches(data.batches(name)).equals(
                pa.Table.from_batches([straight(workload, name, table.rows, 5)])
            )
        data.verify()
    assert found[0] == found[1] == found[2]
    for name, total in found[0].items():
        rows = catalog.workload(workload).rows_of(name, 3_000)
        assert total == checksum(straight(workload, name, rows, 5), 0)


def test_the_manifest_says_what_it_was_made_from(written: DataSet) -> None:
    found = read_dataset(written.path)
    assert found.manifest == written.manifest
    assert (found.manifest.workload, found.manifest.rows, found.manifest.seed) == ("ysb", 2_000, 7)
    assert found.manifest.options["rate"] == 1_000_000
    table = found.manifest.tables["events"]
    assert table.schema["event_time"] == "timestamp[ms]"
    assert len(table.files) == 3
    assert table.bytes == sum(file.stat().st_size for file in files_of(found))
    plain = json.loads((written.path / "manifest.json").read_text())
    assert plain["version"] == 1
    assert int(plain["tables"]["events"]["checksum"], 16) == table.checksum


def test_spark_and_the_engine_read_the_same_rows(spark: SparkSession, written: DataSet) -> None:
    frames = written.frames(spark)
    assert dict(frames["events"].dtypes)["event_time"] == "timestamp_ntz"
    assert frames["events"].count() == 2_000
    batches = written.batches("events", batch_rows=100)
    assert {batch.schema.field("event_time").type for batch in batches} == {pa.timestamp("ms")}
    plan = catalog.workload("ysb").query("ysb").build(7, None)
    assert plan.run(batches).rows_in == plan.run(batches).rows_in == 2_000
    with pytest.raises(ValueError, match="no table 'evens'"):
        written.batches("evens")


def test_progress_is_told_and_ends_with_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    write_dataset(
        spark, "ipq", tmp_path / "ipq", 1_001, progress=lambda done, total: told.append((done, total))
    )
    assert told == sorted(told)
    assert told[-1] == (1_001, 1_001)


def test_no_rows_are_a_data_set_too(spark: SparkSession, tmp_path: Path) -> None:
    data = write_dataset(spark, "nyt", tmp_path / "none", rows=0, partitions=2)
    data.verify()
    assert data.manifest.checksum == 0
    assert sum(batch.num_rows for batch in data.batches("trips")) == 0


def test_mistakes_are_found_before_any_job(spark: SparkSession, tmp_path: Path, written: DataSet) -> None:
    with pytest.raises(FileExistsError, match="exists already"):
        write_dataset(spark, "ysb", written.path, 10)
    with pytest.raises(ValueError, match="did you mean 'ysb'"):
        write_dataset(spark, "yxb", tmp_path / "x", 10)
    with pytest.raises(TypeError, match="did you mean 'rate'"):
        write_dataset(spark, "ysb", tmp_path / "x", 10, rat=3)
    with pytest.raises(ValueError, match="rows must be at least 0"):
        write_dataset(spark, "ysb", tmp_path / "x", -1)
    with pytest.raises(ValueError, match="partitions must be at least 1"):
        write_dataset(spark, "ysb", tmp_path / "x", 10, partitions=0)
    with pytest.raises(ValueError, match="no end"):
        write_dataset(spark, "ysb", tmp_path / "x", None)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_an_executor_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(recipe: Recipe, spark: SparkSession, counts: object = None) -> DataFrame:
        return failing_frame(spark)

    monkeypatch.setattr(Recipe, "frame", broken)
    with pytest.raises(SparkJobError) as raised:
        write_dataset(spark, "ysb", tmp_path / "ysb", 10)
    assert str(raised.value) == f"ValueError: {INSIDE}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_run_leaves_nothing(
    spark: SparkSession, tmp_path: Path, interruption: type[BaseException]
) -> None:
    def interrupt(done: int, total: int) -> None:
        hidden = list(tmp_path.iterdir())
        assert [folder.name.startswith(".ysb.") for folder in hidden] == [True]
        raise interruption

    with pytest.raises(interruption):
        write_dataset(spark, "ysb", tmp_path / "ysb", 50_000_000, partitions=64, progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    # And Spark is free again.
    assert spark.range(5).count() == 5


KILLED = """
import os, signal, sys
from pathlib import Path
from penstock.spark.staging import staged
with staged(sys.argv[1]) as folder:
    (folder / "manifest.json").write_text("{}")
    print(folder, flush=True)
    if sys.argv[2] == "wait":
        sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="leftovers are not told apart there")
def test_what_a_killed_run_leaves_is_removed_at_the_next_attempt(spark: SparkSession, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "ysb")]
    with subprocess.Popen(
        [*command, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        in_use = Path(running.stdout.readline().strip())
        killed = subprocess.run([*command, "now"], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
        assert killed.returncode == -signal.SIGKILL
        left = Path(killed.stdout.strip())
        assert left.is_dir()
        with pytest.raises(FileNotFoundError, match="no data set"):
            read_dataset(tmp_path / "ysb")
        (tmp_path / ".ysb2.0.partial").mkdir()

        write_dataset(spark, "ysb", tmp_path / "ysb", 10).verify()
        assert not left.exists()
        # Somebody is still writing this one, and that one is for another place.
        assert in_use.is_dir()
        assert (tmp_path / ".ysb2.0.partial").is_dir()
        running.communicate()
    with staged(tmp_path / "other"):
        pass
    with pytest.raises(FileExistsError):
        write_dataset(spark, "ysb", tmp_path / "ysb", 10)


def test_the_second_of_two_that_write_to_one_place_loses(tmp_path: Path) -> None:
    def write_twice() -> None:
        with staged(tmp_path / "data") as slow:
            (slow / "a").touch()
            with staged(tmp_path / "data") as fast:
                (fast / "b").touch()

    with pytest.raises(FileExistsError, match="exists already"):
        write_twice()
    assert [file.name for file in tmp_path.rglob("*")] == ["data", "b"]


def test_a_sound_copy_is_verified(copied: DataSet) -> None:
    copied.verify()


def test_a_missing_file_is_found(copied: DataSet) -> None:
    files_of(copied)[1].unlink()
    with pytest.raises(DataSetError, match="part-00001-.* is missing"):
        copied.verify()


@pytest.mark.parametrize("name", ["part-00009-more.parquet", "copy.parquet"])
def test_one_file_too_many_is_found(spark: SparkSession, copied: DataSet, name: str) -> None:
    first = files_of(copied)[0]
    (first.parent / name).write_bytes(first.read_bytes())
    with pytest.raises(DataSetError, match=f"{name} is not in the manifest"):
        copied.verify()
    # Whoever does not ask gets the rows of the manifest nevertheless.
    assert copied.frames(spark)["events"].count() == copied.manifest.rows


def test_folders_may_be_called_anything(spark: SparkSession, tmp_path: Path) -> None:
    data = write_dataset(spark, "ysb", tmp_path / "a[1] {b,c} *?", rows=100, partitions=2)
    data.verify()
    assert data.frames(spark)["events"].count() == 100


def rewrite(data: DataSet, number: int, table: pa.Table) -> None:
    """Another content for a file, and a manifest that has its size: only the rows can tell."""
    path = files_of(data)[number]
    pq.write_table(table, path)
    manifest = json.loads((data.path / "manifest.json").read_text())
    manifest["tables"]["events"]["files"][number]["bytes"] = path.stat().st_size
    (data.path / "manifest.json").write_text(json.dumps(manifest))


def test_a_missing_row_is_found(copied: DataSet) -> None:
    rewrite(copied, 2, pq.read_table(files_of(copied)[2]).slice(1))
    with pytest.raises(DataSetError, match="has 666 rows, and should have 667"):
        read_dataset(copied.path).verify()


def test_a_changed_value_and_a_swap_are_found(copied: DataSet) -> None:
    rows = pq.read_table(files_of(copied)[0])
    changed = rows.set_column(1, "user_id", pa.array([1, *rows.column("user_id").to_pylist()[1:]]))
    swapped = pa.concat_tables([rows.slice(1, 1), rows.slice(0, 1), rows.slice(2)])
    for other in (changed, swapped):
        rewrite(copied, 0, other)
        with pytest.raises(DataSetError, match="the checksum is .*, and should be"):
            read_dataset(copied.path).verify()
    rewrite(copied, 0, rows)
    read_dataset(copied.path).verify()


def test_a_damaged_file_is_found(copied: DataSet) -> None:
    path = files_of(copied)[0]
    whole = path.read_bytes()
    for place in (10, len(whole) // 2, len(whole) - 6):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(DataSetError, match="events: "):
            copied.verify()
    path.write_bytes(whole[:-1])
    with pytest.raises(DataSetError, match="bytes, and should have"):
        copied.verify()


def test_a_manifest_that_cannot_be_read(tmp_path: Path, copied: DataSet) -> None:
    with pytest.raises(FileNotFoundError, match="is no data set"):
        read_dataset(tmp_path / "nowhere")
    manifest = copied.path / "manifest.json"
    whole = json.loads(manifest.read_text())
    for text in ("", "[]", "{", json.dumps({**whole, "tables": 3}), json.dumps({"version": 1})):
        manifest.write_text(text)
        with pytest.raises(DataSetError, match="cannot be read"):
            read_dataset(copied.path)
    manifest.write_text(json.dumps({**whole, "version": 2}))
    with pytest.raises(DataSetError, match="version 2"):
        read_dataset(copied.path)
    whole["tables"]["events"]["schema"]["ip"] = "string"
    manifest.write_text(json.dumps(whole))
    with pytest.raises(DataSetError, match="has the columns"):
        read_dataset(copied.path).verify()
    assert os.listdir(tmp_path) == ["copy"]  # noqa: PTH208
