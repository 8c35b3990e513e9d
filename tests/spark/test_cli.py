"""The command `penstock data`: what it prints, and an exit code that tells the truth."""

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.cli import main
from penstock.cli.arguments import read_count
from penstock.plan.stream import Stream
from penstock.spark import read_dataset
from penstock.workloads import catalog, cm, ysb
from spark.spoiling import off_by_one


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With rows that are later than the query usually waits for."""
    folder = tmp_path_factory.mktemp("data") / "ysb"
    options = ["--option", "rate=100", "--option", "out_of_order_ms=3000", "--option", "late_every=50"]
    assert (
        main(["data", "generate", "ysb", "--rows", "2.5k", "--seed", "11", "--out", str(folder), *options])
        == 0
    )
    return folder


def answer(data: Path) -> pa.Table:
    made = read_dataset(data)
    plan = catalog.workload("ysb").query("ysb").build(11, "70s")
    return plan.run(made.batches("events")).to_arrow()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1_000", 1_000),
        ("2.5k", 2_500),
        ("100M", 10**8),
        ("1G", 10**9),
        ("1b", 10**9),
        ("0.001k", 1),
    ],
)
def test_counts(text: str, count: int) -> None:
    assert read_count(text) == count


@pytest.mark.parametrize("text", ["", "ten", "-5", "1.5", "1e6", "5 M", "0.0001k", "1x"])
def test_what_is_no_count(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="is no number of rows"):
        read_count(text)
    with pytest.raises(SystemExit) as ended:
        main(["data", "generate", "ysb", f"--rows={text}", "--out", "x"])
    assert ended.value.code == 2
    assert "is no number of rows" in capsys.readouterr().err


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    printed = capsys.readouterr().out
    for name, workload in catalog.CATALOG.items():
        line = next(line for line in printed.splitlines() if line.split()[0] == name)
        assert all(word in line for word in [*workload.tables, *workload.queries])
    assert main(["data", "list", "ysb"]) == 0
    assert "out_of_order_ms  0" in capsys.readouterr().out


def test_generate_says_what_it_made(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "data",
        "generate",
        "nexmark",
        "--rows",
        "1k",
        "--partitions",
        "2",
        "--out",
        str(tmp_path / "n"),
    ]
    assert main(command) == 0
    printed = capsys.readouterr()
    made = read_dataset(tmp_path / "n").manifest
    assert re.fullmatch(
        rf"nexmark: 1,000 rows in \d+\.\d s, {made.bytes:,} bytes, checksum {made.checksum:016x}, in .*/n\n",
        printed.out,
    )
    assert re.search(r"nexmark: 1,000 of 1,000 rows, [\d,]+ rows/s\n$", printed.err)
    assert main(command) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "yxb", "--rows", "5", "--out", "x"], "did you mean 'ysb'"),
        (["generate", "ysb", "--out", "x"], "ysb has no end: rows must say how many"),
        (
            ["generate", "ysb", "--rows", "5", "--out", "x", "--partitions", "0"],
            "partitions must be at least 1",
        ),
        (["generate", "ysb", "--rows", "5", "--out", "x", "--option", "rat=1"], "did you mean 'rate'"),
        (["generate", "ysb", "--rows", "5", "--out", "x", "--option", "rate=no"], "must be a whole number"),
        (["generate", "ysb", "--rows", "5", "--out", "x", "--option", "rate=0"], "rate must be"),
        (["generate", "ysb", "--rows", "5", "--out", "x", *["--option", "rate=1"] * 2], "given twice"),
        (["validate", "ysb", "--data", "nowhere"], "nowhere is no data set"),
        (["validate", "ysb", "--data", "x", "--query", "q1"], "ysb has no query 'q1'"),
        (["validate", "ysb", "--data", "x", "--result", "nofile"], "nofile"),
        (["validate", "cm", "--data", "x", "--result", "y"], "--result needs --query"),
        (
            ["validate", "ysb", "--data", "x", "--result", "y", "--engine", "executors"],
            "--result is an answer already: --engine executors has nothing to run",
        ),
        (["validate", "ysb", "--file", "x"], "no published files of ysb, only of cm, sg, me, lrb"),
        (["validate", "cm", "--file", "nofile"], "nofile"),
    ],
)
def test_wrong_usage_is_explained(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["data", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [[], ["data"], ["data", "validate", "ysb"], ["data", "generate", "ysb", "--option", "rate"]]
)
def test_half_commands_are_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_late_rows_are_waited_for(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "validate", "ysb", "--data", str(data)]) == 0
    printed = capsys.readouterr().out
    assert "data: 2,500 rows, checksum" in printed
    assert re.search(r"^ysb: validated: ([\d,]+) of \1 rows equal$", printed, re.MULTILINE)
    assert main(["data", "validate", "sg", "--data", str(data)]) == 2
    assert "is a data set of ysb, not of sg" in capsys.readouterr().err


def test_the_engine_in_the_executors(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*given: object, **options: object) -> None:
        raise AssertionError("the engine ran here")

    rows = answer(data).num_rows
    monkeypatch.setattr(Stream, "run", refuse)
    assert main(["data", "validate", "ysb", "--data", str(data), "--engine", "executors"]) == 0
    assert f"ysb: validated: {rows:,} of {rows:,} rows equal" in capsys.readouterr().out


def test_a_result_in_a_file(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = answer(data)
    pq.write_table(right, tmp_path / "right.parquet")
    with pa.ipc.new_file(tmp_path / "right.arrow", right.schema) as writer:
        writer.write_table(right)
    pq.write_table(right.slice(1), tmp_path / "wrong.parquet")
    with pa.ipc.new_stream(tmp_path / "wrong.arrows", right.schema) as stream:
        stream.write_table(pa.concat_tables([right, right.slice(0, 2)]))
    pq.write_table(off_by_one(right), tmp_path / "off.parquet")
    pq.write_table(right.drop_columns("views"), tmp_path / "narrow.parquet")
    (tmp_path / "text").write_text("no table at all")

    def validate(name: str) -> int:
        return main(["data", "validate", "ysb", "--data", str(data), "--result", str(tmp_path / name)])

    assert validate("right.parquet") == 0
    assert validate("right.arrow") == 0
    capsys.readouterr()
    assert validate("wrong.parquet") == 1
    printed = capsys.readouterr().out
    assert "NOT EQUAL" in printed
    assert ["ysb", str(right.num_rows), str(right.num_rows - 1), "1", "0", "0"] in [
        line.split() for line in printed.splitlines()
    ]
    assert validate("wrong.arrows") == 1
    assert "extra: 2" in capsys.readouterr().out
    assert validate("off.parquet") == 1
    assert "different: 1" in capsys.readouterr().out
    assert validate("narrow.parquet") == 1
    assert "NOT EQUAL: the columns differ: expected" in capsys.readouterr().out
    assert validate("text") == 2
    assert "neither Parquet nor Arrow IPC" in capsys.readouterr().err


def test_a_damaged_data_set_is_a_difference(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sg"
    assert main(["data", "generate", "sg", "--rows", "100", "--partitions", "2", "--out", str(folder)]) == 0
    next((folder / "readings").glob("part-00001*")).unlink()
    assert main(["data", "validate", "sg", "--data", str(folder)]) == 1
    assert re.search(r"DAMAGED: readings: part-00001-.* is missing", capsys.readouterr().out)


def test_a_published_file(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "events.txt"
    # The second row is later than the query usually waits for.
    times = [100, 90, 101, 102, 260]
    file.write_text("".join(f"{at} 5 0 32 3 280 {at % 2} 9 0.5 0.25 0.125 0\n" for at in times))
    assert cm.read(file).num_rows == 5
    assert main(["data", "validate", "cm", "--file", str(file), "--query", "cm1"]) == 0
    printed = capsys.readouterr().out
    assert "data: 5 rows of" in printed
    assert "cm1: validated" in printed
    file.write_text("one two three\n")
    assert main(["data", "validate", "cm", "--file", str(file)]) == 2
    assert "line 1" in capsys.readouterr().err


def test_it_is_a_command() -> None:
    command = [sys.executable, "-m", "penstock.cli"]
    asked = subprocess.run(
        [*command, "data", "generate", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "--partitions" in asked.stdout
    wrong = subprocess.run([*command, "data"], capture_output=True, text=True, timeout=60, check=False)
    assert wrong.returncode == 2


def test_rows_are_those_of_the_seed(data: Path) -> None:
    made = pa.Table.from_batches(read_dataset(data).batches("events"))
    straight = pa.table(ysb.generate(2_500, seed=11, rate=100, out_of_order_ms=3_000, late_every=50))
    assert made.equals(straight)
