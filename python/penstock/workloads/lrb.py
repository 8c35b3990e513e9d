"""LRB, Linear Road: accidents and tolls on expressways, from the position reports of the cars.

An expressway has two directions of 100 segments, which are a mile long; a car reports its speed and place
every 30 seconds. Time is in whole seconds. The three branches of the query read one stream of reports:

* `accidents`: two or more vehicles that each stood at the same place in four reports or more;
* `lav`, the latest average velocity: of the last five minutes of a segment;
* `vehicles`: how many there were in a segment in a minute.

The last two are joined to the tolls of each minute and segment (`tolls`). A toll is due where more than 50
vehicles go slower than 40 miles per hour on average. `query` waives it where an accident lies in the segment
or up to four segments downstream.

A "minute" is a parameter: 60 seconds, or 40 or 20 in the variants 40/80/20 and 20/40/10. The sliding windows
of accidents are two minutes long, and one begins every half minute. As four reports have to fit into two
minutes, cars must report every half minute, not every 30 seconds, for the variants to find accidents.
"""

from penstock import _penstock
from penstock._arguments import read_schema
from penstock.aggregates import count, count_distinct, max, mean
from penstock.combining import union
from penstock.conditional import when
from penstock.expr import col
from penstock.stream import Stream, stream
from penstock.windows import sliding, tumbling

__all__ = ["accidents", "lav", "position_reports", "query", "schema", "tolls", "vehicles"]

_POSITION_REPORT = 0
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


def schema() -> _penstock.Schema:
    """The columns of the input.

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.lrb.schema().names[:4]
        ['time', 'type', 'vid', 'speed']
    """
    return read_schema(_COLUMNS)


def position_reports(delay: int = 2) -> Stream:
    """The stream that all branches read. Given to several of them, it is read once.

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
    """Where vehicles stand: two or more with four reports each of the same place and lane, at speed 0.

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
    """The latest average velocity of each segment: the mean of its values in the last five minutes.

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
    """How many vehicles report from each segment in a minute; one that reports twice counts once.

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
    """The toll of each segment and minute with vehicles, whether or not there are accidents.

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
    """The benchmark's query: the toll of each segment and minute, which is 0 near accidents.

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


def _or_own(reports: Stream | None) -> Stream:
    return position_reports() if reports is None else reports
