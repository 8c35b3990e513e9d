"""The manifest of a data set: what it was made from, and what must be in its files."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from penstock.exceptions import PenstockError
from penstock.spark.checksum import add_checksums
from penstock.workloads.catalog import Option

__all__ = ["DataFile", "DataSetError", "Manifest", "TableEntry"]

_NAME = "manifest.json"
_VERSION = 1


class DataSetError(PenstockError, ValueError):
    """A data set is not what its manifest says, or has none that can be read.

    Attributes:
        problems: What is wrong, one line each.

    Example:
        >>> from penstock.spark.manifest import DataSetError
        >>> error = DataSetError("/data/ysb", ["events: 9 rows, where there should be 10"])
        >>> print(error)
        /data/ysb is damaged: events: 9 rows, where there should be 10
    """

    def __init__(self, path: str | PathLike[str], problems: list[str]) -> None:
        super().__init__(str(path), problems)
        self.path = str(path)
        self.problems = problems

    def __str__(self) -> str:
        return f"{self.path} is damaged: {'; '.join(self.problems)}"


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table.

    Attributes:
        name: Its name in the folder of the table.
        rows: How many rows it has.
        bytes: How large it is.

    Example:
        >>> from penstock.spark.manifest import DataFile
        >>> DataFile("part-00000.parquet", rows=10, bytes=512).rows
        10
    """

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class TableEntry:
    """A table of a data set.

    Attributes:
        rows: How many rows it has.
        schema: The columns in order, with their Arrow types as text.
        checksum: That of all rows; see `penstock.spark.checksum`.
        files: The files, in the order of the rows.

    Example:
        >>> from penstock.spark.manifest import DataFile, TableEntry
        >>> entry = TableEntry(10, {"key": "int64"}, 0xAB, (DataFile("part-00000.parquet", 10, 512),))
        >>> entry.bytes
        512
    """

    rows: int
    schema: Mapping[str, str]
    checksum: int
    files: tuple[DataFile, ...]

    @property
    def bytes(self) -> int:
        """How large the files are together.

        Example:
            >>> from penstock.spark.manifest import TableEntry
            >>> TableEntry(0, {}, 0, ()).bytes
            0
        """
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True)
class Manifest:
    """What a data set was made from, and what is in it.

    Attributes:
        workload: The workload.
        rows: The rows that were asked for: those of all tables together.
        seed: The seed.
        options: All options of the generators, also those that were left as they usually are.
        tables: The tables by name.

    Example:
        >>> from penstock.spark.manifest import Manifest, TableEntry
        >>> manifest = Manifest("ysb", 0, 7, {"rate": 1000}, {"events": TableEntry(0, {}, 0, ())})
        >>> manifest.bytes, manifest.checksum
        (0, 0)
    """

    workload: str
    rows: int
    seed: int
    options: Mapping[str, Option]
    tables: Mapping[str, TableEntry]

    @property
    def bytes(self) -> int:
        """How large all files are together.

        Example:
            >>> from penstock.spark.manifest import Manifest
            >>> Manifest("ysb", 0, 7, {}, {}).bytes
            0
        """
        return sum(table.bytes for table in self.tables.values())

    @property
    def checksum(self) -> int:
        """That of all tables together.

        Example:
            >>> from penstock.spark.manifest import Manifest, TableEntry
            >>> table = TableEntry(1, {"key": "int64"}, 5, ())
            >>> Manifest("nexmark", 2, 7, {}, {"bid": table, "person": table}).checksum
            10
        """
        return add_checksums(table.checksum for table in self.tables.values())

    def write(self, folder: Path) -> None:
        """Writes the manifest to the folder of the data set.

        Args:
            folder: The folder.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> from penstock.spark.manifest import Manifest
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Manifest("ysb", 0, 7, {}, {}).write(Path(folder))
            ...     Manifest.read(Path(folder)).workload
            'ysb'
        """
        text = json.dumps(
            {
                "version": _VERSION,
                "workload": self.workload,
                "rows": self.rows,
                "seed": self.seed,
                "options": dict(self.options),
                "tables": {name: _as_json(table) for name, table in self.tables.items()},
            },
            indent=2,
        )
        (folder / _NAME).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Reads the manifest of a data set.

        Args:
            folder: The folder of the data set.

        Returns:
            The manifest.

        Raises:
            DataSetError: It cannot be read.
            FileNotFoundError: There is none: the folder is no data set.

        Example:
            >>> from penstock.spark.manifest import Manifest
            >>> from pathlib import Path
            >>> Manifest.read(Path("/nowhere"))
            Traceback (most recent call last):
            FileNotFoundError: /nowhere is no data set: there is no manifest.json
        """
        try:
            text = (folder / _NAME).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(f"{folder} is no data set: there is no {_NAME}") from None
        try:
            found = json.loads(text)
            if found["version"] != _VERSION:
                reason = f"{_NAME} is of version {found['version']}, and this is for version {_VERSION}"
                raise DataSetError(folder, [reason])
            tables = {name: _from_json(table) for name, table in found["tables"].items()}
            return cls(
                str(found["workload"]), int(found["rows"]), int(found["seed"]), dict(found["options"]), tables
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, DataSetError):
                raise
            raise DataSetError(
                folder, [f"{_NAME} cannot be read: {type(error).__name__}: {error}"]
            ) from error


def _as_json(table: TableEntry) -> dict[str, Any]:
    return {
        "rows": table.rows,
        "schema": dict(table.schema),
        # As text: many readers of JSON keep numbers as floats, which have 53 bits.
        "checksum": f"{table.checksum:016x}",
        "files": [asdict(file) for file in table.files],
    }


def _from_json(found: dict[str, Any]) -> TableEntry:
    files = tuple(
        DataFile(str(file["name"]), int(file["rows"]), int(file["bytes"])) for file in found["files"]
    )
    return TableEntry(int(found["rows"]), dict(found["schema"]), int(found["checksum"], 16), files)
