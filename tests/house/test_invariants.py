"""Invariants have labels, unique in the workspace, and a search for a citation finds its definition."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Crates whose labels carry the name of a module, such as `LOG-3`. The list grows until it names every crate.
CONVERTED = [
    "types",
    "queue",
    "memory",
    "progress",
    "expr",
    "operators",
    "scheduler",
    "plan",
    "graph",
    "tasks",
    "engine",
    "workloads",
    "border",
    "python",
]

LABEL = re.compile(r"(?<![\w-])[A-Z][A-Z_]+-\d+(?![\w-])")
DEFINITION = re.compile(r"^\s*//[!/] ([A-Z][A-Z_]+-\d+)\. ")
# Names of standards look like labels.
STANDARDS = {"UTF", "ISO", "RFC", "SHA", "IEEE"}

OLD_DEFINITION = re.compile(r"^\s*//[!/] [A-Z]{1,2}\d{1,2}\. ")
OLD_CITATION = re.compile(r"(?<![\w'.-])[A-Z]\d(?![\w-])(?! cache)")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def definitions(text: str) -> list[str]:
    """The labels that header lines define: `//! LOG-3. ...`."""
    return [match[1] for line in text.splitlines() if (match := DEFINITION.match(line))]


def citations(text: str) -> set[str]:
    """All labels that a file mentions, in comments and in messages."""
    return {label for label in LABEL.findall(text) if label.split("-")[0] not in STANDARDS}


def old_labels(text: str) -> list[str]:
    """Lines that define or cite a label without a module, such as `K3`."""
    found = []
    for line in text.splitlines():
        code, slashes, comment = line.partition("//")
        prose = " ".join([comment if slashes else "", *STRING.findall(code)])
        if OLD_DEFINITION.match(line) or OLD_CITATION.search(prose):
            found.append(line.strip())
    return found


def sources(crates: Iterable[str]) -> dict[str, str]:
    """The Rust files of these crates, by their path."""
    paths = [path for crate in crates for path in sorted((ROOT / "crates" / crate).rglob("*.rs"))]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def crates() -> list[str]:
    return sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))


def defined() -> Counter[str]:
    return Counter(label for text in sources(crates()).values() for label in definitions(text))


def test_labels_are_found() -> None:
    """Guards the tests below: they would pass on a workspace without labels."""
    assert set(CONVERTED) <= set(crates())
    assert {"LOG-1", "CHUNK-1", "CONTRACT-1", "WORKLOAD-1"} <= set(defined())
    cited = {label for text in sources(CONVERTED).values() for label in citations(text)}
    assert len(cited) > 100


def test_a_label_is_defined_once() -> None:
    assert {label: count for label, count in defined().items() if count > 1} == {}


@pytest.mark.parametrize("crate", CONVERTED)
def test_a_cited_label_is_defined(crate: str) -> None:
    known = set(defined())
    unknown = {path: sorted(citations(text) - known) for path, text in sources([crate]).items()}
    assert {path: labels for path, labels in unknown.items() if labels} == {}


@pytest.mark.parametrize("crate", CONVERTED)
def test_a_label_carries_its_module(crate: str) -> None:
    files = sources([crate])
    assert files
    old = {path: old_labels(text) for path, text in files.items()}
    assert {path: lines for path, lines in old.items() if lines} == {}


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_documents_cite_labels_that_are_defined(name: str) -> None:
    cited = citations((ROOT / name).read_text())
    assert cited
    assert cited - set(defined()) == set()


def test_the_scan_sees_labels() -> None:
    lines = [
        "//! LOG-3. An entry is stored first.",
        "    /// LOG-4. Indented.",
        "//! See LOG-9 and LOG-10, in UTF-8.",
        'assert!(ok, "CHUNK-2: not shared");',
        "// SAFETY: RING_BUFFER-1 holds.",
    ]
    sample = "\n".join(lines)
    assert definitions(sample) == ["LOG-3", "LOG-4"]
    assert citations(sample) == {"LOG-3", "LOG-4", "LOG-9", "LOG-10", "CHUNK-2", "RING_BUFFER-1"}
    assert old_labels(sample) == []


@pytest.mark.parametrize(
    "line",
    [
        "//! L3. An entry is stored first.",
        "    /// AB12. Indented.",
        "// SAFETY: by K1 the rows are published.",
        "/// Frees all rows (K3).",
        "    self.free = number; // D1",
        'let window = windows.get(n).expect("J3: a window stays");',
    ],
)
def test_the_scan_sees_old_labels(line: str) -> None:
    assert old_labels(line) == [line.strip()]


@pytest.mark.parametrize(
    "line",
    [
        "/// Stays within half of a common L2 cache.",
        "impl<K1, V2> Map for T4 {}",
        "/// CM1 groups by category, and `x2` is a name.",
        'format!("{:#04X}", byte)',
    ],
)
def test_the_scan_takes_other_names_for_what_they_are(line: str) -> None:
    assert old_labels(line) == []
