"""CM, cluster monitoring: what happens to the tasks of a computing cluster, after Google's trace of 2011.

A row is an event of a task, with the share of the largest machine that the task asks for. The queries are
those of LightSaber's set, in windows of a minute, one of which begins every second:

* `cm1`: the processors that tasks asked for, by category of their job;
* `cm2`: the processors that tasks asked for which have failed, by job.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock.expr.aggregates import sum
from penstock.expr.durations import Duration
from penstock.expr.expression import col
from penstock.plan.declaration import stream
from penstock.plan.stream import Stream
from penstock.plan.windows import sliding
from penstock.workloads._published import read_fields
from penstock.workloads.generated import Generated, generate_table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FAIL", "cm1", "cm2", "events", "generate", "read", "schema"]

FAIL = 3
"""The value of `event_type` that marks a task that has failed."""

_WINDOW = sliding("60s", "1s")


def generate(
    rows: int,
    *,
    seed: int = 7,
    start: int = 0,
    batch_rows: int = 65536,
    rate: int = 1_000_000,
    step_every_s: int = 0,
    out_of_order_ms: int = 0,
    late_every: int = 0,
    jobs: int = 240,
    zipf: float = 1.3,
    fail_share: float = 0.005,
) -> Generated:
    """Generates rows `[start, start + rows)` of the endless data set.

    Args:
        rows: How many rows.
        seed: Which data set.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        rate: Rows per second of event time.
        step_every_s: Every so many seconds the rate changes: 1, 2, 6 and 12 times `rate` in turn, then
            from the start again; 0 is never.
        out_of_order_ms: By how many milliseconds at most rows are moved forward or back in time.
        late_every: One row in so many is up to a minute late; 0 is none.
        jobs: How many jobs there are.
        zipf: Skew of the jobs: 0 is uniform, larger values make a few jobs ever more frequent.
        fail_share: The share of failures among the events, which is what `cm2` keeps.

    Returns:
        The data, to be read any number of times.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.cm.cm1().run(ps.workloads.cm.generate(1000)).rows_in
        1000
    """
    return generate_table(
        "cm",
        "events",
        rows,
        seed,
        start,
        batch_rows,
        rate=rate,
        step_every_s=step_every_s,
        out_of_order_ms=out_of_order_ms,
        late_every=late_every,
        jobs=jobs,
        zipf=zipf,
        fail_share=fail_share,
    )


def schema() -> _penstock.Schema:
    """Returns the columns of the events, which are those of the trace.

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.cm.schema().names[:5]
        ['timestamp', 'job', 'task', 'machine', 'event_type']
    """
    return _penstock.workload_schema("cm", "events")


def read(path: str | PathLike[str]) -> "pyarrow.Table":
    """Reads the events of a published file: `google-cluster-data.txt`, as LightSaber has it.

    A line has the columns of `schema` with blanks between them. Times are in whole seconds there, and in
    milliseconds here.

    Args:
        path: The file. If its name ends in ".gz", it is unpacked.

    Returns:
        The rows in the order of the file, which is that of time.

    Raises:
        ImportError: There is no pyarrow.
        ValueError: A line is something else than an event.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import penstock as ps
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "events.txt")
        ...     written = file.write_text("1 5285926325 0 32064642 1 280 0 9 0.063 0.006 0.000 0")
        ...     ps.workloads.cm.read(file).to_pylist()[0]["job"]
        5285926325
    """
    return read_fields(path, schema(), _event, fields=12)


def events(delay: Duration = "2s") -> Stream:
    """Declares the stream of events.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.cm.events().time
        'timestamp'
    """
    return stream(schema(), time="timestamp", delay=delay, name="events")


def cm1(delay: Duration = "2s") -> Stream:
    """Builds CM1: the sum of the requested processors per category.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "events", with the columns window_start, window_end, category and total_cpu.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.cm.cm1().schema.names
        ['window_start', 'window_end', 'category', 'total_cpu']
    """
    return events(delay).window(_WINDOW, by="category").agg(total_cpu=sum("cpu"))


def cm2(delay: Duration = "2s") -> Stream:
    """Builds CM2: the sum of the processors that failed tasks requested, per job.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "events", with the columns window_start, window_end, job and total_cpu.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.cm.cm2().schema.names
        ['window_start', 'window_end', 'job', 'total_cpu']
    """
    failures = events(delay).filter(col("event_type") == FAIL)
    return failures.window(_WINDOW, by="job").agg(total_cpu=sum("cpu"))


def _event(fields: Sequence[str]) -> tuple[object, ...]:
    seconds, *numbers = map(int, fields[:8])
    return seconds * 1000, *numbers, *map(float, fields[8:11]), int(fields[11])
