"""Hands rows over from Spark to the engine in Parquet files, without losing their order."""

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from penstock.spark.errors import spark_errors
from penstock.spark.staging import staged

__all__ = ["as_it_stands", "local_uri", "parquet_files", "read_batches", "visible_files", "write_parquet"]

_PATTERN = re.compile(r"[][{}*?\\]")


def write_parquet(df: DataFrame, path: str | PathLike[str]) -> Path:
    """Writes a DataFrame to a new folder of Parquet files, one per partition, or leaves nothing there.

    The files are written to a hidden folder beside `path`, which gets its name only when all of them are
    complete: if `path` exists, the whole data set does.

    Args:
        df: What to write.
        path: A folder on this machine that does not exist yet.

    Returns:
        The folder.

    Raises:
        FileExistsError: There is something at `path` already.
        SparkJobError: Spark failed, or a function in one of its executors.

    Example:
        >>> import tempfile
        >>> from penstock.spark import generate, session, write_parquet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = write_parquet(generate(session(), rows=100, partitions=2), f"{folder}/ysb")
        ...     sorted(file.name[:10] for file in written.glob("part-*.parquet"))
        ['part-00000', 'part-00001']
    """
    with spark_errors(), staged(path) as partial:
        # The folder is there already, and empty.
        df.write.mode("append").parquet(local_uri(partial))
    return Path(path).absolute()


def read_batches(
    path: str | PathLike[str], schema: pa.Schema, batch_rows: int = 65_536
) -> Iterator[pa.RecordBatch]:
    """Reads what `write_parquet` wrote, in the order of its partitions and of the rows within them.

    Args:
        path: The folder.
        schema: What the batches are cast to. The casts are exact: a value that does not fit is an error.
        batch_rows: Rows per batch, at most.

    Returns:
        An iterator that reads as it goes.

    Raises:
        FileNotFoundError: The folder holds no data set.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from penstock.spark import generate, read_batches, session, write_parquet
        >>> from penstock.workloads import ysb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = write_parquet(generate(session(), rows=100, partitions=2), f"{folder}/ysb")
        ...     [batch.num_rows for batch in read_batches(path, pa.schema(ysb.schema()))]
        [50, 50]
    """
    files = parquet_files(path)
    if not files:
        raise FileNotFoundError(f"no Parquet files in {path}")
    return _read_files(files, schema, batch_rows)


def parquet_files(path: str | PathLike[str]) -> list[Path]:
    """Returns the files that `write_parquet` wrote, in the order of their rows.

    Args:
        path: The folder.

    Returns:
        The files; none if it is no such folder.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from penstock.spark.parquet import parquet_files
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("part-00010-a.parquet", "part-00002-a.parquet", "_SUCCESS"):
        ...         Path(folder, name).touch()
        ...     [file.name for file in parquet_files(folder)]
        ['part-00002-a.parquet', 'part-00010-a.parquet']
    """
    # Spark numbers the files by partition: part-00000-..., part-00001-...
    files = Path(path).glob("part-*.parquet")
    return sorted(files, key=lambda file: (int(file.name.split("-")[1]), file.name))


def visible_files(path: str | PathLike[str]) -> list[str]:
    """Returns the names of all files that Spark would read in a folder.

    Args:
        path: The folder.

    Returns:
        The names, in order; none if there is no such folder.

    Example:
        >>> import tempfile
        >>> from penstock.spark.parquet import visible_files
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("part-00000-a.parquet", "copy.parquet", "_SUCCESS", ".part.crc"):
        ...         Path(folder, name).touch()
        ...     visible_files(folder)
        ['copy.parquet', 'part-00000-a.parquet']
    """
    folder = Path(path)
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    return sorted(name for name in names if name[0] not in "._")


def _read_files(files: list[Path], schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(batch_size=batch_rows, columns=schema.names):
                yield batch.cast(schema)


def as_it_stands(path: str) -> str:
    r"""Escapes the name of a file or folder for Spark's readers, which take some characters for a pattern.

    Args:
        path: The name, without wildcards.

    Returns:
        The name with those characters marked.

    Example:
        >>> from penstock.spark.parquet import as_it_stands
        >>> as_it_stands("file:/data/run[1]")
        'file:/data/run\\[1\\]'
    """
    return _PATTERN.sub(r"\\\g<0>", path)


def local_uri(path: str | PathLike[str]) -> str:
    """Returns the URI of a local file or folder, independent of Spark's default file system.

    Spark takes the characters literally: a space is a space, not `%20`.

    Args:
        path: The file or folder.

    Returns:
        Its name for Spark's readers and writers.

    Example:
        >>> from penstock.spark.parquet import local_uri
        >>> local_uri("/data/with space")
        'file:///data/with space'
    """
    return "file://" + Path(path).absolute().as_posix()
