"""Runs every example as a user would, as a script. The examples check their own results."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert {"clickstream_strings", "sensor_windows", "ysb"} <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_says_what_it_is_and_checks_its_result(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert f"examples/{path.name}" in (ast.get_docstring(tree) or "")
    assert any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))
