"""The published files of the workloads: the engine gives the answers of Spark over them, too.

Where the files are not at hand, small ones of the same kind take their place.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.cli import main
from penstock.workloads import catalog
from reference.published import find_published


def event(row: int) -> str:
    return f"{100 + row} {row % 7} 0 32 {3 if row % 4 == 0 else 1} 280 {row % 3} 9 0.{row % 9}5 0.25 0.125 0"


def plug_reading(row: int) -> str:
    return f"{1_377_986_401 + row // 3} {60 + row % 11}.5 1 {row % 3} 2 3"


def equipment_reading(row: int) -> str:
    cells = [2_556_001 + row, 13_056 + row % 5, 14_406 - row % 7, 8_119, *[0] * 51]
    return "\t".join([f"2012-02-22T17:46:{row % 60:02}.9679999+01:00", *map(str, cells)])


def report(row: int) -> str:
    cells = [1 + row // 2, 100 + row % 20, 20 + row % 30, 0, row % 5, row % 2, 53_320 + 100 * row]
    return "\t".join(map(str, cells))


FILES: dict[str, tuple[str, Callable[[int], str]]] = {
    "cm": ("cm/google-cluster-data.txt.gz", event),
    "sg": ("sg/smartgrid-data.txt.gz", plug_reading),
    "me": ("me/DEBS2012-small.txt.gz", equipment_reading),
    "lrb": ("lrb/lrb-data-small-ht.txt.gz", report),
}
SMALL_ROWS = 60


@pytest.mark.parametrize("name", FILES)
def test_the_answers_over_a_published_file(
    spark: SparkSession, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published, line = FILES[name]
    file = find_published(published)
    if file is None:
        file = tmp_path / "small.txt"
        file.write_text("".join(f"{line(row)}\n" for row in range(SMALL_ROWS)), encoding="ascii")
    assert main(["data", "validate", name, "--file", str(file)]) == 0
    printed = capsys.readouterr().out
    for query in catalog.workload(name).queries:
        equal = re.search(rf"^{query}: validated: ([\d,]+) of \1 rows equal$", printed, re.MULTILINE)
        assert equal is not None, printed
        assert equal[1] != "0"
