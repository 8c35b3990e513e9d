"""Writes the API reference, `docs/reference/`, from the docstrings of the package.

`python scripts/reference.py` writes it anew, `--check` only says whether it is as it should be.
"""

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "penstock"
TARGET = ROOT / "docs" / "reference"

# Each page, its title, and the modules whose public names stand on it.
PAGES = {
    "streams": ("Streams and their time", ["plan/declaration", "plan/stream", "io/schemas", "plan/times"]),
    "columns": ("Rows one by one: columns, filters, lookups, functions", ["plan/columns", "plan/functions"]),
    "windows": ("Windows", ["plan/windows", "plan/windowed"]),
    "aggregates": ("Aggregates", ["expr/aggregates"]),
    "combining": ("Streams together: union, split, join, co-group", ["plan/combining", "plan/outputs"]),
    "expressions": ("Expressions", ["expr/expression", "expr/conditional", "expr/strings", "expr/temporal"]),
    "engine": (
        "Engines and queries",
        [
            "engine/engine",
            "engine/query",
            "engine/results",
            "io/push",
            "io/replay",
            "engine/shared",
            "io/batch",
            "plan/options",
        ],
    ),
    "results": ("Results", ["io/result", "plan/parts", "io/rows", "io/rejecting"]),
    "workloads": (
        "Workloads",
        [
            f"workloads/{name}"
            for name in ("ysb", "nyt", "nexmark", "lrb", "cm", "sg", "me", "ipq", "catalog")
        ],
    ),
    "spark": (
        "Spark",
        [
            f"spark/{name}"
            for name in (
                "session",
                "generate",
                "dataset",
                "manifest",
                "datasource",
                "expected/__init__",
                "validate",
                "comparison",
                "check",
                "samples",
                "run",
                "stream",
                "parquet",
                "types",
                "errors",
            )
        ],
    ),
    "staging": ("Pipelines in stages", ["staging"]),
    "errors": ("Errors and warnings", ["exceptions"]),
}
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Warns|Example|Examples):\n", re.MULTILINE)
NOTICE = "<!-- Written by scripts/reference.py from the docstrings: change those. -->"


def exported(tree: ast.Module) -> list[str]:
    """What `__all__` lists."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets):
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def dedented(text: str) -> str:
    """A section without the indentation of its first line."""
    lines = text.rstrip().splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines)


def entries(text: str) -> str:
    """`name: what it is` as a list; lines that go on are joined."""
    items: list[str] = []
    for line in dedented(text).splitlines():
        if line and not line.startswith(" "):
            name, _, rest = line.partition(":")
            items.append(f"- `{name}`: {rest.strip()}")
        elif line.strip():
            items[-1] += f" {line.strip()}"
    return "\n".join(items)


def markdown(docstring: str) -> str:
    """A Google-style docstring as Markdown."""
    parts = SECTION.split(docstring)
    text = [parts[0].strip()]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Example", "Examples"):
            text.append(f"```python\n{dedented(body)}\n```")
        elif title in ("Returns", "Yields"):
            text.append(f"**{title}** {' '.join(dedented(body).split())}")
        else:
            text.append(f"**{title}**\n\n{entries(body)}")
    return "\n\n".join(text)


def heading(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str | None) -> str:
    """How a function is called, or what a property is."""
    name = f"{owner}.{node.name}" if owner else node.name
    if any(ast.unparse(decorator) == "property" for decorator in node.decorator_list):
        return name
    return f"{name}({ast.unparse(node.args).replace('self, ', '').removeprefix('self').removeprefix('/, ')})"


def described(path: Path) -> list[str]:
    """The public names of a module, a section each."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names, sections = exported(tree), []
    # The names of workloads are the same in each.
    prefix = f"{path.stem}." if path.relative_to(PACKAGE).parts[0] in ("workloads", "spark") else ""
    for node in tree.body:
        docstring = ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
        if (
            docstring is None
            or not isinstance(node, ast.FunctionDef | ast.ClassDef)
            or node.name not in names
        ):
            continue
        if isinstance(node, ast.FunctionDef):
            sections.append(
                f"## {prefix}{node.name}\n\n`{prefix}{heading(node, None)}`\n\n{markdown(docstring)}"
            )
            continue
        sections.append(f"## {prefix}{node.name}\n\n{markdown(docstring)}")
        # The steps of a stream are written down in parts.
        owner = "Stream" if node.name in ("ColumnSteps", "CombiningSteps") else node.name
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                text = markdown(ast.get_docstring(member) or "")
                sections.append(f"### {owner}.{member.name}\n\n`{heading(member, owner)}`\n\n{text}")
    return sections


def pages() -> dict[str, str]:
    """Every page of the reference, by the name of its file."""
    made = {}
    for name, (title, modules) in PAGES.items():
        sections = [section for module in modules for section in described(PACKAGE / f"{module}.py")]
        made[f"{name}.md"] = "\n\n".join([f"# {title}", NOTICE, *sections]) + "\n"
    index = "\n".join(f"- [{title}]({name}.md)" for name, (title, _) in PAGES.items())
    made["README.md"] = f"# API reference\n\n{NOTICE}\n\n{index}\n"
    return made


def main() -> int:
    """Writes the pages, or compares them with what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    wanted = pages()
    if not parser.parse_args().check:
        TARGET.mkdir(parents=True, exist_ok=True)
        for name, text in wanted.items():
            (TARGET / name).write_text(text, encoding="utf-8")
        return 0
    there = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.md")}
    changed = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
    if changed:
        print(f"docs/reference is out of date ({', '.join(changed)}): run `make reference`", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
