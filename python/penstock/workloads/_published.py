"""Published files: lines of fields with blanks between them, packed with gzip or not, as Arrow tables."""

import gzip
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING

from penstock import _penstock

if TYPE_CHECKING:
    import pyarrow

__all__ = ["read_fields"]


def read_fields(
    path: str | PathLike[str],
    schema: _penstock.Schema,
    row: Callable[[Sequence[str]], tuple[object, ...]],
    *,
    fields: int,
    and_more: bool = False,
) -> "pyarrow.Table":
    """Reads the rows that `row` makes of the fields of each line, in the order of the file.

    A line has `fields` of them, or with `and_more` at least so many; lines without any are passed over.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            "reading published files needs the package 'pyarrow': pip install 'penstock[arrow]'",
            name=error.name,
        ) from error
    rows = []
    with _open(Path(path)) as lines:
        for number, line in enumerate(lines, 1):
            found = line.split()
            if not found:
                continue
            try:
                if len(found) < fields or (len(found) > fields and not and_more):
                    raise ValueError(f"{len(found)} fields, where there should be {fields}")
                rows.append(row(found))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
    columns = pa.schema(schema)
    cells = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = [pa.array(values, field.type) for values, field in zip(cells, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=columns)


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="ascii") if path.suffix == ".gz" else path.open(encoding="ascii")
