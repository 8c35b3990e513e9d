"""Modules of one crate form no cycles, and nothing below `engine` reads a clock."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml"))

# Where time may be read: the crates that host threads.
READS_CLOCKS = {"engine", "python"}


def code(path: Path) -> str:
    """The source of a file without comments and without its unit tests."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    return text.split("#[cfg(test)]\nmod tests {")[0]


def is_test(path: Path) -> bool:
    return path.stem in {"tests", "laws"} or "tests" in path.parts


def imported(text: str) -> set[str]:
    """The top-level modules of its own crate that a source text names."""
    found = set(re.findall(r"\bcrate::(\w+)", text))
    for group in re.findall(r"\bcrate::\{((?:[^{}]|\{[^{}]*\})*)\}", text):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", group)))
    return found


def uses(source: Path) -> dict[str, set[str]]:
    """Which top-level modules of a crate each of them uses."""
    modules = {path.name.removesuffix(".rs") for path in source.iterdir()} - {"lib", "main"}
    found: dict[str, set[str]] = {module: set() for module in modules}
    for path in sorted(source.rglob("*.rs")):
        relative = path.relative_to(source)
        module = relative.parts[0].removesuffix(".rs")
        if module in modules and not is_test(relative):
            found[module] |= (imported(code(path)) & modules) - {module}
    return found


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules on one cycle, in order; empty if there is none."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for used in sorted(graph[module]):
            if found := visit(used, [*path, module]):
                return found
        done.add(module)
        return []

    return next((found for module in sorted(graph) if (found := visit(module, []))), [])


def clock_reads(paths: Iterable[Path]) -> list[str]:
    read = re.compile(r"\b(Instant::now|SystemTime::now|UNIX_EPOCH)\b|\.elapsed\(\)")
    return [str(path.relative_to(ROOT)) for path in paths if read.search(code(path))]


def test_the_scan_sees_modules_and_cycles() -> None:
    assert {path.name for path in CRATES} >= {"types", "engine", "python"}
    assert uses(ROOT / "crates" / "scheduler" / "src")["policy"] >= {"views"}
    assert imported("use crate::{a::{B, C}, d};\ncrate::e::f();") == {"a", "d", "e"}
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_modules_of_a_crate_form_no_cycle(crate: Path) -> None:
    assert cycle(uses(crate / "src")) == []


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_only_the_upper_crates_read_a_clock(crate: Path) -> None:
    sources = [path for path in crate.rglob("src/**/*.rs") if not is_test(path.relative_to(crate / "src"))]
    assert sources
    found = clock_reads(sources)
    assert bool(found) == (crate.name in READS_CLOCKS), found
