"""The commands `penstock data generate`, `validate` and `check`: what they do and what they print."""

import contextlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.display.progress import counted
from penstock.display.tables import text_table
from penstock.expr.durations import Duration
from penstock.io.protocols import ArrowData
from penstock.spark.check import Checked, check_dataset
from penstock.spark.comparison import ColumnsDifferError, Comparison, as_frame
from penstock.spark.dataset import read_dataset, write_dataset
from penstock.spark.errors import spark_errors
from penstock.spark.generate import plan_tables
from penstock.spark.manifest import DataSetError
from penstock.spark.samples import sample_options
from penstock.spark.session import session
from penstock.spark.validate import Place
from penstock.spark.validate import validate as compare_answers
from penstock.workloads import catalog, cm, lrb, me, sg

__all__ = ["check", "generate", "read_result", "validate"]

_FINE, _DIFFERENT = 0, 1
_KINDS = ("equal", "missing", "extra", "different")
# Who reads the published file of a workload, and the column with the time, in milliseconds or in seconds.
_FILES: dict[str, tuple[Callable[[PathLike[str]], pa.Table], str, int]] = {
    "cm": (cm.read, "timestamp", 1),
    "sg": (sg.read, "timestamp", 1),
    "me": (me.read, "timestamp", 1),
    "lrb": (lrb.read, "time", 1_000),
}


def generate(
    workload: str,
    out: Path,
    *,
    rows: int | None,
    seed: int = 7,
    partitions: int | None = None,
    cores: int = 2,
    options: Mapping[str, catalog.Option] | None = None,
) -> int:
    """Generates a data set, shows the progress, and prints a summary.

    Args:
        workload: The workload.
        out: A folder that does not exist yet.
        rows: The rows of all tables together; None is all, where the data has an end.
        seed: The seed.
        partitions: Into how many files each table is cut.
        cores: How many tasks Spark runs side by side.
        options: The options of the workload.

    Returns:
        The exit code 0.

    Raises:
        FileExistsError: There is something at `out` already.
        SparkJobError: Spark failed, or a generator in one of its executors.
        TypeError: An option that the workload does not have, or of the wrong type.
        ValueError: An unknown workload, or a number out of bounds.

    Example:
        >>> import tempfile
        >>> from penstock.spark.commands import generate
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     generate("ysb", Path(folder, "ysb"), rows=1_000)
        ysb: 1,000 rows in ... s, ... bytes, checksum ...
        0
    """
    # Spark takes ten seconds to start: mistakes should not have to wait for it.
    plan_tables(workload, rows, seed, 1 if partitions is None else partitions, options or {})
    if out.exists():
        raise FileExistsError(f"{out} exists already")
    spark = _session(cores)
    begin = time.perf_counter()
    with counted(workload) as progress:
        data = write_dataset(
            spark, workload, out, rows, seed, partitions, progress=progress, **(options or {})
        )
    seconds = time.perf_counter() - begin
    made = data.manifest
    print(
        f"{workload}: {made.rows:,} rows in {seconds:.1f} s, {made.bytes:,} bytes, "
        f"checksum {made.checksum:016x}, in {data.path}"
    )
    return _FINE


def validate(
    workload: str,
    *,
    data: Path | None = None,
    file: Path | None = None,
    query: str | None = None,
    result: Path | None = None,
    engine: Place = "local",
    cores: int = 2,
) -> int:
    """Checks a data set and the answers over it, and prints the findings.

    Args:
        workload: The workload.
        data: The folder of a data set.
        file: A published file, instead of a data set.
        query: One query; None is all of the workload.
        result: A file with the answer to that query; None is to run the engine.
        engine: Where the engine runs: in this process, or inside the executors.
        cores: How many tasks Spark runs side by side.

    Returns:
        The exit code: 0 when all is as it should be, 1 when not.

    Raises:
        FileNotFoundError: There is no data set or file.
        ValueError: The data set is of another workload, there are no published files of this one, or there is
            a result and yet an engine to be run in the executors.

    Example:
        >>> import tempfile
        >>> from penstock.spark.commands import generate, validate
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = generate("ysb", Path(folder, "ysb"), rows=1_000)
        ...     validate("ysb", data=Path(folder, "ysb"))
        ysb: 1,000 rows ...
        data: 1,000 rows, checksum ... as in the manifest
        query  rows  equal  missing  extra  different
        -----  ----  -----  -------  -----  ---------
        ysb      98     98        0      0          0
        ysb: validated: 98 of 98 rows equal
        0
    """
    answer = None if result is None else read_result(result)
    try:
        rows = _read_file(workload, file) if file is not None else _read_data(workload, data)
    except DataSetError as error:
        _print_damage(error)
        return _DIFFERENT
    spark = _session(cores)
    try:
        with spark_errors():
            found = compare_answers(
                spark,
                workload,
                rows.frames(spark),
                query=query,
                seed=rows.seed,
                result=answer,
                delay=rows.delay,
                batches=rows.batches if engine == "local" else None,
                engine=engine,
            )
    except ColumnsDifferError as error:
        print(f"NOT EQUAL: {error}", flush=True)
        return _DIFFERENT
    _print_comparisons(found)
    return _FINE if all(comparison.ok for comparison in found.values()) else _DIFFERENT


def check(
    workloads: Sequence[str] = (),
    *,
    rows: int = 1_000_000,
    seeds: Sequence[int] = (7, 11),
    out: Path | None = None,
    engine: Place = "local",
    cores: int = 2,
) -> int:
    """Generates data sets, checks them and all answers over them, and prints the findings.

    They are generated with the options of `penstock.spark.samples`.

    Args:
        workloads: The workloads; none is for all of them.
        rows: The rows of each data set, in all of its tables together.
        seeds: The seeds: there is a data set for each workload and each seed.
        out: A folder to keep the data sets in; None is not to keep them.
        engine: Where the engine runs: in this process, or inside the executors.
        cores: How many tasks Spark runs side by side.

    Returns:
        The exit code: 0 when all is as it should be, 1 when not.

    Raises:
        FileExistsError: There is a data set at its place in `out` already.
        SparkJobError: Spark failed, or a generator or an engine in one of its executors.
        ValueError: An unknown workload, or a number out of bounds.

    Example:
        >>> from penstock.spark.commands import check
        >>> check(["me"], rows=1_000, seeds=[7])
        me, seed 7, me1, ... s: validated: ... rows equal
        workload  seed  query  rows in  result rows  equal  missing  extra  different  seconds
        --------  ----  -----  -------  -----------  -----  -------  -----  ---------  -------
        me           7  me1       1000 ...
        data sets: 1, damaged: 0; answers: 1, wrong: 0; ... s
        0
    """
    asked = [
        (name, seed) for name in dict.fromkeys(workloads or catalog.CATALOG) for seed in dict.fromkeys(seeds)
    ]
    # Mistakes should wait neither for Spark to start nor for the data sets before theirs.
    for name, seed in asked:
        plan_tables(name, rows, seed, 1, sample_options(name, rows))
        if out is not None and _place(out, name, seed).exists():
            raise FileExistsError(f"{_place(out, name, seed)} exists already")
    spark = _session(cores)
    begin = time.perf_counter()
    found: list[Checked] = []
    damaged = 0
    for name, seed in asked:
        with _folder(out) as folder:
            with counted(f"{name}, seed {seed}") as progress:
                place, options = _place(folder, name, seed), sample_options(name, rows)
                data = write_dataset(spark, name, place, rows, seed, None, progress, **options)
            try:
                for checked in check_dataset(spark, data, engine):
                    found.append(checked)
                    report = checked.comparison.report()
                    print(
                        f"{name}, seed {seed}, {checked.query}, {checked.seconds:.1f} s: {report}", flush=True
                    )
            except DataSetError as error:
                damaged += 1
                _print_damage(error)
    wrong = sum(not checked.comparison.ok for checked in found)
    print(_checked_table(found))
    print(
        f"data sets: {len(asked)}, damaged: {damaged}; answers: {len(found)}, wrong: {wrong}; "
        f"{time.perf_counter() - begin:.0f} s"
    )
    return _DIFFERENT if wrong or damaged else _FINE


def read_result(path: Path) -> pa.Table:
    """Reads an answer from a file.

    Args:
        path: A Parquet file, or an Arrow IPC file or stream.

    Returns:
        The rows.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is neither of them.

    Example:
        >>> import tempfile
        >>> import pyarrow.parquet as pq
        >>> import pyarrow as pa
        >>> from penstock.spark.commands import read_result
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pq.write_table(pa.table({"key": [1, 2]}), f"{folder}/answer.parquet")
        ...     read_result(Path(folder, "answer.parquet")).num_rows
        2
    """
    with path.open("rb") as file:
        magic = file.read(6)
    try:
        if magic.startswith(b"PAR1"):
            return pq.ParquetFile(path).read()
        with pa.OSFile(str(path)) as source:
            opened = pa.ipc.open_file(source) if magic == b"ARROW1" else pa.ipc.open_stream(source)
            return opened.read_all()
    except pa.ArrowException as error:
        raise ValueError(f"{path} is neither Parquet nor Arrow IPC: {error}") from error


class _Rows:
    """The rows to be checked: for Spark, and once more for the engine."""

    def __init__(
        self,
        frames: Callable[[SparkSession], Mapping[str, DataFrame]],
        batches: Mapping[str, ArrowData],
        *,
        seed: int,
        delay: Duration | None,
    ) -> None:
        self.frames = frames
        self.batches = batches
        self.seed = seed
        self.delay = delay


def _read_data(workload: str, path: Path | None) -> _Rows:
    if path is None:
        raise ValueError("there must be a data set or a file")
    data = read_dataset(path)
    made = data.manifest
    if made.workload != workload:
        raise ValueError(f"{path} is a data set of {made.workload}, not of {workload}")
    data.verify()
    print(f"data: {made.rows:,} rows, checksum {made.checksum:016x} as in the manifest", flush=True)
    return _Rows(
        data.frames,
        {table: data.batches(table) for table in made.tables},
        seed=made.seed,
        delay=catalog.workload(workload).delay(made.options),
    )


def _read_file(workload: str, path: Path) -> _Rows:
    if workload not in _FILES:
        raise ValueError(f"there are no published files of {workload}, only of {', '.join(_FILES)}")
    read, time_column, unit_ms = _FILES[workload]
    rows = read(path)
    print(f"data: {rows.num_rows:,} rows of {path}", flush=True)
    known = catalog.workload(workload)
    table = next(iter(known.tables))
    delay = known.delay_for(_disorder(rows.column(time_column)) * unit_ms)
    return _Rows(lambda spark: {table: as_frame(spark, rows)}, {table: rows}, seed=7, delay=delay)


def _disorder(times: pa.ChunkedArray) -> int:
    """Returns the largest distance of a time from the largest time before it."""
    numbers = pc.drop_null(times).cast(pa.int64()).to_numpy()
    return int((np.maximum.accumulate(numbers) - numbers).max()) if len(numbers) else 0


@contextlib.contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """Opens the folder that data sets are kept in, or a temporary one."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="penstock-check-") as folder:
        yield Path(folder)


def _place(folder: Path, workload: str, seed: int) -> Path:
    return folder / f"{workload}-{seed}"


def _checked_table(found: Sequence[Checked]) -> str:
    names = ["workload", "seed", "query", "rows in", "result rows", *_KINDS, "seconds"]
    rows = [
        [
            each.workload,
            each.seed,
            each.query,
            each.rows_in,
            each.comparison.rows,
            *(getattr(each.comparison, kind) for kind in _KINDS),
            round(each.seconds, 1),
        ]
        for each in found
    ]
    return text_table(names, rows)


def _print_damage(error: DataSetError) -> None:
    for problem in error.problems:
        print(f"DAMAGED: {problem}", flush=True)


def _print_comparisons(found: Mapping[str, Comparison]) -> None:
    rows = [[name, each.rows, *(getattr(each, kind) for kind in _KINDS)] for name, each in found.items()]
    print(text_table(["query", "rows", *_KINDS], rows))
    for name, each in found.items():
        print(f"{name}: {each.report()}")
    sys.stdout.flush()


def _session(cores: int) -> SparkSession:
    # Ours is the Arrow part of PySpark, which does not touch pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    return session("penstock data", cores)
