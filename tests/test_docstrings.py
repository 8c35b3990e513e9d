"""Every public name is documented, with an example, and every example is right.

The documentation is read from the source of the installed package, so that modules whose own requirements are
missing are looked at as well. The examples that need a Spark session run with the tests of `penstock.spark`.
"""

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock

FOLDER = Path(penstock.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))
Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def module_name(path: Path) -> str:
    parts = ("penstock", *path.relative_to(FOLDER).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def exported(tree: ast.Module) -> list[str] | None:
    """What `__all__` lists; None if there is no `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets):
            listed = ast.literal_eval(node.value)
            assert isinstance(listed, list)
            return [str(name) for name in listed]
    return None


def public_definitions(path: Path) -> Iterator[tuple[str, Documented]]:
    """The functions and classes that a module exports, and the public methods of the classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = exported(tree) or []
    for node in tree.body:
        if isinstance(node, Documented) and node.name in names:
            yield f"{module_name(path)}.{node.name}", node
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, Documented) and not member.name.startswith("_"):
                    yield f"{module_name(path)}.{node.name}.{member.name}", member


PUBLIC_SOURCES = [path for path in SOURCES if path.name == "__init__.py" or not path.name.startswith("_")]
DEFINITIONS = dict(definition for path in PUBLIC_SOURCES for definition in public_definitions(path))
NEED_SPARK = ("penstock.demo", "penstock.spark")
MODULES = [name for name in map(module_name, SOURCES) if not name.startswith(NEED_SPARK)]


def section(docstring: str, title: str) -> str | None:
    """The body of a section of a Google-style docstring."""
    found = re.search(rf"^{title}:\n((?:[ ]+.*\n?|\n)+)", docstring, re.MULTILINE)
    return None if found is None else found[1]


def test_the_package_was_found() -> None:
    assert len(SOURCES) >= 12
    assert {"penstock.plan.stream", "penstock.workloads.ysb"} <= set(MODULES)
    assert {
        "penstock.plan.declaration.stream",
        "penstock.plan.stream.Stream.run",
        "penstock.expr.expression.col",
    } <= set(DEFINITIONS)


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_module_says_what_it_is_for_and_what_is_public(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert exported(tree) is not None, "no __all__"


@pytest.mark.parametrize("name", MODULES)
def test_everything_in_all_exists(name: str) -> None:
    module = importlib.import_module(name)
    assert [missing for missing in module.__all__ if not hasattr(module, missing)] == []
    assert len(set(module.__all__)) == len(module.__all__)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_docstring_is_complete(name: str) -> None:
    node = DEFINITIONS[name]
    docstring = ast.get_docstring(node)
    assert docstring, "no docstring"
    assert ">>> " in docstring, "no example"
    assert section(docstring, "Example") or section(docstring, "Examples"), "the example has no section"
    if isinstance(node, ast.ClassDef):
        return
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    arguments = node.args
    named = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    wanted = {argument.arg for argument in named if argument is not None} - {"self", "cls"}
    described = set(re.findall(r"^    \*{0,2}(\w+):", section(docstring, "Args") or "", re.MULTILINE))
    assert described == wanted
    returns = node.returns is not None and ast.unparse(node.returns) not in ("None", "NoReturn")
    if returns and "property" not in decorators:
        assert section(docstring, "Returns") or section(docstring, "Yields"), (
            "no section about what comes back"
        )


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    """Each is pasted into a session of its own, which knows nothing of the module."""
    module = importlib.import_module(name)
    options = doctest.ELLIPSIS | doctest.REPORT_NDIFF
    failed, _ = doctest.testmod(module, globs={"__name__": "__main__"}, optionflags=options)
    assert failed == 0


def test_most_examples_were_found() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = sum(len(finder.find(importlib.import_module(name))) for name in MODULES)
    assert found >= 60
