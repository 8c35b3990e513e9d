"""Prints the ten slowest tests of all suites, from the reports that they left in a folder.

Reports are the XML of pytest (`--junitxml`), and what cargo prints with `--report-time` (`*.log`).
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

__all__ = ["main", "timings"]

SHOWN = 10
RUST_LINE = re.compile(r"^test (\S+) \.\.\. ok <([0-9.]+)s>$", re.MULTILINE)


def timings(folder: Path) -> Iterator[tuple[float, str, str]]:
    """Yield the seconds, the suite and the name of every test."""
    for report in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            yield float(case.get("time", "0")), report.stem, name
    for log in sorted(folder.glob("*.log")):
        for name, seconds in RUST_LINE.findall(log.read_text(encoding="utf-8", errors="replace")):
            yield float(seconds), log.stem, name


def main() -> None:
    """Read the folder and print the table."""
    slowest = sorted(timings(Path(sys.argv[1])), reverse=True)[:SHOWN]
    print(f"\nThe {SHOWN} slowest tests, in seconds:" if slowest else "\nNo test has left its time.")
    for seconds, suite, name in slowest:
        print(f"  {seconds:7.1f}  {suite}: {name}")


if __name__ == "__main__":
    main()
