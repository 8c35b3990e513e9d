"""Published files of the workloads: what their lines become, and a word about lines of another kind."""

from __future__ import annotations

import builtins
import gzip
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.workloads import cm, lrb, me, sg

MESSAGE = "2012-02-22T17:46:28.9679999+01:00\t2556001\t13056\t14406\t8119\t0071\t0193\t0150\t0\t0\t0\t0\t1\t0"
FILES: dict[str, tuple[Callable[[Any], pa.Table], Callable[[], Any], str, list[Any]]] = {
    "cm": (
        cm.read, cm.schema,
        "18     515042969       19            -1   5     24  2  0    0.5 0.25 0.125     1",
        [datetime(1970, 1, 1, 0, 0, 18), 515042969, 19, -1, 5, 24, 2, 0, 0.5, 0.25, 0.125, 1],
    ),
    "sg": (
        sg.read, sg.schema,
        "1377986401 68.5     1    11     2     3",
        [datetime(2013, 8, 31, 22, 0, 1), 68.5, 1, 11, 2, 3],
    ),
    "me": (
        me.read, me.schema,
        MESSAGE + "\t0" * 42,
        [datetime(2012, 2, 22, 16, 46, 28, 967000),
         2556001, 13056, 14406, 8119, 71, 193, 150, 0, 0, 0, 0, 1, 0],
    ),
    "lrb": (
        lrb.read, lrb.schema,
        "1\t\t\t107\t32\t\t\t\t\t2\t\t\t\t\t3\t\t\t\t\t1\t53320",
        [1, 0, 107, 32, 2, 3, 1, 10, 53320, -1, -1, -1, -1, -1, -1],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
def test_a_line_becomes_a_row(name: str, end: str, tmp_path: Path) -> None:
    read, schema, line, cells = FILES[name]
    plain, packed = tmp_path / "rows.txt", tmp_path / "rows.txt.gz"
    plain.write_text(f"{line}\n{line}{end}", encoding="ascii", newline="")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed, str(plain)):
        table = read(path)
        assert table.schema == pa.schema(schema())
        assert [list(row.values()) for row in table.to_pylist()] == [cells, cells]


@pytest.mark.parametrize("name", FILES)
def test_an_empty_file_has_no_rows(name: str, tmp_path: Path) -> None:
    read, schema, _, _ = FILES[name]
    (tmp_path / "rows.txt").touch()
    table = read(tmp_path / "rows.txt")
    assert table.schema == pa.schema(schema())
    assert len(table) == 0


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("other", ["1 2 3", "x", *FILES])
def test_other_lines_are_refused_with_their_number(name: str, other: str, tmp_path: Path) -> None:
    read, _, line, _ = FILES[name]
    if name == other:
        return
    path = tmp_path / "rows.txt"
    path.write_text(f"{line}\n{FILES[other][2] if other in FILES else other}\n", encoding="ascii")
    with pytest.raises(ValueError, match=r"rows\.txt, line 2: "):
        read(path)


@pytest.mark.parametrize("name", FILES)
def test_without_pyarrow_it_says_what_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = builtins.__import__

    def without(module: str, *args: Any, **options: Any) -> Any:
        if module == "pyarrow":
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return really(module, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"'pyarrow'.*penstock\[arrow\]"):
        FILES[name][0](tmp_path / "rows.txt")
