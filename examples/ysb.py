"""The Yahoo! streaming benchmark: count the views of each advertising campaign in windows of ten seconds.

The events are generated, a little out of order, with a few rows that come far too late. Nothing else has to
be installed. Run it with `python examples/ysb.py`.
"""

import warnings

import penstock as ps
from penstock import col

ROWS = 300_000


def main() -> None:
    events = ps.workloads.ysb.generate(ROWS, rate=10_000, out_of_order_ms=50, late_every=1_000)

    views_only = ps.stream(events.schema, time="event_time", delay="1s").filter(col("event_type") == 0)
    views = (
        views_only.select("ad_id", "event_time")
        .lookup(ps.workloads.ysb.campaigns(), on="ad_id")
        .window(ps.tumbling("10s"), by="campaign_id")
        .agg(views=ps.count(), first=ps.min("event_time"), last=ps.max("event_time"))
    )
    print(views.explain())
    print()

    # Some rows are late on purpose: the counters say so, no warning is needed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.LateRowsWarning)
        result = views.run(events)

    busiest = sorted(
        result.to_pylist(), key=lambda row: (-row["views"], row["window_start"], row["campaign_id"])
    )
    for row in busiest[:5]:
        print(f"{row['window_start']}  campaign {row['campaign_id']:>3}  {row['views']} views")
    print(f"{result.rows_in} rows in, {result.rows_filtered} were no views, {result.rows_late} came too late")

    # Every view is in exactly one window of one campaign, or was late.
    all_views = len(views_only.run(events))
    assert result.rows_in == ROWS
    assert result.rows_in - result.rows_filtered == all_views
    assert sum(row["views"] for row in busiest) + result.rows_late == all_views
    assert result.rows_late > 0
    for row in busiest:
        assert row["window_start"] <= row["first"] <= row["last"] < row["window_end"]


if __name__ == "__main__":
    main()
