"""NEXMark: persons, their auctions and the bids on them.

There are three streams, "person", "auction" and "bid", whose rows may come up to four seconds out of order.
The queries are those of the Flink suite, of which these are here:

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
from penstock._arguments import read_schema
from penstock.aggregates import count, max
from penstock.durations import Duration
from penstock.expr import col
from penstock.stream import Stream, stream
from penstock.windows import session, sliding, tumbling

__all__ = ["auction", "bid", "person", "q0", "q1", "q2", "q3", "q5", "q7", "q8", "q11", "schema"]

_DELAY = "4s"

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


def schema(name: Literal["person", "auction", "bid"]) -> _penstock.Schema:
    """The columns of one of the streams.

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


def person() -> Stream:
    """The stream of the persons who join.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.person().time
        'date_time'
    """
    return stream(schema("person"), time="date_time", delay=_DELAY, name="person")


def auction() -> Stream:
    """The stream of the auctions that open.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.auction().time
        'date_time'
    """
    return stream(schema("auction"), time="date_time", delay=_DELAY, name="auction")


def bid() -> Stream:
    """The stream of the bids.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.bid().time
        'date_time'
    """
    return stream(schema("bid"), time="date_time", delay=_DELAY, name="bid")


def q0() -> Stream:
    """Pass through: the bids as they are.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q0().schema.names
        ['auction', 'bidder', 'price', 'date_time', 'extra']
    """
    return bid().select("auction", "bidder", "price", "date_time", "extra")


def q1() -> Stream:
    """Currency conversion: the bids, with prices in euros instead of dollars, as exact decimals.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q1().schema.names
        ['auction', 'bidder', 'price', 'date_time', 'extra']
    """
    euros = col("price") * Decimal("0.908")
    return bid().select("auction", "bidder", euros.alias("price"), "date_time", "extra")


def q2() -> Stream:
    """Selection: the bids on every 123rd auction.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q2().schema.names
        ['auction', 'price']
    """
    return bid().filter(col("auction") % 123 == 0).select("auction", "price")


def q3(window: Duration = "10s") -> Stream:
    """Local item suggestion: who sells in category 10 in Oregon, Idaho or California.

    Args:
        window: How long the tumbling windows are in which a person and an auction meet.

    Returns:
        The pipeline over "auction" and "person": an auction gives a row if its seller joined in the window
        in which it opened.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q3().schema.names
        ['window_start', 'window_end', 'name', 'city', 'state', 'id']
    """
    auctions = auction().filter(col("category") == 10).select("date_time", "id", "seller")
    sellers = person().filter(col("state").is_in(["OR", "ID", "CA"]))
    return auctions.join(
        sellers.select("date_time", "name", "city", "state", seller="id"),
        window=tumbling(window),
        on="seller",
    ).select("window_start", "window_end", "name", "city", "state", "id")


def q5() -> Stream:
    """Hot items: the auctions with the most bids in the last ten seconds, every two seconds; all that tie.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q5().schema.names
        ['window_start', 'window_end', 'auction', 'num']
    """
    counts = bid().window(sliding("10s", "2s"), by="auction").agg(num=count())
    # One sliding window ends in each two seconds, and its results fall into them.
    ends = tumbling("2s")
    most = counts.window(ends).agg(num=max("num"))
    return (
        counts.with_columns(begin=col("window_start"))
        .join(most, window=ends, on="num")
        .select(col("begin").alias("window_start"), "window_end", "auction", "num")
    )


def q7() -> Stream:
    """Highest bid: the bids with the highest price of each ten seconds; all that tie.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q7().schema.names
        ['window_start', 'window_end', 'auction', 'price', 'bidder', 'date_time', 'extra']
    """
    bids = bid().select("auction", "price", "bidder", "date_time", "extra")
    window = tumbling("10s")
    highest = bids.window(window).agg(price=max("price"))
    return bids.join(highest, window=window, on="price").select(
        "window_start", "window_end", "auction", "price", "bidder", "date_time", "extra"
    )


def q8() -> Stream:
    """Monitor new users: the persons who opened an auction in the ten seconds in which they joined.

    Returns:
        The pipeline over "auction" and "person": a person gives one row, however many auctions there are.

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q8().schema.names
        ['window_start', 'window_end', 'id', 'name']
    """
    window = tumbling("10s")
    joined = person().window(window, by=["id", "name"]).agg()
    sellers = auction().window(window, by=col("seller").alias("id")).agg()
    return joined.join(sellers, window=window, on="id")


def q11() -> Stream:
    """User sessions: the bids of each person, until a pause of ten seconds.

    Returns:
        The pipeline over "bid".

    Example:
        >>> import penstock as ps
        >>> ps.workloads.nexmark.q11().schema.names
        ['window_start', 'window_end', 'bidder', 'bid_count']
    """
    return bid().window(session("10s"), by="bidder").agg(bid_count=count())
