"""The laws of watermarks are checked in all tests, by the engine that is shipped."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

import penstock as ps
from penstock import _penstock

SCRIPT = "from penstock import _penstock; print(_penstock.checks_laws)"


def says(**environment: str) -> str:
    """Whether laws are checked, by a process of its own."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=bare | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_laws_are_checked_here() -> None:
    assert _penstock.checks_laws is True


def test_laws_are_checked_in_processes_that_tests_start() -> None:
    assert says(**os.environ) == "True"


@pytest.mark.parametrize("value", ["1", "on", " on "])
def test_laws_are_checked_where_somebody_asks(value: str) -> None:
    assert says(PENSTOCK_CHECKS=value) == "True"


@pytest.mark.parametrize(
    "environment", [{}, *({"PENSTOCK_CHECKS": value} for value in ("", "0", "off"))], ids=str
)
def test_laws_cost_nothing_where_nobody_asks(environment: dict[str, str]) -> None:
    assert says(**environment) == "False"


def test_a_variable_that_says_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CHECKS", "maybe")
    with pytest.raises(ps.PlanError, match='PENSTOCK_CHECKS is "on" or "off", not "maybe"'):
        ps.stream({"t": "int64"}).run(pa.table({"t": [1]}))
    for value in ("", "0", "1", "off", "on"):
        monkeypatch.setenv("PENSTOCK_CHECKS", value)
        assert ps.stream({"t": "int64"}).run(pa.table({"t": [1]})).rows_out == 1
