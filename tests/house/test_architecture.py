"""The order of the crates is the architecture: these tests keep it visible and true."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

# A crate may use only crates that stand above it.
ORDER = [
    "types",
    "queue",
    "memory",
    "progress",
    "expr",
    "operators",
    "plan",
    "graph",
    "scheduler",
    "tasks",
    "engine",
    "workloads",
    "border",
    "python",
]
# Tighter than the order, as CONTRIBUTING.md says: data knows nothing of scheduling, nor the other way round.
ONLY: dict[str, set[str]] = {"scheduler": {"types", "queue"}, "workloads": set(), "border": set()}
MAY_BE_UNSAFE = {"queue", "memory", "python"}

LONGEST_FILE_LINES = 600
# The upper floor: its parts are to be read at one sitting.
UPPER_FLOOR = ["plan", "graph", "scheduler", "tasks", "engine"]
LONGEST_FILE_THERE, LONGEST_FUNCTION_THERE = 400, 80


def manifest(crate: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())


def internal_dependencies(crate: str) -> set[str]:
    """The crates of this workspace that a crate names, in any of its dependency tables."""

    def tables(table: dict[str, Any]) -> list[dict[str, Any]]:
        kinds = ("dependencies", "dev-dependencies", "build-dependencies")
        found = [table[kind] for kind in kinds if kind in table]
        for target in table.get("target", {}).values():
            found += tables(target)
        return found

    names = {name for table in tables(manifest(crate)) for name in table}
    return {name.removeprefix("penstock-") for name in names if name.startswith("penstock-")}


def test_all_crates_are_there() -> None:
    found = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    assert found == set(ORDER)
    members = set(tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"])
    assert {f"crates/{crate}" for crate in ORDER} <= members


@pytest.mark.parametrize("crate", ORDER)
def test_crate_is_named_by_its_role(crate: str) -> None:
    assert manifest(crate)["package"]["name"] == f"penstock-{crate}"


@pytest.mark.parametrize("crate", ORDER)
def test_crate_uses_only_crates_above_it(crate: str) -> None:
    above = set(ORDER[: ORDER.index(crate)])
    allowed = ONLY.get(crate, above) & above
    used = internal_dependencies(crate)
    assert used <= allowed, f"{crate} must not use {sorted(used - allowed)}"


def documented_dependencies() -> dict[str, set[str]]:
    """The crates that each crate uses, in the order of the table of ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\|([^|\n]*)\|$", text, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for crate, uses in rows:
        everything = uses.strip() == "all of the above"
        found[crate] = set(found) if everything else set(re.findall(r"`(\w+)`", uses))
    return found


def test_the_table_of_crates_is_that_of_the_manifests() -> None:
    documented = documented_dependencies()
    assert list(documented) == ORDER
    assert documented == {crate: internal_dependencies(crate) for crate in ORDER}


def test_contributing_names_the_crates_in_their_order() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert "\n" + "  ".join(ORDER) + "\n" in text
    assert "`scheduler` uses `types` and `queue` only" in text
    assert ONLY["scheduler"] == {"types", "queue"}
    assert "`workloads` uses none of the others" in text
    assert ONLY["workloads"] == set()


def test_the_scan_sees_dependencies() -> None:
    """Guards the test above: it would pass on manifests that it cannot read."""
    assert "engine" in internal_dependencies("python")
    assert "types" in internal_dependencies("engine")


@pytest.mark.parametrize("crate", ORDER)
def test_unsafe_code_is_forbidden_where_it_has_no_place(crate: str) -> None:
    text = (ROOT / "crates" / crate / "src" / "lib.rs").read_text()
    forbids = re.search(r"^#!\[forbid\(unsafe_code\)\]", text, re.MULTILINE) is not None
    assert forbids or crate in MAY_BE_UNSAFE


@pytest.mark.parametrize("crate", ORDER)
def test_crate_inherits_the_lints_and_the_version(crate: str) -> None:
    content = manifest(crate)
    assert content["lints"] == {"workspace": True}
    assert content["package"]["version"] == {"workspace": True}
    assert content["package"]["license"] == {"workspace": True}
    # Otherwise `cargo bench` also builds the unit tests of every crate, with LTO.
    assert content["lib"]["bench"] is False


def test_rust_and_python_agree_on_version_and_licence() -> None:
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert python["version"] == rust["version"]
    assert python["license"] == rust["license"] == "Apache-2.0"
    assert f"## [{python['version']}]" in (ROOT / "CHANGELOG.md").read_text()


def source_files() -> list[Path]:
    folders = ["crates", "benches", "python", "tests", "examples", "scripts"]
    return sorted(
        path
        for folder in folders
        for suffix in ("*.rs", "*.py", "*.pyi", "*.sh")
        for path in (ROOT / folder).rglob(suffix)
        if "target" not in path.relative_to(ROOT).parts
    )


def test_no_file_is_too_long() -> None:
    files = source_files()
    names = {path.relative_to(ROOT).parts[0] for path in files}
    assert names >= {"crates", "python", "tests"}
    assert len(files) > 50
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE_LINES} == {}


def functions(text: str) -> dict[str, int]:
    """The functions of a Rust source, by name, and their lengths in lines."""
    found, lines = {}, text.splitlines()
    for start, line in enumerate(lines):
        if begun := re.match(r"^(\s*)(?:pub(?:\([\w:]+\))? )?(?:const )?fn (\w+)", line):
            ends = (at for at, other in enumerate(lines[start:]) if other == f"{begun[1]}}}")
            found[f"{begun[2]}:{start + 1}"] = 1 if line.endswith(("}", ";")) else next(ends, 0) + 1
    return found


def test_the_lengths_of_functions_are_seen() -> None:
    assert functions("fn a() {\n    b\n}\n\nimpl C {\n    fn d();\n}\n") == {"a:1": 3, "d:6": 1}


@pytest.mark.parametrize("crate", UPPER_FLOOR)
def test_files_and_functions_of_the_upper_floor_are_short(crate: str) -> None:
    texts = {path: path.read_text() for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs"))}
    assert len(texts) > 5
    assert sum(len(functions(text)) for text in texts.values()) > 50
    long_files = [str(path) for path, text in texts.items() if len(text.splitlines()) > LONGEST_FILE_THERE]
    assert long_files == []
    long = [
        f"{path.name} {name}"
        for path, text in texts.items()
        for name, lines in functions(text).items()
        if lines > LONGEST_FUNCTION_THERE
    ]
    assert long == []


def test_files_are_named_by_their_role() -> None:
    files = source_files()
    assert files
    vague = {"utils", "util", "common", "helpers", "helper", "misc"}
    assert [str(path.relative_to(ROOT)) for path in files if vague & {path.stem, path.parent.name}] == []
