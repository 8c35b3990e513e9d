"""The demo: its report, and an exit code that tells the truth."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.demo import main

# Twelve and a half seconds of events: two windows of 100 campaigns.
SMALL = ["--rows", "250_000", "--seed", "5"]


def off_by_one(table: pa.Table) -> pa.Table:
    index = table.schema.get_field_index("views")
    bump = pa.array([1] + [0] * (table.num_rows - 1), pa.int64())
    return table.set_column(index, "views", pc.add(table.column("views"), bump))


def test_a_right_answer_is_validated(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    printed = capsys.readouterr().out
    assert printed.endswith("validated: 200 of 200 rows equal\n")
    for words in [
        "start Spark",
        "generate with Spark",
        "read Parquet",
        "run the engine",
        "Spark's own answer",
        "compare",
        "rows/s",
    ]:
        assert words in printed
    for line in [["rows", "in", "250,000"], ["late", "0"], ["rows", "out", "200"]]:
        assert line in [row.split() for row in printed.splitlines()]


def test_disorder_and_partitioning_change_nothing_about_that(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, "--partitions", "5", "--out-of-order-ms", "3000"]) == 0
    assert "validated: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "tamper",
    [off_by_one, lambda table: table.slice(1), lambda table: pa.concat_tables([table, table.slice(0, 1)])],
    ids=["off by one", "missing row", "row twice"],
)
def test_a_wrong_answer_fails(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tamper: object
) -> None:
    assert main(SMALL, tamper=tamper) == 1  # type: ignore[arg-type]
    printed = capsys.readouterr().out
    assert "NOT EQUAL" in printed
    assert "validated" not in printed


def test_the_rows_can_be_kept(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept rows"
    assert main([*SMALL, "--keep", str(kept)]) == 0
    assert pq.read_table(kept).num_rows == 250_000
    assert main([*SMALL, "--keep", str(kept)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_bad_options_are_explained(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rows", "10", "--rate", "0"]) == 2
    assert "rate" in capsys.readouterr().err
    assert main(["--rows", "10", "--partitions", "0"]) == 2
    assert "partitions" in capsys.readouterr().err


def test_it_is_a_command() -> None:
    command = [sys.executable, "-m", "penstock.demo"]
    asked = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert "--rows" in asked.stdout
    wrong = subprocess.run(
        [*command, "--rows", "many"], capture_output=True, text=True, timeout=60, check=False
    )
    assert wrong.returncode == 2
