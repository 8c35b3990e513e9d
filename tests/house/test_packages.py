"""The packages of `python/penstock` form layers: these tests keep their order and find cycles."""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PENSTOCK = ROOT / "python" / "penstock"

# A package may import only packages that come before it.
ORDER = ["expr", "display", "io", "plan", "engine", "workloads", "spark", "cli"]
# The public modules beside them, and the package that each may use at most.
BELOW_ALL = {"_penstock", "exceptions"}
ABOVE = {"staging": "plan", "demo": "cli"}
FORWARDS = {"functions", "options", "rejecting", "rows", "schemas"}

Uses = dict[str, set[str]]


def imported(tree: ast.Module) -> Iterator[str]:
    """Yields the modules of penstock that a module imports: at its top, in functions, or for types only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "penstock")
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            if node.module == "penstock":
                yield from (f"penstock.{alias.name}" for alias in node.names)
            elif node.module.startswith("penstock."):
                yield node.module


def uses(folder: Path) -> Uses:
    """Returns, for each package and top-level module of a folder, which of the others it imports."""
    found: Uses = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).parts[0].removesuffix(".py")
        others = {
            module.split(".")[1] for module in imported(ast.parse(path.read_text("utf-8"))) if "." in module
        }
        found.setdefault(name, set()).update(others - {name})
    return found


def cycle(graph: Uses) -> list[str]:
    """Returns packages each of which imports the next, and the last the first; empty if there are none."""
    done: set[str] = set()

    def search(name: str, way: list[str]) -> list[str]:
        if name in way:
            return way[way.index(name) :]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            if found := search(other, [*way, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := search(name, []))), [])


def write(folder: Path, modules: dict[str, str]) -> Path:
    for name, text in modules.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def test_the_packages_are_those_of_the_order() -> None:
    packages = {path.parent.name for path in PENSTOCK.glob("*/__init__.py")}
    assert packages == set(ORDER)
    modules = {path.stem for path in PENSTOCK.glob("*.py")} - {"__init__"}
    assert modules == {"exceptions", *ABOVE, *FORWARDS}


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_packages_before_it(package: str) -> None:
    before = {*ORDER[: ORDER.index(package)], *BELOW_ALL}
    before |= {module for module, last in ABOVE.items() if last in before}
    used = uses(PENSTOCK)[package]
    assert used <= before, f"{package} must not import {sorted(used - before)}"


@pytest.mark.parametrize("module", ABOVE)
def test_a_module_beside_the_packages_imports_only_what_is_below_it(module: str) -> None:
    allowed = {*ORDER[: ORDER.index(ABOVE[module]) + 1], *BELOW_ALL}
    assert uses(PENSTOCK)[module] <= allowed


def test_nothing_inside_uses_a_path_that_only_forwards() -> None:
    assert {name for name, used in uses(PENSTOCK).items() if used & FORWARDS} == set()


def test_packages_form_no_cycle() -> None:
    graph = uses(PENSTOCK)
    del graph["__init__"]  # uses all of them, and every import of one of them runs it first
    assert graph["plan"] >= {"expr", "io"}
    assert cycle(graph) == []


@pytest.mark.parametrize(
    "way", ["from penstock.low import a", "from penstock import low", "import penstock.low.a"]
)
def test_a_cycle_is_found_whichever_way_it_is_written(tmp_path: Path, way: str) -> None:
    modules = {
        "low/a.py": "from penstock.middle.b import x",
        "middle/b.py": "import penstock.top",
        "top.py": way,
    }
    assert cycle(uses(write(tmp_path, modules))) == ["low", "middle", "top"]


def test_a_cycle_between_these_packages_is_found(tmp_path: Path) -> None:
    """Guards the test above: one import upwards in a function, and the package does not pass any more."""
    copy = Path(shutil.copytree(PENSTOCK, tmp_path / "penstock"))
    rows = copy / "io" / "rows.py"
    rows.write_text(
        rows.read_text("utf-8") + "\n\ndef late() -> None:\n    import penstock.plan.stream\n", "utf-8"
    )
    graph = uses(copy)
    del graph["__init__"]
    assert cycle(graph) == ["io", "plan"]


def test_a_chain_without_a_cycle_is_none(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "low/a.py": "import os",
            "middle/b.py": "from penstock import low",
            "top.py": "import penstock.middle",
        },
    )
    assert uses(folder) == {"low": set(), "middle": {"low"}, "top": {"middle"}}
    assert cycle(uses(folder)) == []


def test_contributing_names_the_packages_in_their_order() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "\n" + "  ".join(ORDER) + "\n" in text


def test_files_of_the_command_are_short() -> None:
    lengths = {
        path.name: len(path.read_text("utf-8").splitlines()) for path in (PENSTOCK / "cli").glob("*.py")
    }
    assert {"check.py", "generate.py", "validate.py"} <= set(lengths)
    assert max(lengths.values()) <= 200


def test_the_command_is_what_pyproject_says() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'^penstock = "penstock\.cli:main"$', text, re.MULTILINE)
