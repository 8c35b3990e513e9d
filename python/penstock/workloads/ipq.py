"""IPQ, the queries of the Cameo paper: ad revenue from many sources, and logs to join it with.

There are two streams, "revenue" and "logs", and any number of sources of each. The queries:

* `ipq1`: the sum of the revenue per key, in tumbling windows;
* `ipq2`: the same, in sliding windows;
* `ipq3`: the number of rows by another key;
* `ipq4`: how many pairs the rows of both streams make, per key.

Windows are of one second, as in jobs that must answer soon; those of bulk jobs are of ten. `tenants` gives a
mix of such jobs, each with its plan and the data of its sources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock import _penstock
from penstock.expr.aggregates import count, sum
from penstock.expr.durations import Duration
from penstock.plan.combining import union
from penstock.plan.declaration import stream
from penstock.plan.stream import Stream
from penstock.plan.windows import Window, sliding, tumbling
from penstock.workloads.generated import Generated, generate_table

__all__ = ["Job", "generate", "ipq1", "ipq2", "ipq3", "ipq4", "logs", "revenue", "schema", "tenants"]


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
    """Generates rows `[start, start + rows)` of one source of one of the streams, each of which is endless.

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
    return generate_table(
        "ipq",
        table,
        rows,
        seed,
        start,
        batch_rows,
        source=source,
        sources=sources,
        rate=rate,
        variable=variable,
        skew=skew,
        keys=keys,
        zipf=zipf,
        out_of_order_ms=out_of_order_ms,
        late_every=late_every,
    )


def schema(table: Literal["revenue", "logs"]) -> _penstock.Schema:
    """Returns the columns of one of the streams.

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
    """Declares the stream of the ad revenue.

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
    """Declares the stream of the logs.

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
    """Builds IPQ1: the sum of the revenue per key, in tumbling windows.

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
    return _sums(revenue(delay), tumbling(window))


def ipq2(window: Duration = "1s", slide: Duration = "500ms", delay: Duration = "2s") -> Stream:
    """Builds IPQ2: the sum of the revenue per key, in sliding windows.

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
    return _sums(revenue(delay), sliding(window, slide))


def ipq3(window: Duration = "1s", delay: Duration = "2s") -> Stream:
    """Builds IPQ3: the number of rows of each value of the other key, in tumbling windows.

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
    return _counts(revenue(delay), tumbling(window))


def ipq4(window: Duration = "1s", delay: Duration = "2s") -> Stream:
    """Builds IPQ4: the number of pairs of revenue and logs with the same key in the same window.

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
    return _pairs(revenue(delay), logs(delay), tumbling(window))


@dataclass(frozen=True)
class Job:
    """A job of mixed tenants: see `tenants`.

    Attributes:
        query: What it computes: "ipq1", "ipq2", "ipq3" or "ipq4".
        urgency: "latency-sensitive" where it must answer soon, "bulk" where it has a lot to do.
        window_ms: How long its windows are, in milliseconds.
        message_rows: Rows of a message, which is a batch of a source. The last one may be shorter.
        target_ms: How long after the last row of a window its result may come, in milliseconds.
        plan: The query, over all sources of the job together.
        sources: What each source sends, by the name that the plan knows it by.

    Example:
        >>> import penstock as ps
        >>> job = ps.workloads.ipq.tenants(seconds=3, sources=2)[0]
        >>> job.query, job.urgency, job.window_ms, job.target_ms
        ('ipq1', 'latency-sensitive', 1000, 800)
        >>> list(job.sources)
        ['revenue0', 'revenue1']
        >>> job.plan.run(job.sources).rows_in
        6000
    """

    query: Literal["ipq1", "ipq2", "ipq3", "ipq4"]
    urgency: Literal["latency-sensitive", "bulk"]
    window_ms: int
    message_rows: int
    target_ms: int
    plan: Stream
    sources: Mapping[str, Generated]


def tenants(
    *,
    latency_sensitive: int = 4,
    bulk: int = 8,
    seed: int = 7,
    seconds: int = 60,
    sources: int = 8,
    bulk_rate: int = 10_000,
    bulk_skew: int = 1,
) -> list[Job]:
    """Builds the jobs of mixed tenants: some with a latency target, beside some with a high load only.

    Jobs that are latency-sensitive have windows of one second, sources that send a message of 1000 rows every
    second, and a target of 800 ms. Bulk jobs have windows of ten seconds, sources whose volume changes from
    second to second by Pareto's law, and two hours to answer. The queries of each kind take turns. No two
    jobs read the same rows, and a job stays the same however many others there are.

    Args:
        latency_sensitive: How many jobs must answer soon. They come first.
        bulk: How many bulk jobs there are.
        seed: Which data set.
        seconds: How long the sources send, in event time.
        sources: How many sources each job has; "ipq4" has as many of either stream.
        bulk_rate: Rows per second and source of a bulk job, on average.
        bulk_skew: How many times as much the first source of a bulk job sends as the last.

    Returns:
        The jobs. Rows come in order within a source, and the plans wait for nothing but the slowest source.

    Raises:
        ValueError: An option is out of bounds.

    Example:
        >>> import penstock as ps
        >>> jobs = ps.workloads.ipq.tenants(latency_sensitive=4, bulk=2, seconds=10)
        >>> [(job.query, job.urgency) for job in jobs[3:]]
        [('ipq4', 'latency-sensitive'), ('ipq1', 'bulk'), ('ipq2', 'bulk')]
        >>> with ps.Engine(workers=1) as engine:
        ...     queries = [engine.submit(job.plan, source=job.sources, sink="collect") for job in jobs]
        ...     rows = [query.result().rows_in for query in queries]
        >>> rows[:4]
        [80000, 80000, 80000, 160000]
    """
    made = _penstock.ipq_tenants(
        seed,
        seconds,
        {
            "latency_sensitive": latency_sensitive,
            "bulk": bulk,
            "sources": sources,
            "bulk_rate": bulk_rate,
            "bulk_skew": bulk_skew,
        },
    )
    return [_job(*described) for described in made]


def _job(
    query: Literal["ipq1", "ipq2", "ipq3", "ipq4"],
    urgency: Literal["latency-sensitive", "bulk"],
    window_ms: int,
    message_rows: int,
    target_ms: int,
    seed: int,
    options: Mapping[str, Any],
    rows: Sequence[int],
) -> Job:
    tables: tuple[Literal["revenue", "logs"], ...] = ("revenue", "logs") if query == "ipq4" else ("revenue",)
    data = {
        f"{table}{source}": generate(
            table, count, seed=seed, batch_rows=message_rows, source=source, **options
        )
        for table in tables
        for source, count in enumerate(rows)
    }
    merged = {table: _merged(table, len(rows)) for table in tables}
    window = tumbling(f"{window_ms}ms")
    plan = {
        "ipq1": lambda: _sums(merged["revenue"], window),
        "ipq2": lambda: _sums(merged["revenue"], sliding(f"{window_ms}ms", f"{window_ms // 2}ms")),
        "ipq3": lambda: _counts(merged["revenue"], window),
        "ipq4": lambda: _pairs(merged["revenue"], merged["logs"], window),
    }[query]()
    return Job(query, urgency, window_ms, message_rows, target_ms, plan, data)


def _merged(table: Literal["revenue", "logs"], sources: int) -> Stream:
    """Merges the rows of all sources of a stream. Each source is in order, so that none is waited for."""
    return union(
        *(stream(schema(table), time="timestamp", name=f"{table}{source}") for source in range(sources))
    )


def _sums(rows: Stream, window: Window) -> Stream:
    return rows.window(window, by="key").agg(total_revenue=sum("revenue"))


def _counts(rows: Stream, window: Window) -> Stream:
    return rows.window(window, by="other_key").agg(events=count())


def _pairs(revenue: Stream, logs: Stream, window: Window) -> Stream:
    keys = logs.select("timestamp", "key")
    joined = revenue.select("timestamp", "key").join(keys, window=window, on="key")
    return joined.window(window, by="key").agg(pairs=count())
