"""LRB, Linear Road: accidents and tolls on expressways, from the position reports of the cars.

An expressway has two directions of 100 segments, which are a mile long; a car reports its speed and place
every 30 seconds. Time is in whole seconds. The three branches of the query read one stream of reports:

* `accidents`: two or more vehicles that each stood at the same place in four reports or more;
* `lav`, the latest average velocity: of the last five minutes of a segment;
* `vehicles`: how many there were in a segment in a minute.

The last two are joined to the tolls of each minute and segment (`tolls`). A toll is due where more than 50
vehicles go slower than 40 miles per hour on average. `query` waives it where an accident lies in the segment
or up to four segments downstream.

`lrb1` and `lrb2` are those of LightSaber's set: two shorter queries over the same reports.

A "minute" is a parameter: 60 seconds, or 40 or 20 in the variants 40/80/20 and 20/40/10. The sliding windows
of accidents are two minutes long, and one begins every half minute. As four reports have to fit into two
minutes, cars must report every half minute, not every 30 seconds, for the variants to find accidents.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock.expr.aggregates import count, count_distinct, max, mean
from penstock.expr.conditional import when
from penstock.expr.expression import col
from penstock.io.schemas import read_schema
from penstock.plan.combining import union
from penstock.plan.declaration import stream
from penstock.plan.stream import Stream
from penstock.plan.windows import sliding, tumbling
from penstock.workloads._published import read_fields
from penstock.workloads.generated import Generated, generate_table

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "accidents",
    "generate",
    "lav",
    "lrb1",
    "lrb2",
    "position_reports",
    "query",
    "read",
    "schema",
    "tolls",
    "vehicles",
]

_POSITION_REPORT = 0
_SEGMENT_FEET = 5280
_SEGMENT = ["xway", "dir", "seg"]
_PLACE = [*_SEGMENT, "lane", "pos"]

# 64 bytes per row. The last six belong to the queries of the driver, and are -1 in position reports.
_COLUMNS = {
    "time": "int64",
    "type": "int32",
    "vid": "int32",
    "speed": "int32",
    "xway": "int32",
    "lane": "int32",
    "dir": "int32",
    "seg": "int32",
    "pos": "int32",
    "qid": "int32",
    "sinit": "int32",
    "send": "int32",
    "dow": "int32",
    "tod": "int32",
    "day": "int32",
}


def generate(
    rows: int | None = None,
    *,
    seed: int = 7,
    start: int = 0,
    batch_rows: int = 65536,
    expressways: int = 1,
    minutes: int = 180,
    cars_per_second: int = 20,
    report_every: int = 30,
    accident_every: int = 600,
    queries_every: int = 0,
    out_of_order_s: int = 0,
    late_every: int = 0,
) -> Generated:
    """Generates rows `[start, start + rows)` of the traffic: by default, three hours of one expressway.

    Args:
        rows: How many rows; None is all that there are.
        seed: Which data set.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        expressways: How many expressways there are, each with its own traffic.
        minutes: How long the traffic is watched.
        cars_per_second: How many cars come to an expressway per second, once its traffic has grown for three
            hours.
        report_every: Seconds between two reports of a car.
        accident_every: Seconds in which at most one accident begins in each direction of an expressway; 0 is
            none at all.
        queries_every: With one in so many reports comes a row of another type, a request; 0 is none.
        out_of_order_s: By how many seconds at most rows are moved forward or back in time.
        late_every: One row in so many is up to a minute late; 0 is none.

    Returns:
        The data, to be read any number of times.

    Raises:
        ValueError: An option is out of bounds, or there are not so many rows.

    Example:
        >>> import penstock as ps
        >>> reports = ps.workloads.lrb.generate(minutes=10)
        >>> ps.workloads.lrb.query().run(reports).rows_in
        2353
    """
    return generate_table(
        "lrb",
        "reports",
        rows,
        seed,
        start,
        batch_rows,
        expressways=expressways,
        minutes=minutes,
        cars_per_second=cars_per_second,
        report_every=report_every,
        accident_every=accident_every,
        queries_every=queries_every,
        out_of_order_s=out_of_order_s,
        late_every=late_every,
    )


def schema() -> _penstock.Schema:
    """Returns the columns of the input.

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.schema().names[:4]
        ['time', 'type', 'vid', 'speed']
    """
    return read_schema(_COLUMNS)


def position_reports(delay: int = 2) -> Stream:
    """Declares the stream that all branches read. Given to several of them, it is read once.

    Args:
        delay: By how many seconds rows may come out of order.

    Returns:
        The pipeline, without the columns that only other rows use.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.position_reports().schema.names
        ['time', 'vid', 'speed', 'xway', 'lane', 'dir', 'seg', 'pos']
    """
    return (
        stream(schema(), time="time", delay=delay)
        .filter(col("type") == _POSITION_REPORT)
        .select("time", "vid", "speed", "xway", "lane", "dir", "seg", "pos")
    )


def accidents(reports: Stream | None = None, minute: int = 60) -> Stream:
    """Finds stopped vehicles: two or more with four reports each of the same place and lane, at speed 0.

    Args:
        reports: The position reports, if they are shared with other pipelines or come out of order by more.
        minute: The length of a minute in seconds; the windows here are twice as long, and begin every half.

    Returns:
        The pipeline, with the columns window_start, window_end, xway, dir, seg, lane, pos and vehicles.

    Raises:
        ValueError: The minute has no half.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> lrb = ps.workloads.lrb
        >>> rows = {name: [0] * 8 for name in lrb.schema().names}
        >>> rows |= {"time": [0, 5, 30, 35, 60, 65, 90, 95], "vid": [1, 2] * 4, "lane": [1] * 8}
        >>> found = lrb.accidents().select("window_start", "window_end", "seg", "vehicles")
        >>> found.run(pa.table(rows, schema=pa.schema(lrb.schema()))).to_pylist()
        [{'window_start': 0, 'window_end': 120, 'seg': 0, 'vehicles': 2}]
    """
    if minute % 2:
        raise ValueError(f"minute is {minute} seconds, and half of it is no whole number of them")
    size, slide = 2 * minute, minute // 2
    return (
        _or_own(reports)
        .filter(col("lane").between(1, 3), col("speed") == 0)
        .window(sliding(size, slide), by=[*_PLACE, "vid"])
        .agg(stops=count())
        .filter(col("stops") >= 4)
        .window(tumbling(slide), by=_PLACE)
        .agg(vehicles=count())
        .filter(col("vehicles") >= 2)
        .with_columns(window_start=col("window_end") - size)
    )


def lav(reports: Stream | None = None, minute: int = 60) -> Stream:
    """Computes the latest average velocity of each segment: the mean of its values in five minutes.

    The value of a minute is the mean over its vehicles of each vehicle's mean speed; minutes without vehicles
    have none, and up to four of them in a row are bridged.

    Args:
        reports: The position reports, if they are shared with other pipelines or come out of order by more.
        minute: The length of a minute in seconds.

    Returns:
        The pipeline, with the columns window_start, window_end, xway, dir, seg and lav. The windows are the
        five minutes, and end with the minute that the velocity is for.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.lav().schema.names
        ['window_start', 'window_end', 'xway', 'dir', 'seg', 'lav']
    """
    return (
        _or_own(reports)
        .window(tumbling(minute), by=[*_SEGMENT, "vid"])
        .agg(speed=mean("speed"))
        .window(tumbling(minute), by=_SEGMENT)
        .agg(speed=mean("speed"))
        .window(sliding(5 * minute, minute), by=_SEGMENT)
        .agg(lav=mean("speed"))
    )


def vehicles(reports: Stream | None = None, minute: int = 60) -> Stream:
    """Counts the vehicles that report from each segment in a minute; one that reports twice counts once.

    Args:
        reports: The position reports, if they are shared with other pipelines or come out of order by more.
        minute: The length of a minute in seconds.

    Returns:
        The pipeline, with the columns window_start, window_end, xway, dir, seg and vehicles.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.vehicles().schema.names
        ['window_start', 'window_end', 'xway', 'dir', 'seg', 'vehicles']
    """
    return _or_own(reports).window(tumbling(minute), by=_SEGMENT).agg(vehicles=count_distinct("vid"))


def tolls(reports: Stream | None = None, minute: int = 60) -> Stream:
    """Computes the toll of each segment and minute with vehicles, regardless of accidents.

    Args:
        reports: The position reports, if they are shared with other pipelines or come out of order by more.
        minute: The length of a minute in seconds.

    Returns:
        The pipeline, with the columns window_start, window_end, xway, dir, seg, lav, vehicles and toll.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.tolls().schema.names[-3:]
        ['lav', 'vehicles', 'toll']
    """
    crowd = col("vehicles") - 50
    toll = when((col("lav") < 40) & (crowd > 0)).then(crowd * crowd * 2).otherwise(0)
    shared = _or_own(reports)
    return (
        lav(shared, minute)
        .join(vehicles(shared, minute), window=tumbling(minute), on=_SEGMENT)
        .with_columns(toll=toll)
    )


def query(minute: int = 60, delay: int = 2) -> Stream:
    """Builds the benchmark's query: the toll of each segment and minute, which is 0 near accidents.

    An accident counts in the minutes in which a sliding window that reports it ends, and waives the tolls of
    its own segment and the four before it.

    Args:
        minute: The length of a minute in seconds: 60, or 40 or 20 in the variants.
        delay: By how many seconds rows may come out of order.

    Returns:
        The pipeline, with the columns window_start, window_end, xway, dir, seg, lav, vehicles, accident and
        toll.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.query().schema.names[-4:]
        ['lav', 'vehicles', 'accident', 'toll']
    """
    reports = position_reports(delay)
    found = accidents(reports, minute)
    # Segments are counted along direction 0 and against direction 1.
    waived = union(
        *(
            found.select(
                "window_end",
                "xway",
                "dir",
                seg=when(col("dir") == 0).then(col("seg") - before).otherwise(col("seg") + before),
            )
            for before in range(5)
        )
    )
    return (
        tolls(reports, minute)
        .cogroup(waived, window=tumbling(minute), by=_SEGMENT)
        .agg(
            left={"lav": max("lav"), "vehicles": max("vehicles"), "toll": max("toll")},
            right={"accidents": count()},
        )
        .filter(col("toll").is_not_null())
        .select(
            "window_start",
            "window_end",
            *_SEGMENT,
            "lav",
            "vehicles",
            accident=col("accidents") > 0,
            toll=when(col("accidents") == 0).then(col("toll")).otherwise(0),
        )
    )


def lrb1(delay: int = 2) -> Stream:
    """Builds LRB1: the segments that are slow, by the reports of the last 300 seconds, every second.

    Args:
        delay: By how many seconds rows may come out of order.

    Returns:
        The pipeline, with the columns window_start, window_end, xway, dir, seg and mean_speed: where the mean
        of all reports is below 40 miles per hour.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.lrb1().schema.names
        ['window_start', 'window_end', 'xway', 'dir', 'seg', 'mean_speed']
    """
    return (
        position_reports(delay)
        .window(sliding(300, 1), by=_SEGMENT)
        .agg(mean_speed=mean("speed"))
        .filter(col("mean_speed") < 40)
    )


def lrb2(delay: int = 2) -> Stream:
    """Builds LRB2: the number of vehicles in each segment in the last 30 seconds, every second.

    The reports of a vehicle in a segment are counted first, and then the vehicles that have a count in the
    same window: so one that reports twice counts once.

    Args:
        delay: By how many seconds rows may come out of order.

    Returns:
        The pipeline, with the columns window_start, window_end, xway, dir, seg and vehicles. The windows are
        those of 30 seconds.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.lrb2().schema.names
        ['window_start', 'window_end', 'xway', 'dir', 'seg', 'vehicles']
    """
    size, slide = 30, 1
    return (
        position_reports(delay)
        .window(sliding(size, slide), by=["vid", *_SEGMENT])
        .agg(reports=count())
        # One sliding window ends in each second, and its results fall into it.
        .window(tumbling(slide), by=_SEGMENT)
        .agg(vehicles=count())
        .with_columns(window_start=col("window_end") - size)
    )


def read(path: str | PathLike[str]) -> "pyarrow.Table":
    """Reads the position reports of a published file: `lrb-data-small-ht.txt`, as LightSaber has it.

    A line has time, vehicle, speed, highway, lane, direction and position with tabs between them, in the
    units of `schema`. The segment follows from the position; the type is 0, and what only other rows use is
    -1.

    Args:
        path: The file. If its name ends in ".gz", it is unpacked.

    Returns:
        The rows in the order of the file, which is that of time.

    Raises:
        ImportError: There is no pyarrow.
        ValueError: A line is something else than a position report.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import penstock as ps
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "reports.txt")
        ...     written = file.write_text("1 107 32 0 0 0 53320")
        ...     ps.workloads.lrb.read(file).to_pylist()[0]["seg"]
        10
    """
    return read_fields(path, schema(), _report, fields=7)


def _report(fields: Sequence[str]) -> tuple[object, ...]:
    time, vid, speed, xway, lane, direction, pos = map(int, fields[:7])
    absent = (-1,) * 6
    return time, _POSITION_REPORT, vid, speed, xway, lane, direction, pos // _SEGMENT_FEET, pos, *absent


def _or_own(reports: Stream | None) -> Stream:
    return position_reports() if reports is None else reports
