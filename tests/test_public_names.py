"""What `import penstock` shows and loads, and the paths of modules that stay."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps

PACKAGES = {"display", "engine", "expr", "io", "plan", "workloads"}


def in_fresh_interpreter(script: str, folder: Path) -> list[str]:
    """What a script prints as JSON, in a process that has imported nothing else."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_dir_shows_public_names_and_packages_only(tmp_path: Path) -> None:
    shown = in_fresh_interpreter("import json, penstock; print(json.dumps(dir(penstock)))", tmp_path)
    listed = {name for name in shown if not (name.startswith("__") and name.endswith("__"))}
    public = {name for name in ps.__all__ if not name.startswith("__")}
    assert len(public) > 60
    assert listed - public - PACKAGES == {"_penstock", "exceptions"}
    assert public <= listed


def test_packages_show_their_names_and_modules_only() -> None:
    """No name of `typing`, no helper: a package is as tidy as the whole."""
    for package in sorted(PACKAGES):
        module = importlib.import_module(f"penstock.{package}")
        folder = Path(str(module.__file__)).parent
        modules = {path.stem for path in folder.glob("*.py")}
        listed = {name for name in dir(module) if not name.startswith("__")}
        assert listed <= set(module.__all__) | modules


def test_import_loads_nothing_that_can_wait(tmp_path: Path) -> None:
    script = """
import sys, json, penstock
print(json.dumps(sorted(name for name in sys.modules)))
"""
    loaded = set(in_fresh_interpreter(script, tmp_path))
    assert {"penstock.engine.engine", "penstock.workloads.ysb"} <= loaded
    for name in ("argparse", "numpy", "pandas", "polars", "pyarrow", "pyspark", "rich"):
        assert name not in loaded
    waiting = {"cli", "demo", "functions", "options", "rejecting", "rows", "schemas", "spark", "staging"}
    assert {name.split(".")[1] for name in loaded if name.startswith("penstock.")} & waiting == set()
    assert "penstock.display.progress" not in loaded


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("penstock.cli", ["main"]),
        ("penstock.demo", ["main"]),
        ("penstock.engine", ["Engine", "OnExit", "Sink", "Source"]),
        ("penstock.exceptions", ["PenstockError", "PlanError"]),
        ("penstock.expr", ["Expr", "Value", "as_expr", "col", "lit"]),
        ("penstock.functions", ["BatchFunction", "MappedFunction"]),
        ("penstock.options", ["Mode", "Policy", "read_options", "read_spreading"]),
        ("penstock.rejecting", ["OnError", "read_on_error"]),
        ("penstock.rows", ["Rows"]),
        ("penstock.schemas", ["SchemaLike", "read_schema", "schema_of_class"]),
        ("penstock.staging", ["Stage", "StagePart", "key_groups", "run_stage_part", "stages"]),
    ],
)
def test_documented_paths_stay(path: str, names: list[str]) -> None:
    module = importlib.import_module(path)
    assert [name for name in names if name not in module.__all__ or not hasattr(module, name)] == []


def test_a_forwarding_module_is_an_attribute_as_well(tmp_path: Path) -> None:
    script = """
import json, penstock
print(json.dumps([penstock.options.__name__, penstock.schemas.schema_of_class.__module__]))
"""
    assert in_fresh_interpreter(script, tmp_path) == ["penstock.options", "penstock.io.schemas"]


def test_an_attribute_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'penstock' has no attribute 'strem'$"):
        ps.strem  # type: ignore[attr-defined]  # noqa: B018
