"""YSB, the Yahoo! streaming benchmark: advertising events, counted per campaign and window.

A row is an event (view, click or purchase) of a user with an ad; each of 100 campaigns has 10 ads. The query
keeps the views, looks up the campaign of the ad, and counts per campaign in windows of ten seconds.

Ids, types and addresses are numbers, or with `strings=True` text as in the original benchmark: UUIDs, words
and dotted addresses. Rows, campaigns and query have to be of the same kind.
"""

from penstock import _penstock
from penstock.expr.aggregates import count
from penstock.expr.durations import Duration
from penstock.expr.expression import col
from penstock.io.protocols import ArrowData
from penstock.plan.declaration import stream
from penstock.plan.stream import Stream
from penstock.plan.windows import tumbling
from penstock.workloads.generated import Generated, generate_table

__all__ = ["VIEW", "campaigns", "generate", "query", "schema"]

VIEW = 0
"""The value of `event_type` that marks a view."""


def generate(
    rows: int,
    *,
    seed: int = 7,
    start: int = 0,
    batch_rows: int = 65536,
    strings: bool = False,
    rate: int = 1_000_000,
    step_every_s: int = 0,
    out_of_order_ms: int = 0,
    late_every: int = 0,
    zipf: float = 0.0,
    view_share: float = 1 / 3,
    switch_every_s: int = 0,
) -> Generated:
    """Generates rows `[start, start + rows)` of the endless data set.

    Args:
        rows: How many rows.
        seed: Which data set. `campaigns` needs the same one.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        strings: Text instead of numbers: the same rows, in other words.
        rate: Rows per second of event time.
        step_every_s: Every so many seconds the rate changes: 1, 2, 6 and 12 times `rate` in turn, then
            from the start again; 0 is never.
        out_of_order_ms: By how many milliseconds at most rows are moved forward or back in time.
        late_every: One row in so many is up to a minute late; 0 is none.
        zipf: Skew of the ads: 0 is uniform, larger values make a few ads ever more frequent.
        view_share: The share of views among the events.
        switch_every_s: In every second period of so many seconds views are twice as likely; 0 is never.

    Returns:
        The data, to be read any number of times.

    Raises:
        ValueError: An option is out of bounds.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ysb.query().run(ps.workloads.ysb.generate(1000)).rows_in
        1000
    """
    return generate_table(
        _workload(strings),
        "events",
        rows,
        seed,
        start,
        batch_rows,
        rate=rate,
        step_every_s=step_every_s,
        out_of_order_ms=out_of_order_ms,
        late_every=late_every,
        zipf=zipf,
        view_share=view_share,
        switch_every_s=switch_every_s,
    )


def schema(strings: bool = False) -> _penstock.Schema:
    """Returns the columns of the events.

    Args:
        strings: Text instead of numbers.

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ysb.schema().names[0]
        'event_time'
        >>> ps.workloads.ysb.schema(strings=True).types[1]
        'string'
    """
    return _penstock.workload_schema(_workload(strings), "events")


def campaigns(seed: int = 7, strings: bool = False) -> Generated:
    """Returns the table of the campaign that each ad belongs to.

    Args:
        seed: Which data set; the same as for `generate`.
        strings: Text instead of numbers; the same as for `generate`.

    Returns:
        A table of 1000 rows with the columns ad_id and campaign_id, to be read any number of times.

    Raises:
        ValueError: The seed is negative or above 2^64 - 1.

    Example:
        >>> import penstock as ps
        >>> len(ps.stream({"ad_id": "int64", "campaign_id": "int64"}).run(ps.workloads.ysb.campaigns()))
        1000
    """
    return Generated(_penstock.ysb_campaigns, seed=seed, strings=strings)


def query(delay: Duration = "2s", campaigns: ArrowData | None = None, strings: bool = False) -> Stream:
    """Builds the benchmark's query: views per campaign in windows of ten seconds.

    Args:
        delay: By how much rows may come out of order.
        campaigns: The table of campaigns, if not the one of the default seed.
        strings: The rows have text instead of numbers, and so have the campaigns.

    Returns:
        The pipeline, with the columns window_start, window_end, campaign_id and views.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.ysb.query().schema.names
        ['window_start', 'window_end', 'campaign_id', 'views']
    """
    table = _DEFAULT_CAMPAIGNS[strings] if campaigns is None else campaigns
    return (
        stream(schema(strings), time="event_time", delay=delay)
        .filter(col("event_type") == ("view" if strings else VIEW))
        .select("ad_id", "event_time")
        .lookup(table, on="ad_id")
        .window(tumbling("10s"), by="campaign_id")
        .agg(views=count())
    )


def _workload(strings: bool) -> str:
    return "ysb-strings" if strings else "ysb"


_DEFAULT_CAMPAIGNS = {strings: campaigns(strings=strings) for strings in (False, True)}
