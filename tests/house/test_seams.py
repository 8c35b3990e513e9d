"""How far the knowledge of one operator, policy, step, mode, source or sink reaches into the project."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = ROOT / "crates"
STEPS = CRATES / "plan" / "src" / "steps"
POLICY = CRATES / "scheduler" / "src" / "policy"
PYTHON = ROOT / "python" / "penstock"

MOST_FILES_PER_OPERATOR = 5
"""Its state machine, its step, its binding, its Python method and its stub."""
MOST_FILES_PER_POLICY = 3
"""Its formula, the list of policies, and the Python type that names them."""
MOST_NAMED_STEPS = 2
"""Steps that any file but those of the steps may tell apart."""


def code(text: str) -> str:
    """Rust source without comments, strings, unit tests, declarations of modules and imports."""
    text = re.sub(r"//[^\n]*", "", text).split("#[cfg(test)]\nmod tests {")[0]
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    return re.sub(r"^\s*(?:pub(?:\(\w+\))? )?(?:mod|use) [^;]*;", "", text, flags=re.MULTILINE)


@cache
def sources() -> dict[Path, str]:
    """The Rust files of all crates but their tests."""
    paths = [
        path for path in sorted(CRATES.glob("*/src/**/*.rs")) if path.stem not in {"tests", "laws", "samples"}
    ]
    return {path: code(path.read_text()) for path in paths}


def steps() -> list[str]:
    """The steps, by the files that are declared in the list of `steps/mod.rs`."""
    declared = re.search(r"\nsteps! \{(.*?)\n\}", (STEPS / "mod.rs").read_text(), re.DOTALL)
    return re.findall(r"^\s*(\w+): ", declared[1], re.MULTILINE) if declared else []


def machine(step: str) -> set[Path]:
    """The files of the state machine of that name."""
    inside = CRATES / "operators" / "src"
    return {
        path for path in sources() if path.is_relative_to(inside) and step in (path.stem, path.parent.name)
    }


def types(paths: set[Path]) -> set[str]:
    """The public types that these files declare."""
    return {
        name for path in paths for name in re.findall(r"pub (?:struct|enum|trait) (\w+)", sources()[path])
    }


def names_any(text: str, names: set[str]) -> bool:
    return any(re.search(rf"\b{name}\b", text) for name in names)


def who_know(step: str) -> list[str]:
    """The files that know of a step: they declare or name its types, or define its method."""
    own, its_machine = STEPS / f"{step}.rs", machine(step)
    names = types({own, *its_machine})
    assert names, f"{own} declares no type"
    found = {
        path for path, text in sources().items() if path not in its_machine and names_any(text, names)
    } | {own}
    found |= {path for path in sources() if "python" in path.parts and f"fn {step}(" in sources()[path]}
    stub = PYTHON / "_penstock.pyi"
    method = re.compile(rf"def {step}\(")
    methods = [path for path in sorted((PYTHON / "plan").glob("*.py")) if method.search(path.read_text())]
    found |= set(methods) | ({stub} if method.search(stub.read_text()) else set())
    return sorted(str(path.relative_to(ROOT)) for path in found) + (
        ["the state machine"] if its_machine else []
    )


def test_the_scan_sees_steps_policies_and_what_knows_of_them() -> None:
    assert {"filter", "join", "top_k", "window"} <= set(steps())
    assert {path.stem for path in STEPS.glob("*.rs")} >= set(steps())
    assert len(machine("top_k")) >= 1
    assert types(machine("top_k")) >= {"TopK", "TopKSpec"}
    assert {"adaptive", "fcfs", "rr"} <= set(policies())
    assert set(who_know("top_k")) >= {
        "crates/plan/src/steps/top_k.rs",
        "crates/python/src/plan.rs",
        "the state machine",
    }
    assert code('use a::Join;\nlet x = "Join"; // Join\nJoin').split() == ["let", "x", "=", '"";', "Join"]


@pytest.mark.parametrize("step", steps())
def test_few_files_know_of_an_operator(step: str) -> None:
    found = who_know(step)
    assert len(found) <= MOST_FILES_PER_OPERATOR, found


def policies() -> list[str]:
    """The policies, by the files that the list of policies names."""
    return re.findall(r"PolicyKind::new\((\w+)::NAME", (POLICY / "mod.rs").read_text())


def code_with_strings(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text).split("#[cfg(test)]\nmod tests {")[0]


@pytest.mark.parametrize("policy", policies())
def test_few_files_know_of_a_policy(policy: str) -> None:
    names = {policy, policy.capitalize()}
    files = {
        path: code_with_strings(path.read_text())
        for path in sources()
        if "scheduler" in path.parts or "engine" in path.parts
    }
    machine_files = {
        path for path in files if path == POLICY / f"{policy}.rs" or (POLICY / policy) in path.parents
    }
    assert machine_files, f"no policy {policy}"
    declared = re.compile(r"^\s*(?:pub(?:\(\w+\))? )?(?:mod|use) [^;]*;", re.MULTILINE)
    found = {
        path
        for path, text in files.items()
        if path not in machine_files and names_any(declared.sub("", text), names)
    }
    literal = re.compile(rf'"{policy}"')
    stripped = {
        path: re.sub(r'"""(?:.|\n)*?"""', "", path.read_text()) for path in sorted(PYTHON.rglob("*.py"))
    }
    found |= {path for path, text in stripped.items() if literal.search(text)}
    assert len(found) + 1 <= MOST_FILES_PER_POLICY, sorted(map(str, found))


def test_no_file_tells_all_steps_apart() -> None:
    """A `match` over all steps, or a chain of downcasts in its place, names many of their types."""
    by_step = {step: types({STEPS / f"{step}.rs"}) for step in steps()}
    outside = {path: text for path, text in sources().items() if not path.is_relative_to(STEPS)}
    assert len(outside) > 100
    known = {
        path: [step for step, names in by_step.items() if names_any(text, names)]
        for path, text in outside.items()
    }
    too_many = {
        str(path.relative_to(ROOT)): named for path, named in known.items() if len(named) > MOST_NAMED_STEPS
    }
    assert too_many == {}


@pytest.mark.parametrize("name", ["Mode"])
def test_one_place_tells_the_modes_apart(name: str) -> None:
    told = [
        str(path.relative_to(ROOT))
        for path, text in sources().items()
        if re.search(rf"\b{name}::(State|Threads)\b", text)
    ]
    assert told
    # Where they are declared and read from options, and where the executor is chosen.
    assert len([path for path in told if path.startswith("crates/engine")]) <= 2, told
