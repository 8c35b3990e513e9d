"""ME, manufacturing equipment: the sensors of a plant, after the data of the DEBS challenge of 2012.

A row is a message with all sensors that the query and its like use: the electrical power of the three main
phases (mf01 to mf03), three cells (pc13 to pc15, pc25 to pc27), and two switches (bm05, bm06). The query is
that of LightSaber's set: `me1`, the mean power of each phase in the last minute, every second.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock.expr.aggregates import mean
from penstock.expr.durations import Duration
from penstock.plan.declaration import stream
from penstock.plan.stream import Stream
from penstock.plan.windows import sliding
from penstock.workloads._published import read_fields
from penstock.workloads.generated import Generated, generate_table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["generate", "me1", "read", "readings", "schema"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


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
) -> Generated:
    """Generates rows `[start, start + rows)` of the endless data set.

    Args:
        rows: How many rows.
        seed: Which data set.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        rate: Rows per second of event time. The plant itself sends 100.
        step_every_s: Every so many seconds the rate changes: 1, 2, 6 and 12 times `rate` in turn, then
            from the start again; 0 is never.
        out_of_order_ms: By how many milliseconds at most rows are moved forward or back in time.
        late_every: One row in so many is up to a minute late; 0 is none.

    Returns:
        The data, to be read any number of times.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.me.me1().run(ps.workloads.me.generate(1000)).rows_in
        1000
    """
    return generate_table(
        "me",
        "readings",
        rows,
        seed,
        start,
        batch_rows,
        rate=rate,
        step_every_s=step_every_s,
        out_of_order_ms=out_of_order_ms,
        late_every=late_every,
    )


def schema() -> _penstock.Schema:
    """Returns the columns of the readings.

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.me.schema().names[:5]
        ['timestamp', 'message_index', 'mf01', 'mf02', 'mf03']
    """
    return _penstock.workload_schema("me", "readings")


def read(path: str | PathLike[str]) -> "pyarrow.Table":
    """Reads the readings of a published file: `DEBS2012-small.txt`, as LightSaber has it.

    A line has the columns of `schema`, and 42 switches that are left out, with tabs between them. Times are
    in ISO 8601 with ten millionths of a second there. Here they are in milliseconds of UTC, and what is below
    is cut off.

    Args:
        path: The file. If its name ends in ".gz", it is unpacked.

    Returns:
        The rows in the order of the file, which is that of time.

    Raises:
        ImportError: There is no pyarrow.
        ValueError: A line is something else than a reading.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import penstock as ps
        >>> line = "2012-02-22T16:46:28.9670320+00:00 2556001 13056 14406 8119 0071 0193 0150 0 0 0 0 0 0"
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "readings.txt")
        ...     written = file.write_text(line)
        ...     ps.workloads.me.read(file).to_pylist()[0]["mf01"]
        13056
    """
    return read_fields(path, schema(), _reading, fields=14, and_more=True)


def readings(delay: Duration = "2s") -> Stream:
    """Declares the stream of readings.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.me.readings().time
        'timestamp'
    """
    return stream(schema(), time="timestamp", delay=delay, name="readings")


def me1(delay: Duration = "2s") -> Stream:
    """Builds ME1: the mean power of each main phase in the last minute, every second.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "readings", with the columns window_start, window_end, mean_mf01, mean_mf02 and
        mean_mf03.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.me.me1().schema.names
        ['window_start', 'window_end', 'mean_mf01', 'mean_mf02', 'mean_mf03']
    """
    return (
        readings(delay)
        .window(sliding("60s", "1s"))
        .agg(mean_mf01=mean("mf01"), mean_mf02=mean("mf02"), mean_mf03=mean("mf03"))
    )


def _reading(fields: Sequence[str]) -> tuple[object, ...]:
    time = datetime.fromisoformat(fields[0])
    return (time - _EPOCH) // _MILLISECOND, *map(int, fields[1:14])
