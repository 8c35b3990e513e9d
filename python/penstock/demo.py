"""The whole way once: Spark makes the data, the engine runs the query, Spark checks every row of the answer.

    python -m penstock.demo --rows 5_000_000 --seed 7

The workload is YSB: advertising events, of which the views are counted per campaign in windows of ten
seconds. The exit code is 0 when the engine's answer equals Spark's, 1 when it does not, and 2 when the demo
cannot run.
"""

import argparse
import contextlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.workloads import ysb

if TYPE_CHECKING:
    from penstock.io.result import Result

__all__ = ["main"]

_KEYS = ["window_start", "window_end", "campaign_id"]
_HEAD_ROWS = 8
# The watermark trails the newest row by at least this.
_LEAST_DELAY_MS = 2_000


def main(argv: Sequence[str] | None = None, *, tamper: Callable[[Any], Any] | None = None) -> int:
    """Runs the demo and prints its report.

    Args:
        argv: The command line, by default that of the process.
        tamper: Changes the engine's answer, a `pyarrow.Table`, before it is checked: to test the check.

    Returns:
        The exit code: 0 when the answer was validated, 1 when it is wrong, 2 when the demo cannot run.

    Example:
        >>> from penstock.demo import main
        >>> main(["--rows", "20_000"])  # doctest: +ELLIPSIS
        Penstock demo: YSB, 20,000 rows, seed 7...
        validated: 100 of 100 rows equal
        0
    """
    options = _options(argv)
    # Ours is the Arrow part of PySpark, which does not touch pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    try:
        import penstock.spark  # noqa: F401
    except ImportError as error:
        print(error, file=sys.stderr)
        return 2
    disorder = f", out of order by up to {options.out_of_order_ms:,} ms" if options.out_of_order_ms else ""
    print(f"Penstock demo: YSB, {options.rows:,} rows, seed {options.seed}{disorder}\n", flush=True)
    try:
        with contextlib.ExitStack() as stack:
            if options.keep is None:
                folder = Path(
                    stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-demo-")), "events"
                )
            else:
                folder = options.keep
            return _run(options, folder, tamper)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m penstock.demo",
        description="Spark makes the data, the engine runs the query, Spark checks every row of the answer.",
    )
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows to make (default 5_000_000)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the data set (default 7)")
    parser.add_argument(
        "--partitions", type=int, help="Spark partitions; the data is the same for any number"
    )
    parser.add_argument(
        "--rate", type=int, default=20_000, help="rows per second of event time (default 20_000)"
    )
    parser.add_argument(
        "--out-of-order-ms", type=int, default=0, help="disorder of the event times (default 0)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the rows there, as Parquet, in a new folder"
    )
    return parser.parse_args(argv)


def _run(options: argparse.Namespace, folder: Path, tamper: Callable[[Any], Any] | None) -> int:
    import pyarrow as pa

    from penstock import spark as pspark

    clock = _Clock()
    with clock.phase("start Spark"):
        spark = pspark.session("penstock demo")
    with clock.phase("generate with Spark", options.rows):
        made = pspark.generate(
            spark,
            "ysb",
            rows=options.rows,
            seed=options.seed,
            partitions=options.partitions,
            rate=options.rate,
            out_of_order_ms=options.out_of_order_ms,
        )
        pspark.write_parquet(made, folder)

    # A row may be this much early and the next one this much late.
    delay_ms = max(_LEAST_DELAY_MS, 2 * options.out_of_order_ms)
    query = ysb.query(delay=f"{delay_ms}ms", campaigns=ysb.campaigns(options.seed))
    # The engine works while its input is still being read. To time the two apart, all of it is read first.
    with clock.phase("read Parquet", options.rows):
        batches = list(pspark.read_batches(folder, pa.schema(ysb.schema())))
    with clock.phase("run the engine", options.rows):
        result = query.run(batches)
    del batches

    answer = result.to_arrow()
    if tamper is not None:
        answer = tamper(answer)
    with clock.phase("Spark's own answer", options.rows):
        rows = spark.read.parquet(pspark.local_uri(folder))
        expected = pspark.expected_ysb(spark, rows, ysb.campaigns(options.seed)).cache()
        expected.count()
    with clock.phase("compare"):
        comparison = pspark.compare(expected, answer, keys=_KEYS)
        expected.unpersist()

    print(_summary(result, clock, answer))
    print(comparison.report(), flush=True)
    return 0 if comparison.ok else 1


def _summary(result: "Result", clock: "_Clock", answer: Any) -> str:
    counts = [
        ("rows in", result.rows_in),
        ("filtered out", result.rows_filtered),
        ("late", result.rows_late),
        ("rows out", result.rows_out),
    ]
    head = answer.sort_by([("window_start", "ascending"), ("campaign_id", "ascending")]).slice(0, _HEAD_ROWS)
    cells = [head.column_names, *([str(value) for value in row.values()] for row in head.to_pylist())]
    left_out = answer.num_rows - head.num_rows
    return "\n".join(
        [
            "",
            *_aligned([["phase", "seconds", "rows/s"], *clock.table()]),
            "",
            *_aligned([[name, f"{count:,}"] for name, count in counts]),
            "",
            *_aligned(cells),
            *([f"... and {left_out:,} more rows"] if left_out > 0 else []),
            "",
        ]
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Formats rows as lines: the first column flush left, the others flush right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


@dataclass
class _Clock:
    """Times the phases and says which one is under way: with rich in a terminal, else in plain lines."""

    phases: list[tuple[str, float, int | None]] = field(default_factory=list)

    @contextlib.contextmanager
    def phase(self, name: str, rows: int | None = None) -> Iterator[None]:
        begin = time.perf_counter()
        with _shown(name):
            yield
        seconds = time.perf_counter() - begin
        self.phases.append((name, seconds, rows))
        print(f"{name}: {seconds:.1f} s", flush=True)

    def table(self) -> list[list[str]]:
        return [
            [name, f"{seconds:.2f}", f"{rows / seconds:,.0f}" if rows and seconds else ""]
            for name, seconds, rows in self.phases
        ]


@contextlib.contextmanager
def _shown(name: str) -> Iterator[None]:
    """Shows a spinner while a phase runs, in a terminal and if rich is installed; otherwise prints a line."""
    try:
        from rich.console import Console
    except ImportError:
        console = None
    else:
        console = Console()
    if console is not None and console.is_terminal:
        with console.status(f"{name} ..."):
            yield
    else:
        print(f"{name} ...", flush=True)
        yield


if __name__ == "__main__":
    sys.exit(main())
