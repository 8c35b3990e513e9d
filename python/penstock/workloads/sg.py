"""SG, a smart grid: the readings of the plugs of some houses, after the data of the DEBS challenge of 2014.

A house has households, a household has plugs. At each reading a plug gives two rows: its work so far
(property 0, kilowatt hours) and its load (property 1, watts). The queries are those of LightSaber's set,
which take the mean over both alike. A window begins every second:

* `sg1`: the mean of all values of an hour;
* `sg2`: the mean of the values of each plug in 128 seconds;
* `sg3`: the plugs of `sg2` whose mean is above that of `sg1`.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock.expr.aggregates import mean
from penstock.expr.durations import Duration
from penstock.expr.expression import col
from penstock.plan.declaration import stream
from penstock.plan.stream import Stream
from penstock.plan.windows import sliding, tumbling
from penstock.workloads._published import read_fields
from penstock.workloads.generated import Generated, generate_table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["generate", "read", "readings", "schema", "sg1", "sg2", "sg3"]

_PLUG = ["plug", "household", "house"]


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
    houses: int = 10,
    zipf: float = 0.0,
) -> Generated:
    """Generates rows `[start, start + rows)` of the endless data set.

    Args:
        rows: How many rows. A reading is two of them.
        seed: Which data set.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        rate: Rows per second of event time.
        step_every_s: Every so many seconds the rate changes: 1, 2, 6 and 12 times `rate` in turn, then
            from the start again; 0 is never.
        out_of_order_ms: By how many milliseconds at most rows are moved forward or back in time.
        late_every: One row in so many is up to a minute late; 0 is none.
        houses: How many houses there are, each with about 50 plugs.
        zipf: Skew of the plugs: 0 is for plugs that report in turn, larger values make a few of them ever
            more frequent.

    Returns:
        The data, to be read any number of times.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.sg.sg2().run(ps.workloads.sg.generate(1000)).rows_in
        1000
    """
    return generate_table(
        "sg",
        "readings",
        rows,
        seed,
        start,
        batch_rows,
        rate=rate,
        step_every_s=step_every_s,
        out_of_order_ms=out_of_order_ms,
        late_every=late_every,
        houses=houses,
        zipf=zipf,
    )


def schema() -> _penstock.Schema:
    """Returns the columns of the readings.

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.sg.schema().names
        ['timestamp', 'value', 'property', 'plug', 'household', 'house']
    """
    return _penstock.workload_schema("sg", "readings")


def read(path: str | PathLike[str]) -> "pyarrow.Table":
    """Reads the readings of a published file: `smartgrid-data.txt`, as LightSaber has it.

    A line has the columns of `schema` with blanks between them. Times are in whole seconds there, and in
    milliseconds here.

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
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "readings.txt")
        ...     written = file.write_text("1377986401 68.5 0 11 0 0")
        ...     ps.workloads.sg.read(file).to_pylist()[0]["value"]
        68.5
    """
    return read_fields(path, schema(), _reading, fields=6)


def readings(delay: Duration = "2s") -> Stream:
    """Declares the stream of readings.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.sg.readings().time
        'timestamp'
    """
    return stream(schema(), time="timestamp", delay=delay, name="readings")


def sg1(delay: Duration = "2s") -> Stream:
    """Builds SG1: the mean of all values of the last hour, every second.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "readings", with the columns window_start, window_end and mean_value.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.sg.sg1().schema.names
        ['window_start', 'window_end', 'mean_value']
    """
    return readings(delay).window(sliding("3600s", "1s")).agg(mean_value=mean("value"))


def sg2(delay: Duration = "2s") -> Stream:
    """Builds SG2: the mean of the values of each plug in the last 128 seconds, every second.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "readings", with the columns window_start, window_end, plug, household, house and
        mean_value.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.sg.sg2().schema.names
        ['window_start', 'window_end', 'plug', 'household', 'house', 'mean_value']
    """
    return readings(delay).window(sliding("128s", "1s"), by=_PLUG).agg(mean_value=mean("value"))


def sg3(delay: Duration = "2s") -> Stream:
    """Builds SG3: the rows of SG2 whose mean is above that of SG1.

    Windows match where they end at the same time: the last 128 seconds of a plug are set against the last
    hour of all plugs. As that hour holds those seconds, there is a mean to compare with for every row of SG2.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "readings", with the columns of `sg2`; the window is that of the plug.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.sg.sg3().schema.names
        ['window_start', 'window_end', 'plug', 'household', 'house', 'mean_value']
    """
    # One window of each query ends in each second, and its results fall into it.
    ends = tumbling("1s")
    everywhere = sg1(delay).select("window_end", end="window_end", overall="mean_value")
    return (
        sg2(delay)
        .with_columns(begin=col("window_start"), end=col("window_end"))
        .join(everywhere, window=ends, on="end")
        .filter(col("mean_value") > col("overall"))
        .select(col("begin").alias("window_start"), "window_end", *_PLUG, "mean_value")
    )


def _reading(fields: Sequence[str]) -> tuple[object, ...]:
    return int(fields[0]) * 1000, float(fields[1]), *map(int, fields[2:6])
