"""Whatever there is has the files of its recipe in CONTRIBUTING.md: operators, policies, workloads, ends."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()

# Code that is made of an operator, as a pipeline of a user is: it belongs to no recipe.
COMPOSED = {
    # `Stream.split` is one filter for each output.
    "filter": {"python/penstock/plan/combining.py"},
    # A stage that reads rows as they are selects their columns.
    "select": {"crates/plan/src/stages/carried.rs"},
}
# Every source is opened by the declaration of a stream: many modules read it.
DECLARATION = "stream"


@dataclass(frozen=True)
class Ingredient:
    """A line of a recipe."""

    path: str
    of: frozenset[str] | None
    but: frozenset[str]
    role: str

    def is_for(self, name: str) -> bool:
        return name not in self.but and (self.of is None or name in self.of)

    def file(self, name: str) -> str:
        return self.path.replace("<name>", name)

    @property
    def is_list(self) -> bool:
        """Whether it is a list, in which one line is added."""
        return self.role.startswith("list")

    @property
    def is_shared(self) -> bool:
        """Whether several have it together, under another name."""
        return self.role.startswith("shared")


def recipe(title: str, text: str = TEXT) -> list[Ingredient]:
    """The lines of the table below a heading: a file, what needs it, what it says."""
    sections = re.split(r"^### ", text, flags=re.MULTILINE)
    section = [body for body in sections if body.startswith(f"{title}\n")]
    if len(section) != 1:
        raise ValueError(f"{len(section)} recipes for {title!r}")
    found = []
    for line in re.split(r"^## ", section[0], flags=re.MULTILINE)[0].splitlines():
        if not line.startswith("| `"):
            continue
        path, of, role = (cell.strip() for cell in line.strip("|").split("|"))
        names = frozenset(re.findall(r"`(\w+)`", of))
        if not re.fullmatch(r"all|all but `\w+`(, `\w+`)*|`\w+`(, `\w+`)*", of):
            raise ValueError(f"{title}: for whom is {path}? {of!r}")
        every = of.startswith("all")
        found.append(
            Ingredient(path.strip("`"), None if every else names, names if every else frozenset(), role)
        )
    if not found:
        raise ValueError(f"the recipe for {title!r} names no file")
    return found


def files(ingredients: Iterable[Ingredient], name: str, *, lists: bool = True) -> set[str]:
    return {item.file(name) for item in ingredients if item.is_for(name) and (lists or not item.is_list)}


def steps() -> list[str]:
    """The steps by the names of their files: those that implement the trait."""
    found = sorted((ROOT / "crates/plan/src/steps").glob("*.rs"))
    return [path.stem for path in found if path.stem != "samples" and "impl Step for" in path.read_text()]


def policies() -> list[str]:
    folder = ROOT / "crates/scheduler/src/policy"
    sources = {path.stem: path for path in folder.glob("*.rs")}
    sources |= {path.parent.name: path for path in folder.glob("*/mod.rs")}
    return sorted(
        name for name, path in sources.items() if re.search(r"^impl Policy for", path.read_text(), re.M)
    )


def workloads() -> list[str]:
    return sorted(path.parent.name for path in (ROOT / "crates/workloads/src").glob("*/mod.rs"))


def ends(folder: str) -> list[str]:
    """The readers or writers, each a file or a folder."""
    found = (ROOT / "crates/tasks/src" / folder).iterdir()
    return sorted(path.stem for path in found if path.name != "mod.rs")


def rust_code(path: Path) -> str:
    """A Rust file without comments and without its unit tests."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    return re.split(r"#\[cfg\(test\)\]\s*(?:pub(?:\(crate\))? )?mod tests \{", text)[0]


@cache
def rust_sources() -> dict[str, str]:
    paths = [path for path in ROOT.glob("crates/*/src/**/*.rs") if "tests" not in path.parts]
    return {
        str(path.relative_to(ROOT)): rust_code(path)
        for path in paths
        if path.stem not in {"tests", "samples"}
    }


@cache
def python_sources() -> dict[str, str]:
    paths = [path for path in (ROOT / "python/penstock").rglob("*.py*") if path.suffix in {".py", ".pyi"}]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


@cache
def constants(text: str) -> set[str]:
    """The strings of a Python file that are no prose."""
    found = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {value for value in found if isinstance(value, str) and "\n" not in value}


def knowing_operator(name: str) -> set[str]:
    """The files that name an operator: its step, what that makes, its binding, its stub, its method."""
    rust, python = rust_sources(), python_sources()
    source = rust[f"crates/plan/src/steps/{name}.rs"]
    step = re.search(r"impl Step for (\w+)", source)
    assert step is not None
    type_or_path = re.compile(rf'\b(?:{step[1]}|steps::{name})\b|NAME: &str = "{name}"')
    made = "|".join(re.findall(r"Made::(?:Operator|Stage)\((?:Box::new\()?([A-Za-z]+)[(:]", source))
    machine = re.compile(rf"\bpub (?:struct|fn) (?:{made})\b") if made else None
    found = {path for path, text in rust.items() if type_or_path.search(text)}
    found |= {
        path for path, text in rust.items() if machine and "crates/operators" in path and machine.search(text)
    }
    found |= {
        path for path, text in rust.items() if "crates/python" in path and re.search(rf"\bfn {name}\(", text)
    }
    found |= {path for path, text in python.items() if path.endswith(".pyi") and f"    def {name}(" in text}
    call = re.compile(rf"\b(?:_plan|Plan|first)\.{name}\(")
    return found | {path for path, text in python.items() if path.endswith(".py") and call.search(text)}


def knowing_policy(name: str) -> set[str]:
    pattern = re.compile(rf'\b{name.capitalize()}\b|\b{name}::|"{name}"')
    found = {path for path, text in rust_sources().items() if pattern.search(text)}
    return found | {path for path, text in python_sources().items() if name in constants(text)}


def test_there_is_something_to_check() -> None:
    """Guards the tests below: each would pass on nothing."""
    assert {"filter", "window", "join", "top_k", "map_batches"} <= set(steps())
    assert {"adaptive", "fcfs", "rr"} <= set(policies())
    assert {"ysb", "nexmark"} <= set(workloads())
    assert {"push", "replay", "shared"} <= set(ends("readers"))
    assert {"collect", "discard", "results"} <= set(ends("writers"))


CASES = [
    *(("An operator", name) for name in steps()),
    *(("A scheduling policy", name) for name in policies()),
    *(("A workload", name) for name in workloads()),
    *(("A source", name) for name in ends("readers")),
    *(("A sink", name) for name in ends("writers")),
]


@pytest.mark.parametrize(("title", "name"), CASES)
def test_every_file_of_a_recipe_is_there_and_names_it(title: str, name: str) -> None:
    ingredients = [item for item in recipe(title) if item.is_for(name)]
    assert len(ingredients) >= 3
    for item in ingredients:
        path = ROOT / item.file(name)
        assert path.is_file(), item
        words = path.read_text().lower().replace("_", "")
        assert item.is_shared or name in {*path.parts, path.stem} or name.replace("_", "") in words, item


@pytest.mark.parametrize("title", sorted({title for title, _ in CASES}))
def test_a_recipe_names_only_what_there_is(title: str) -> None:
    there = {name for kind, name in CASES if kind == title}
    named = {name for item in recipe(title) for name in (item.of or frozenset()) | item.but}
    assert named <= there
    assert all(any(item.is_for(name) for name in there) for item in recipe(title))


@pytest.mark.parametrize("name", steps())
def test_an_operator_has_exactly_the_files_of_its_recipe(name: str) -> None:
    ingredients = recipe("An operator")
    if name == DECLARATION:
        return
    lists = files(ingredients, name) - files(ingredients, name, lists=False)
    beside = knowing_operator(name) - lists - COMPOSED.get(name, set())
    assert beside <= files(ingredients, name), "a recipe that is short of a file"
    named = {item.file(name) for item in ingredients if item.is_for(name) and not item.is_shared}
    assert named - lists <= beside, "a recipe with a file too many"


@pytest.mark.parametrize("name", policies())
def test_a_policy_has_exactly_the_files_of_its_recipe(name: str) -> None:
    found = files(recipe("A scheduling policy"), name)
    assert knowing_policy(name) == found


def named_after(name: str) -> set[str]:
    """The files of a workload that carry its name."""
    stems = {name, f"test_{name}", f"test_workload_{name}"}
    paths = [
        path for top in ("crates/workloads", "python/penstock", "tests") for path in (ROOT / top).rglob("*")
    ]
    found = {path for path in paths if path.suffix in {".py", ".rs"} and path.stem in stems}
    return {str(path.relative_to(ROOT)) for path in found} | {f"crates/workloads/src/{name}/mod.rs"}


@pytest.mark.parametrize("name", workloads())
def test_a_workload_has_exactly_the_files_of_its_recipe(name: str) -> None:
    named = {
        item.file(name) for item in recipe("A workload") if item.is_for(name) and name in item.file(name)
    }
    assert named_after(name) == named


SAMPLE = """\
### A wheel

| file | of which | what it says |
| --- | --- | --- |
| `src/<name>.rs` | all | the wheel |
| `src/mod.rs` | all but `flat` | list of wheels |
| `src/rubber.rs` | `front`, `back` | what they are made of |

### A saddle

Without a table.

### A bell

| `src/<name>.rs` | some | rings |

## Another chapter

| `src/none.rs` | all | not of the recipe |
"""


def test_recipes_are_read() -> None:
    found = recipe("A wheel", SAMPLE)
    assert files(found, "front") == {"src/front.rs", "src/mod.rs", "src/rubber.rs"}
    assert files(found, "front", lists=False) == {"src/front.rs", "src/rubber.rs"}
    assert files(found, "flat") == {"src/flat.rs"}


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("A saddle", "names no file"),
        ("A bell", "for whom is `src/<name>.rs`"),
        ("A brake", "0 recipes for 'A brake'"),
    ],
)
def test_bad_recipes_are_refused(title: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        recipe(title, SAMPLE)
