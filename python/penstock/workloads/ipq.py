"""IPQ, the queries of the Cameo paper: ad revenue from many sources, and logs to join it with.

There are two streams, "revenue" and "logs", and any number of sources of each. The queries:

* `ipq1`: the sum of the revenue per key, in tumbling windows;
* `ipq2`: the same, in sliding windows;
* `ipq3`: the number of rows by another key;
* `ipq4`: how many pairs the rows of both streams make, per key.

Windows are of one second, as in jobs that must answer soon; those of bulk jobs are of ten.
"""

from typing import Literal

from penstock import _penstock
from penstock.aggregates import count, sum
from penstock.durations import Duration
from penstock.stream import Stream, stream
from penstock.windows import sliding, tumbling
from penstock.workloads.generated import Generated

__all__ = ["generate", "ipq1", "ipq2", "ipq3", "ipq4", "logs", "revenue", "schema"]


def generate(
    table: Literal["revenue", "logs"],
    rows: int,
    *,
    seed: int = 7,
    start: int = 0,
    batch_rows: int = 65536,
    source: int = 0,
    sources: int = 8,
    rate: int = 1_000,
    variable: bool = False,
    skew: int = 1,
    keys: int = 1_000,
    zipf: float = 0.0,
    out_of_order_ms: int = 0,
    late_every: int = 0,
) -> Generated:
    """Rows `[start, start + rows)` of one source of one of the streams, each of which is endless.

    Args:
        table: "revenue" or "logs".
        rows: How many rows.
        seed: Which data set.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        source: Which source, from 0 on.
        sources: How many sources there are.
        rate: Rows per second of event time and source, on average.
        variable: Whether the volume of a source changes from second to second, by Pareto's law.
        skew: How many times as much the first source sends as the last; 1 is for sources that are alike.
        keys: How many keys there are.
        zipf: Skew of the keys: 0 is uniform, larger values make a few keys ever more frequent.
        out_of_order_ms: By how many milliseconds at most rows are moved forward or back in time.
        late_every: One row in so many is up to a minute late; 0 is none.

    Returns:
        The data, to be read any number of times.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ipq.ipq1().run(ps.workloads.ipq.generate("revenue", 1000)).rows_in
        1000
    """
    return Generated(
        _penstock.workload,
        name="ipq",
        table=table,
        rows=rows,
        seed=seed,
        start=start,
        batch_rows=batch_rows,
        options={
            "source": source,
            "sources": sources,
            "rate": rate,
            "variable": variable,
            "skew": skew,
            "keys": keys,
            "zipf": zipf,
            "out_of_order_ms": out_of_order_ms,
            "late_every": late_every,
        },
    )


def schema(table: Literal["revenue", "logs"]) -> _penstock.Schema:
    """The columns of one of the streams.

    Args:
        table: "revenue" or "logs".

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ipq.schema("revenue").names
        ['timestamp', 'key', 'other_key', 'revenue']
        >>> ps.workloads.ipq.schema("logs").names
        ['timestamp', 'key', 'value']
    """
    return _penstock.workload_schema("ipq", table)


def revenue(delay: Duration = "2s") -> Stream:
    """The stream of the ad revenue.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ipq.revenue().time
        'timestamp'
    """
    return stream(schema("revenue"), time="timestamp", delay=delay, name="revenue")


def logs(delay: Duration = "2s") -> Stream:
    """The stream of the logs.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ipq.logs().time
        'timestamp'
    """
    return stream(schema("logs"), time="timestamp", delay=delay, name="logs")


def ipq1(window: Duration = "1s", delay: Duration = "2s") -> Stream:
    """IPQ1: the sum of the revenue per key, in tumbling windows.

    Args:
        window: How long the windows are.
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "revenue", with the columns window_start, window_end, key and total_revenue.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ipq.ipq1().schema.names
        ['window_start', 'window_end', 'key', 'total_revenue']
    """
    return revenue(delay).window(tumbling(window), by="key").agg(total_revenue=sum("revenue"))


def ipq2(window: Duration = "1s", slide: Duration = "500ms", delay: Duration = "2s") -> Stream:
    """IPQ2: the sum of the revenue per key, in sliding windows.

    Args:
        window: How long the windows are.
        slide: From the start of one window to that of the next. The paper does not give it.
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "revenue", with the columns window_start, window_end, key and total_revenue.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ipq.ipq2(window="10s", slide="5s").schema.names
        ['window_start', 'window_end', 'key', 'total_revenue']
    """
    return revenue(delay).window(sliding(window, slide), by="key").agg(total_revenue=sum("revenue"))


def ipq3(window: Duration = "1s", delay: Duration = "2s") -> Stream:
    """IPQ3: the number of rows of each value of the other key, in tumbling windows.

    Args:
        window: How long the windows are.
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "revenue", with the columns window_start, window_end, other_key and events.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ipq.ipq3().schema.names
        ['window_start', 'window_end', 'other_key', 'events']
    """
    return revenue(delay).window(tumbling(window), by="other_key").agg(events=count())


def ipq4(window: Duration = "1s", delay: Duration = "2s") -> Stream:
    """IPQ4: how many pairs of revenue and logs have the same key in the same window.

    Both streams are joined in tumbling windows, and the pairs of a window are counted per key.

    Args:
        window: How long the windows are.
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "revenue" and "logs", with the columns window_start, window_end, key and pairs. A
        key that only one of the streams has in a window gives no row.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ipq.ipq4().schema.names
        ['window_start', 'window_end', 'key', 'pairs']
    """
    windows = tumbling(window)
    return (
        revenue(delay)
        .select("timestamp", "key")
        .join(logs(delay).select("timestamp", "key"), window=windows, on="key")
        .window(windows, by="key")
        .agg(pairs=count())
    )
