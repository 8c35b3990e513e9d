"""NEXMark: persons, their auctions and the bids on them.

There are three streams, "person", "auction" and "bid", whose rows may come up to four seconds out of order
unless a query is told otherwise. The queries are those of the Flink suite, of which these are here:

* q0 passes the bids on, q1 converts their prices, q2 keeps those of some auctions: row by row.
* q3 joins auctions of one category with sellers of some states. In SQL it keeps both streams for ever; here
  they meet within windows.
* q5 finds the auctions with the most bids, q7 the highest bids: each window against its own maximum.
* q8 finds the persons who opened an auction in the window in which they joined.
* q11 counts the bids of a person in each session of activity.

Results of windows carry the columns window_start and window_end. A row that lies on the boundary of two
windows belongs to the later one.
"""

from decimal import Decimal
from typing import Literal

from penstock import _penstock
from penstock.expr.aggregates import count, max
from penstock.expr.durations import Duration
from penstock.expr.expression import col
from penstock.io.schemas import read_schema
from penstock.plan.declaration import stream
from penstock.plan.stream import Stream
from penstock.plan.windows import session, sliding, tumbling
from penstock.workloads.generated import Generated, generate_table

__all__ = [
    "auction",
    "bid",
    "generate",
    "person",
    "q0",
    "q1",
    "q2",
    "q3",
    "q5",
    "q7",
    "q8",
    "q11",
    "rows_of",
    "schema",
]

_DELAY = "4s"

# The events of the three streams are numbered together, and of 50 in a row these belong to each.
_TURNS = {"person": range(1), "auction": range(1, 4), "bid": range(4, 50)}

_COLUMNS = {
    "person": {
        "id": "int64",
        "name": "string",
        "email_address": "string",
        "credit_card": "string",
        "city": "string",
        "state": "string",
        "date_time": "timestamp[ms]",
        "extra": "string",
    },
    "auction": {
        "id": "int64",
        "item_name": "string",
        "description": "string",
        "initial_bid": "int64",
        "reserve": "int64",
        "date_time": "timestamp[ms]",
        "expires": "timestamp[ms]",
        "seller": "int64",
        "category": "int64",
        "extra": "string",
    },
    "bid": {
        "auction": "int64",
        "bidder": "int64",
        "price": "int64",
        "channel": "string",
        "url": "string",
        "date_time": "timestamp[ms]",
        "extra": "string",
    },
}


def generate(
    table: Literal["person", "auction", "bid"],
    rows: int,
    *,
    seed: int = 7,
    start: int = 0,
    batch_rows: int = 65536,
    rate: int = 10_000_000,
    step_every_s: int = 0,
    first_event_time_ms: int = 0,
    out_of_order_ms: int = 0,
    late_every: int = 0,
    hot_auction_ratio: int = 2,
    hot_seller_ratio: int = 4,
    hot_bidder_ratio: int = 4,
    active_people: int = 1_000,
    auctions_in_flight: int = 100,
    id_lead: int = 0,
    person_bytes: int = 200,
    auction_bytes: int = 500,
    bid_bytes: int = 100,
) -> Generated:
    """Generates rows `[start, start + rows)` of one of the streams, each of which is endless.

    Streams that are made with the same options belong together; `rows_of` says how many rows of each there
    are in the same time.

    Args:
        table: "person", "auction" or "bid".
        rows: How many rows of that stream.
        seed: Which data set.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        rate: Events of all three streams per second of event time.
        step_every_s: Every so many seconds the rate changes: 1, 2, 6 and 12 times `rate` in turn, then
            from the start again; 0 is never.
        first_event_time_ms: When the first event is, in milliseconds since 1970.
        out_of_order_ms: By how many milliseconds at most rows are moved forward or back in time.
        late_every: One row in so many is up to a minute late; 0 is none.
        hot_auction_ratio: Of so many bids all but one are on the hot auction; 1 is for no such auction.
        hot_seller_ratio: Of so many auctions all but one are by the hot seller; 1 is for no such seller.
        hot_bidder_ratio: Of so many bids all but one are by the hot bidder; 1 is for no such bidder.
        active_people: How many of the newest persons sell and bid.
        auctions_in_flight: How many of the newest auctions take bids.
        id_lead: By how many a row may refer to ids that are yet to come.
        person_bytes: How many bytes a person has on average, as far as its last column can fill them.
        auction_bytes: The same for an auction.
        bid_bytes: The same for a bid, beside channel and url.

    Returns:
        The data, to be read any number of times.

    Raises:
        ValueError: There is no such stream, or an option is out of bounds.

    Example:
        >>> import penstock as ps
        >>> nexmark = ps.workloads.nexmark
        >>> nexmark.q2().run(nexmark.generate("bid", 1000)).rows_in
        1000
    """
    return generate_table(
        "nexmark",
        table,
        rows,
        seed,
        start,
        batch_rows,
        rate=rate,
        step_every_s=step_every_s,
        first_event_time_ms=first_event_time_ms,
        out_of_order_ms=out_of_order_ms,
        late_every=late_every,
        hot_auction_ratio=hot_auction_ratio,
        hot_seller_ratio=hot_seller_ratio,
        hot_bidder_ratio=hot_bidder_ratio,
        active_people=active_people,
        auctions_in_flight=auctions_in_flight,
        id_lead=id_lead,
        person_bytes=person_bytes,
        auction_bytes=auction_bytes,
        bid_bytes=bid_bytes,
    )


def rows_of(table: Literal["person", "auction", "bid"], events: int) -> int:
    """Counts how many of the first events belong to a stream: one in 50 is a person, three are auctions.

    Args:
        table: "person", "auction" or "bid".
        events: How many events of all three streams.

    Returns:
        How many rows `generate` makes of that stream, in the same time.

    Raises:
        ValueError: There is no such stream, or there are fewer than no events.

    Example:
        >>> import penstock as ps
        >>> [ps.workloads.nexmark.rows_of(table, 1000) for table in ("person", "auction", "bid")]
        [20, 60, 920]
    """
    if table not in _TURNS:
        raise ValueError(f"a stream of nexmark is {', '.join(_TURNS)}, not {table!r}")
    if events < 0:
        raise ValueError(f"events must be at least 0, got {events}")
    rounds, left = divmod(events, 50)
    return rounds * len(_TURNS[table]) + sum(turn < left for turn in _TURNS[table])


def schema(name: Literal["person", "auction", "bid"]) -> _penstock.Schema:
    """Returns the columns of one of the streams.

    Args:
        name: "person", "auction" or "bid".

    Returns:
        An Arrow schema with `names` and `types`.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.schema("bid").names
        ['auction', 'bidder', 'price', 'channel', 'url', 'date_time', 'extra']
    """
    return read_schema(_COLUMNS[name])


def person(delay: Duration = _DELAY) -> Stream:
    """Declares the stream of persons who join.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.person().time
        'date_time'
    """
    return stream(schema("person"), time="date_time", delay=delay, name="person")


def auction(delay: Duration = _DELAY) -> Stream:
    """Declares the stream of auctions that open.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.auction().time
        'date_time'
    """
    return stream(schema("auction"), time="date_time", delay=delay, name="auction")


def bid(delay: Duration = _DELAY) -> Stream:
    """Declares the stream of bids.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.bid().time
        'date_time'
    """
    return stream(schema("bid"), time="date_time", delay=delay, name="bid")


def q0(delay: Duration = _DELAY) -> Stream:
    """Pass through: the bids as they are.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q0().schema.names
        ['auction', 'bidder', 'price', 'date_time', 'extra']
    """
    return bid(delay).select("auction", "bidder", "price", "date_time", "extra")


def q1(delay: Duration = _DELAY) -> Stream:
    """Builds Q1, currency conversion: the bids, with prices in euros instead of dollars, as exact decimals.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q1().schema.names
        ['auction', 'bidder', 'price', 'date_time', 'extra']
    """
    euros = col("price") * Decimal("0.908")
    return bid(delay).select("auction", "bidder", euros.alias("price"), "date_time", "extra")


def q2(delay: Duration = _DELAY) -> Stream:
    """Builds Q2, selection: the bids on every 123rd auction.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q2().schema.names
        ['auction', 'price']
    """
    return bid(delay).filter(col("auction") % 123 == 0).select("auction", "price")


def q3(window: Duration = "10s", delay: Duration = _DELAY) -> Stream:
    """Builds Q3, local item suggestion: who sells in category 10 in Oregon, Idaho or California.

    Args:
        window: How long the tumbling windows are in which a person and an auction meet.
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "auction" and "person": an auction gives a row if its seller joined in the window
        in which it opened.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q3().schema.names
        ['window_start', 'window_end', 'name', 'city', 'state', 'id']
    """
    auctions = auction(delay).filter(col("category") == 10).select("date_time", "id", "seller")
    sellers = person(delay).filter(col("state").is_in(["OR", "ID", "CA"]))
    return auctions.join(
        sellers.select("date_time", "name", "city", "state", seller="id"),
        window=tumbling(window),
        on="seller",
    ).select("window_start", "window_end", "name", "city", "state", "id")


def q5(delay: Duration = _DELAY) -> Stream:
    """Builds Q5, hot items: the auctions with the most bids in ten seconds, every two seconds, with ties.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q5().schema.names
        ['window_start', 'window_end', 'auction', 'num']
    """
    counts = bid(delay).window(sliding("10s", "2s"), by="auction").agg(num=count())
    # One sliding window ends in each two seconds, and its results fall into them.
    ends = tumbling("2s")
    most = counts.window(ends).agg(num=max("num"))
    return (
        counts.with_columns(begin=col("window_start"))
        .join(most, window=ends, on="num")
        .select(col("begin").alias("window_start"), "window_end", "auction", "num")
    )


def q7(delay: Duration = _DELAY) -> Stream:
    """Builds Q7, highest bid: the bids with the highest price of each ten seconds, with ties.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q7().schema.names
        ['window_start', 'window_end', 'auction', 'price', 'bidder', 'date_time', 'extra']
    """
    bids = bid(delay).select("auction", "price", "bidder", "date_time", "extra")
    window = tumbling("10s")
    highest = bids.window(window).agg(price=max("price"))
    return bids.join(highest, window=window, on="price").select(
        "window_start", "window_end", "auction", "price", "bidder", "date_time", "extra"
    )


def q8(delay: Duration = _DELAY) -> Stream:
    """Builds Q8, monitor new users: the persons who opened an auction in the ten seconds of joining.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "auction" and "person": a person gives one row, however many auctions there are.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q8().schema.names
        ['window_start', 'window_end', 'id', 'name']
    """
    window = tumbling("10s")
    joined = person(delay).window(window, by=["id", "name"]).agg()
    sellers = auction(delay).window(window, by=col("seller").alias("id")).agg()
    return joined.join(sellers, window=window, on="id")


def q11(delay: Duration = _DELAY) -> Stream:
    """Builds Q11, user sessions: the bids of each person, until a pause of ten seconds.

    Args:
        delay: By how much rows may come out of order.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q11().schema.names
        ['window_start', 'window_end', 'bidder', 'bid_count']
    """
    return bid(delay).window(session("10s"), by="bidder").agg(bid_count=count())
