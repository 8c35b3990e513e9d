"""Data sets on disk: the tables of a workload as Parquet files, with a manifest that says what is in them.

A data set is a folder with `manifest.json` and a folder of Parquet files for each table. It is written under
a hidden name and renamed when it is whole, manifest and all: a run that is interrupted leaves no data set.
The checksums in the manifest are computed in the executors, from the rows as they are made; `DataSet.verify`
computes them from the files.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession

from penstock.spark.checksum import add_checksums, checksum
from penstock.spark.errors import SparkJobError
from penstock.spark.generate import CountsByPartition, PartitionCounts, Recipe, plan_tables
from penstock.spark.job import run_watched
from penstock.spark.manifest import DataFile, DataSetError, Manifest, TableEntry
from penstock.spark.parquet import (
    as_it_stands,
    local_uri,
    parquet_files,
    read_batches,
    visible_files,
    write_parquet,
)
from penstock.spark.staging import staged
from penstock.spark.types import spark_schema
from penstock.workloads import catalog

__all__ = ["DataSet", "TableBatches", "read_dataset", "write_dataset"]

Progress = Callable[[int, int], None]
"""Is told how many rows are done, and of how many."""

_BATCH_ROWS = 65_536


def write_dataset(
    spark: SparkSession,
    workload: str,
    path: str | PathLike[str],
    rows: int | None,
    seed: int = 7,
    partitions: int | None = None,
    progress: Progress | None = None,
    **options: catalog.Option,
) -> "DataSet":
    """Generates the data set of a workload with Spark, all of its tables, in a new folder.

    An attempt that fails or is interrupted leaves nothing. What one leaves that was killed is hidden, and
    removed at the next attempt at the same place.

    Args:
        spark: The session; its executors need penstock installed.
        workload: Which workload, one of `penstock.workloads.catalog.CATALOG`.
        path: A folder on this machine that does not exist yet.
        rows: How many rows in all tables together; None is all, where the data has an end.
        seed: The seed.
        partitions: Into how many partitions, and so files, each table is cut; by default as many as Spark
            runs side by side. The rows and the checksums are the same for any number.
        progress: Is called with the rows that are done and all rows, in this thread, as partitions get done.
        options: What else the generators take, e.g. `out_of_order_ms=50`.

    Returns:
        The data set.

    Raises:
        FileExistsError: There is something at `path` already.
        SparkJobError: Spark failed, or a generator in one of its executors.
        TypeError: An option that the workload does not have, or of the wrong type: before any job starts.
        ValueError: An unknown workload, or a number out of bounds: before any job starts.

    Example:
        >>> import tempfile
        >>> from penstock.spark import session, write_dataset
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = write_dataset(session(), "nexmark", f"{folder}/nexmark", rows=1_000, partitions=2)
        ...     {name: table.rows for name, table in written.manifest.tables.items()}
        {'person': 20, 'auction': 60, 'bid': 920}
    """
    if partitions is None:
        partitions = spark.sparkContext.defaultParallelism
    recipes = plan_tables(workload, rows, seed, partitions, options)
    total = sum(recipe.rows for recipe in recipes.values())
    done = 0
    with staged(path) as folder:
        tables = {}
        for table, recipe in recipes.items():
            tables[table] = _write_table(spark, recipe, folder / table, _shifted(progress, done, total))
            done += recipe.rows
        chosen = {**catalog.workload(workload).options, **options}
        manifest = Manifest(workload, total, seed, chosen, tables)
        manifest.write(folder)
    return DataSet(Path(path).absolute(), manifest)


def read_dataset(path: str | PathLike[str]) -> "DataSet":
    """Opens a data set that `write_dataset` wrote. Its files are checked when they are read or verified.

    Args:
        path: The folder.

    Returns:
        The data set.

    Raises:
        DataSetError: The manifest cannot be read, or is of another version.
        FileNotFoundError: The folder is no data set.

    Example:
        >>> import tempfile
        >>> from penstock.spark import read_dataset, session, write_dataset
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = write_dataset(session(), "ysb", f"{folder}/ysb", rows=100)
        ...     read_dataset(f"{folder}/ysb").manifest == written.manifest
        True
    """
    folder = Path(path).absolute()
    return DataSet(folder, Manifest.read(folder))


@dataclass(frozen=True)
class DataSet:
    """A data set on disk.

    Attributes:
        path: Its folder.
        manifest: What it was made from, and what is in it.

    Example:
        >>> import tempfile
        >>> from penstock.spark import session, write_dataset
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data = write_dataset(session(), "ysb", f"{folder}/ysb", rows=1_000, seed=3)
        ...     data.verify()
        ...     data.frames(session())["events"].count()
        1000
    """

    path: Path
    manifest: Manifest

    def frames(self, spark: SparkSession) -> dict[str, DataFrame]:
        """Returns the tables for Spark.

        Args:
            spark: The session.

        Returns:
            A DataFrame for each table.

        Example:
            >>> import tempfile
            >>> from penstock.spark import session, write_dataset
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     data = write_dataset(session(), "ipq", f"{folder}/ipq", rows=10)
            ...     sorted(data.frames(session()))
            ['logs', 'revenue']
        """
        return {table: self._frame(spark, table) for table in self.manifest.tables}

    def _frame(self, spark: SparkSession, table: str) -> DataFrame:
        schema = spark_schema(self._schema(table))
        # The files of the manifest and no others, whatever has been put beside them.
        files = [
            as_it_stands(local_uri(self.path / table / file.name))
            for file in self.manifest.tables[table].files
        ]
        return spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)

    def batches(self, table: str, batch_rows: int = _BATCH_ROWS) -> "TableBatches":
        """Reads the rows of a table for the engine: in row order, in the workload's own types.

        Args:
            table: The table.
            batch_rows: Rows per batch, at most.

        Returns:
            Arrow batches, read as they are asked for, any number of times.

        Raises:
            ValueError: There is no such table.

        Example:
            >>> import tempfile
            >>> from penstock.spark import session, write_dataset
            >>> from penstock.workloads import ysb
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     data = write_dataset(session(), "ysb", f"{folder}/ysb", rows=1_000)
            ...     ysb.query().run(data.batches("events")).rows_in
            1000
        """
        schema = self._schema(table)
        return TableBatches(self.path / table, schema, batch_rows)

    def verify(self) -> None:
        """Reads all files, and compares them with the manifest.

        Raises:
            DataSetError: A file is missing, damaged or one too many, or rows are not those that were made.

        Example:
            >>> import tempfile
            >>> from penstock.spark import session, write_dataset
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     data = write_dataset(session(), "ysb", f"{folder}/ysb", rows=100, partitions=1)
            ...     next((data.path / "events").glob("part-*")).unlink()
            ...     data.verify()
            Traceback (most recent call last):
            penstock.spark.manifest.DataSetError: ...ysb is damaged: events: part-00000-... is missing
        """
        problems: list[str] = []
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for table, entry in self.manifest.tables.items():
                found = self._verify_table(pool, table, entry)
                problems += [f"{table}: {problem}" for problem in found]
        if problems:
            raise DataSetError(self.path, problems)

    def _verify_table(self, pool: ThreadPoolExecutor, table: str, entry: TableEntry) -> list[str]:
        folder = self.path / table
        there = set(visible_files(folder))
        listed = [file.name for file in entry.files]
        problems = [f"{name} is missing" for name in listed if name not in there]
        problems += [f"{name} is not in the manifest" for name in sorted(there.difference(listed))]
        if problems:
            return problems
        schema = self._schema(table)
        first_rows, row = [], 0
        for file in entry.files:
            first_rows.append(row)
            row += file.rows
        if row != entry.rows:
            problems.append(f"the manifest lists {row:,} rows in files, and {entry.rows:,} in all")
        sums = []
        checks = pool.map(
            lambda file, first: _verify_file(folder / file.name, file, schema, first), entry.files, first_rows
        )
        for found in checks:
            if isinstance(found, str):
                problems.append(found)
            else:
                sums.append(found)
        if not problems and add_checksums(sums) != entry.checksum:
            problems.append(
                f"the checksum is {add_checksums(sums):016x}, and should be {entry.checksum:016x}"
            )
        return problems

    def _schema(self, table: str) -> pa.Schema:
        if table not in self.manifest.tables:
            raise ValueError(
                f"{self.path} has no table {table!r}; there are: {', '.join(self.manifest.tables)}"
            )
        schema = catalog.workload(self.manifest.workload).generator(table)(0).schema
        columns = dict(zip(schema.names, schema.types, strict=True))
        listed = self.manifest.tables[table].schema
        if list(columns.items()) != list(listed.items()):
            raise DataSetError(
                self.path, [f"{table} has the columns {dict(listed)}, and should have {columns}"]
            )
        return pa.schema(schema)


@dataclass(frozen=True)
class TableBatches:
    """The rows of a table in row order, read anew whenever they are asked for.

    Attributes:
        path: The folder of Parquet files.
        schema: The types that the batches have.
        batch_rows: Rows per batch, at most.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from penstock.spark import generate, session, write_parquet
        >>> from penstock.spark.dataset import TableBatches
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     frame = generate(session(), "ipq", table="logs", rows=10, partitions=1)
        ...     written = write_parquet(frame, f"{folder}/logs")
        ...     batches = TableBatches(written, pa.schema({"key": pa.int64()}))
        ...     [batch.num_rows for batch in batches], [batch.num_rows for batch in batches]
        ([10], [10])
    """

    path: Path
    schema: pa.Schema
    batch_rows: int = _BATCH_ROWS

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return read_batches(self.path, self.schema, self.batch_rows)


def _write_table(
    spark: SparkSession, recipe: Recipe, folder: Path, progress: Callable[[int], None]
) -> TableEntry:
    counts: Accumulator[PartitionCounts] = spark.sparkContext.accumulator({}, CountsByPartition())
    frame = recipe.frame(spark, counts)
    run_watched(
        spark,
        lambda: write_parquet(frame, folder),
        lambda: progress(sum(rows for rows, _ in list(counts.value.values()))),
    )

    done = counts.value
    rows = sum(rows for rows, _ in done.values())
    if len(done) != recipe.partitions or rows != recipe.rows:
        found, wanted = f"{rows:,} rows in {len(done)}", f"{recipe.rows:,} in {recipe.partitions}"
        raise SparkJobError(f"Spark told of {found} partitions, and there should be {wanted}")
    progress(rows)
    files = tuple(
        DataFile(file.name, pq.read_metadata(file).num_rows, file.stat().st_size)
        for file in parquet_files(folder)
    )
    return TableEntry(
        rows=rows,
        schema=_texts(recipe),
        checksum=add_checksums(part for _, part in done.values()),
        files=files,
    )


def _texts(recipe: Recipe) -> dict[str, str]:
    schema = catalog.workload(recipe.workload).generator(recipe.table)(0).schema
    return dict(zip(schema.names, schema.types, strict=True))


def _shifted(progress: Progress | None, before: int, total: int) -> Callable[[int], None]:
    """Tells of one table as part of all, and only when there is something new."""
    last = -1

    def tell(rows: int) -> None:
        nonlocal last
        if progress is not None and rows != last:
            last = rows
            progress(before + rows, total)

    return tell


def _verify_file(path: Path, file: DataFile, schema: pa.Schema, first_row: int) -> int | str:
    """Returns the checksum of a file, or what is wrong with it."""
    size = path.stat().st_size
    if size != file.bytes:
        return f"{file.name} has {size:,} bytes, and should have {file.bytes:,}"
    row, sums = first_row, []
    try:
        with pq.ParquetFile(path) as parquet:
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=schema.names):
                sums.append(checksum(batch.cast(schema), row))
                row += batch.num_rows
    except (OSError, pa.ArrowException) as error:
        return f"{file.name} cannot be read: {error}"
    if row - first_row != file.rows:
        return f"{file.name} has {row - first_row:,} rows, and should have {file.rows:,}"
    return add_checksums(sums)
