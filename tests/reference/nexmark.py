"""Events of an auction house, and the answers of the NEXMark queries by SQL."""

from __future__ import annotations

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reference.engine import rows_of
from reference.types import Value

DELAY_MS = 4000
FIRST_ID = 1000
ACTIVE_PEOPLE, AUCTIONS_IN_FLIGHT = 1000, 100
TOP_PRICE = 100_000_000

Numbers = npt.NDArray[np.int64]


def events(count: int, seed: int, *, per_second: int = 500, hot: bool = True) -> dict[str, pa.Table]:
    """The tables "person", "auction" and "bid": of 50 events in a row 1, 3 and 46.

    They begin before 1970. Within each table rows come out of order by up to the delay. One bid in a thousand
    has the top price, so that highest bids tie. If nothing is hot, auctions with the most bids tie as well.
    """
    rng = np.random.default_rng(seed)
    number = np.arange(count, dtype=np.int64)
    times = -30_000 + number * 1000 // per_second
    last_person = number // 50
    last_auction = number // 50 * 3 + np.clip(number % 50 - 1, 0, 2)

    def words(kind: str, choices: int, rows: int) -> pa.Array:
        return pa.array(
            np.array([f"{kind} {n}" for n in range(choices)], object)[rng.integers(0, choices, rows)]
        )

    def arrival(chosen: Numbers) -> Numbers:
        moved = times[chosen] + rng.integers(0, DELAY_MS + 1, len(chosen))
        return chosen[np.argsort(moved, kind="stable")]

    def recent(last: Numbers, most: int) -> Numbers:
        return last - (rng.random(len(last)) * np.minimum(last + 1, most)).astype(np.int64)

    def partly(favourite: Numbers, others: Numbers, ratio: int) -> Numbers:
        chosen = rng.integers(0, ratio, len(others)) > 0 if hot else np.zeros(len(others), bool)
        return np.where(chosen, favourite, others)

    def at(ids: Numbers) -> pa.Array:
        return pa.array(times[ids], pa.timestamp("ms"))

    persons = arrival(number[number % 50 == 0])
    states = np.array(["OR", "ID", "CA", "WA", "AZ", "WY"], object)
    person = {
        "id": last_person[persons] + FIRST_ID,
        "name": words("name", 300, len(persons)),
        "email_address": words("address", 300, len(persons)),
        "credit_card": words("card", 300, len(persons)),
        "city": words("city", 10, len(persons)),
        "state": pa.array(states[rng.integers(0, 6, len(persons))]),
        "date_time": at(persons),
        "extra": words("extra", 50, len(persons)),
    }
    auctions = arrival(number[(number % 50 >= 1) & (number % 50 <= 3)])
    newest = last_person[auctions]
    auction = {
        "id": last_auction[auctions] + FIRST_ID,
        "item_name": words("item", 300, len(auctions)),
        "description": words("description", 300, len(auctions)),
        "initial_bid": rng.integers(1, 1000, len(auctions)),
        "reserve": rng.integers(1000, 2000, len(auctions)),
        "date_time": at(auctions),
        "expires": pa.array(times[auctions] + 20_000, pa.timestamp("ms")),
        "seller": partly(newest // 4 * 4, recent(newest, ACTIVE_PEOPLE), 4) + FIRST_ID,
        "category": rng.integers(10, 15, len(auctions)),
        "extra": words("extra", 50, len(auctions)),
    }
    bids = arrival(number[number % 50 > 3])
    prices = np.round(100 * 10 ** (6 * rng.random(len(bids)))).astype(np.int64)
    newest, opened = last_person[bids], last_auction[bids]
    bid = {
        "auction": partly(opened // 100 * 100, recent(opened, AUCTIONS_IN_FLIGHT), 2) + FIRST_ID,
        "bidder": partly(newest // 100 * 100, recent(newest, ACTIVE_PEOPLE), 4) + FIRST_ID,
        "price": np.where(rng.random(len(bids)) < 0.001, TOP_PRICE, prices),
        "channel": words("channel", 10, len(bids)),
        "url": words("url", 100, len(bids)),
        "date_time": at(bids),
        "extra": words("extra", 50, len(bids)),
    }
    return {"person": pa.table(person), "auction": pa.table(auction), "bid": pa.table(bid)}


# Bounds of windows are whole milliseconds. `floor` of a quotient is right before 1970, too.
TEN = "cast(floor(epoch_ms({}) / 10000) as bigint) * 10000"
ANSWERS = {
    "q0": "select auction, bidder, price, date_time, extra from bid",
    "q1": "select auction, bidder, cast(price * 0.908 as decimal(23, 3)) as price, date_time, extra from bid",
    "q2": "select auction, price from bid where auction % 123 = 0",
    "q3": f"""
        select {TEN.format("p.date_time")} as window_start, window_start + 10000 as window_end,
            p.name, p.city, p.state, a.id
        from auction a join person p on a.seller = p.id
        where a.category = 10 and p.state in ('OR', 'ID', 'CA')
            and {TEN.format("p.date_time")} = {TEN.format("a.date_time")}
        """,
    "q5": """
        with counts as (
            select window_end, auction, count(*) as num
            from (
                select auction, (cast(floor(epoch_ms(date_time) / 2000) as bigint) + nth) * 2000 as window_end
                from bid, range(1, 6) as ends(nth)
            )
            group by all
        )
        select window_end - 10000 as window_start, window_end, auction, num
        from counts c where num = (select max(num) from counts o where o.window_end = c.window_end)
        """,
    "q7": f"""
        with windowed as (select *, {TEN.format("date_time")} as window_start from bid)
        select window_start, window_start + 10000 as window_end, auction, price, bidder, date_time, extra
        from windowed
        qualify price = max(price) over (partition by window_start)
        """,
    "q8": f"""
        select {TEN.format("date_time")} as window_start, window_start + 10000 as window_end, id, name
        from person p where exists (
            from auction a where a.seller = p.id and {TEN.format("a.date_time")} = {TEN.format("p.date_time")}
        )
        """,
    "q11": """
        with stepped as (
            select bidder, epoch_ms(date_time) as ms,
                ms - lag(ms) over (partition by bidder order by ms) as pause
            from bid
        ), numbered as (
            select bidder, ms, count(*) filter (pause >= 10000) over
                (partition by bidder order by ms rows unbounded preceding) as visit
            from stepped
        )
        select min(ms) as window_start, max(ms) + 10000 as window_end, bidder, count(*) as bid_count
        from numbered group by bidder, visit
        """,
}


def answer(query: str, tables: dict[str, pa.Table]) -> list[dict[str, Value]]:
    """What a query gives."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return rows_of(connection.sql(ANSWERS[query]).to_arrow_table())
