"""The command `penstock data check`: all workloads the whole way, and an exit code that tells the truth."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.cli import main
from penstock.spark import DataSet, commands, read_dataset, write_dataset
from penstock.workloads import catalog
from reference.sizes import SOAK
from spark.spoiling import off_by_one, with_a_row_twice, without_a_row

# That each of them is caught for every workload is a test of test_expected_answers.
Spoil = Callable[[pa.Table], pa.Table]
SPOILS: tuple[Spoil, ...] = (off_by_one, without_a_row, with_a_row_twice)


def lines(printed: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """The table at the end, by workload, seed and query."""
    kept = printed.splitlines()
    head = next(number for number, line in enumerate(kept) if line.startswith("workload"))
    names = kept[head].replace("rows in", "rows_in").replace("result rows", "result_rows").split()
    rows = [dict(zip(names, line.split(), strict=True)) for line in kept[head + 2 : -1]]
    return {(row["workload"], row["seed"], row["query"]): row for row in rows}


class Spoilt:
    """A plan whose answer comes out wrong."""

    def __init__(self, plan: ps.Stream, spoil: Spoil) -> None:
        self.plan = plan
        self.spoil = spoil

    def run(self, data: Any) -> pa.Table:
        right = pa.table(self.plan.run(data))
        assert len(right) > 0
        return self.spoil(right)


def spoilt(query: catalog.Query, spoil: Spoil) -> catalog.Query:
    build: Any = lambda seed, delay: Spoilt(query.build(seed, delay), spoil)  # noqa: E731
    return replace(query, build=build)


def test_all_workloads(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    # What `make spark` does, with fewer rows: all workloads. At full size with both of its seeds.
    seeds = ("7", "11") if SOAK else ("11",)
    assert main(["data", "check", "--rows", "5k", *(() if SOAK else ("--seeds", "11"))]) == 0
    printed = capsys.readouterr()
    found = lines(printed.out)
    asked = [
        (name, seed, query)
        for name, each in catalog.CATALOG.items()
        for seed in seeds
        for query in each.queries
    ]
    assert list(found) == asked
    for (name, seed, query), row in found.items():
        tables = catalog.workload(name).query(query).tables
        rows_in = sum(catalog.workload(name).rows_of(table, 5_000) for table in tables)
        assert row["rows_in"] == str(rows_in)
        assert int(row["result_rows"]) > 0
        assert row["equal"] == row["result_rows"]
        assert (row["missing"], row["extra"], row["different"]) == ("0", "0", "0")
        assert f"{name}, seed {seed}, {query}, {row['seconds']} s: validated" in printed.out
    sets, answers = 9 * len(seeds), 24 * len(seeds)
    assert f"data sets: {sets}, damaged: 0; answers: {answers}, wrong: 0;" in printed.out
    assert "sg, seed 11: 5,000 of 5,000 rows" in printed.err


@pytest.mark.parametrize("spoil", SPOILS)
def test_one_wrong_answer_is_enough(
    spark: SparkSession, spoil: Spoil, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = catalog.workload("ipq")
    queries: Mapping[str, catalog.Query] = {
        "ipq1": right.query("ipq1"),
        "ipq3": spoilt(right.query("ipq3"), spoil),
    }
    monkeypatch.setattr(catalog, "CATALOG", {"ipq": replace(right, queries=queries)})
    assert main(["data", "check", "ipq", "--rows", "1k", "--seeds", "7"]) == 1
    printed = capsys.readouterr().out
    assert "ipq1" in printed
    assert "answers: 2, wrong: 1;" in printed


def test_a_damaged_data_set_is_a_difference(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def damage(*given: Any, **options: Any) -> DataSet:
        data = write_dataset(*given, **options)
        next((data.path / "readings").glob("part-00001*")).unlink()
        return data

    monkeypatch.setattr(commands, "write_dataset", damage)
    assert main(["data", "check", "me", "--rows", "1k", "--seeds", "7"]) == 1
    printed = capsys.readouterr().out
    assert "DAMAGED: readings: part-00001-" in printed
    assert "data sets: 1, damaged: 1; answers: 0, wrong: 0;" in printed


def test_data_sets_are_kept_where_it_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "data",
        "check",
        "me",
        "--rows",
        "500",
        "--seeds",
        "3",
        "4",
        "3",
        "--out",
        str(tmp_path / "kept"),
    ]
    assert main(command) == 0
    assert [seed for _, seed, _ in lines(capsys.readouterr().out)] == ["3", "4"]
    kept = {path.name: read_dataset(path) for path in (tmp_path / "kept").iterdir()}
    assert sorted(kept) == ["me-3", "me-4"]
    assert [kept[name].manifest.seed for name in ("me-3", "me-4")] == [3, 4]
    assert main(command) == 2
    assert "me-3 exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["yxb"], "did you mean 'ysb'"),
        (["me", "lrb", "--rows", "1G"], "rows"),
        (["me", "--rows", "10", "--cores", "0"], "cores must be at least 1"),
    ],
)
def test_wrong_usage_is_explained(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "check", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_the_engine_in_the_executors(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*given: Any, **options: Any) -> None:
        raise AssertionError("the engine ran here")

    monkeypatch.setattr(ps.Stream, "run", refuse)
    # Those that no other test runs in there.
    names = ["ysb-strings", "cm", "sg", "me"]
    assert main(["data", "check", *names, "--rows", "1k", "--seeds", "7", "--engine", "executors"]) == 0
    found = lines(capsys.readouterr().out)
    assert len(found) == sum(len(catalog.workload(name).queries) for name in names)
    assert all(row["equal"] == row["result_rows"] for row in found.values())
    assert sum(int(row["equal"]) > 0 for row in found.values()) >= len(found) - 2
