"""Windows and window joins, beside the group-by and the join of polars and duckdb over the same rows.

    python benches/python/windows.py [--rows 10_000_000] [--rounds 5] [PART ...]

PART is any of:

* `tumbling`: count, sum and mean by key in ten windows, over 100, ten thousand and a million keys
* `sliding`: windows of 60 s every second beside tumbling ones of 60 s, over the same rows
* `join`: persons and their auctions in windows of 10 s, as NEXMark's eighth query has them
* `workers`: the same on one worker and on two, by both strategies

Everybody has one thread unless it says otherwise, reads columns that are in memory, and leaves its result in
memory. All run in turns. For each way there is the median of the million rows per second, the spread, and the
median of its time over that of the first way, round by round: a peer above 1 is slower than we are.
"""

import argparse
import os
from collections.abc import Callable

os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from rounds import compare

import penstock as ps
from penstock.workloads import nexmark

__all__ = ["main"]

WINDOWS = 10
HOT_SELLER = 4
ACTIVE_PERSONS = 1_000


def database(**tables: pa.Table) -> duckdb.DuckDBPyConnection:
    """A database in memory, with tables of its own, and one thread."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables.items():
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    return connection


def keyed_rows(rows: int, keys: int) -> pa.Table:
    """Rows a microsecond apart, with keys that lie anywhere."""
    draw = np.random.default_rng(keys)
    names = draw.integers(-(2**62), 2**62, keys)
    return pa.table(
        {
            "t": pa.array(np.arange(rows)).cast(pa.timestamp("us")),
            "k": names[draw.integers(0, keys, rows)],
            "x": draw.integers(0, 1_000, rows),
        }
    )


def tumbling(rows: int, rounds: int) -> None:
    """Group-by in windows."""
    size = rows // WINDOWS
    for keys in (100, 10_000, 1_000_000):
        table = keyed_rows(rows, keys)
        windowed = ps.stream(table.schema, time="t").window(ps.tumbling(f"{size}us"), by="k")
        plan = windowed.agg(n=ps.count(), total=ps.sum("x"), mean=ps.mean("x"))
        number = pl.col("t").cast(pl.Int64) // size
        grouped = pl.DataFrame(table).lazy().group_by(number, "k")
        frame = grouped.agg(n=pl.len(), total=pl.sum("x"), mean=pl.mean("x"))
        connection = database(rows=table)
        sql = f"""SELECT epoch_us(t) // {size} AS w, k, count(*) AS n, sum(x) AS total, avg(x) AS mean
                  FROM rows GROUP BY w, k"""
        assert plan.run(table).rows_out == len(frame.collect()) == len(connection.sql(sql).arrow().read_all())
        print(f"tumbling, count, sum and mean, {keys:,} keys, {rows:,} rows")
        ways: dict[str, Callable[[], object]] = {
            "penstock": lambda plan=plan, table=table: plan.run(table, workers=1),
            "polars": frame.collect,
            "duckdb": lambda connection=connection, sql=sql: connection.sql(sql).arrow().read_all(),
        }
        compare(rows, rounds, "penstock", ways)


def sliding(rows: int, rounds: int) -> None:
    """Overlapping windows against others."""
    for keys in (100, 10_000):
        table = keyed_rows(rows, keys).set_column(
            0, "t", pa.array(np.arange(rows) * (300_000_000 // rows)).cast(pa.timestamp("us"))
        )
        stream = ps.stream(table.schema, time="t")

        def plan(window: ps.Window, stream: ps.Stream = stream) -> ps.Stream:
            return stream.window(window, by="k").agg(n=ps.count(), total=ps.sum("x"), mean=ps.mean("x"))

        plans = {
            "tumbling 60 s": plan(ps.tumbling("60s")),
            "sliding 60 s every 1 s": plan(ps.sliding("60s", "1s")),
            "sliding, results dropped": plan(ps.sliding("60s", "1s")).filter(ps.col("n") < 0),
        }
        print(f"sliding against tumbling, {keys:,} keys, {rows:,} rows in 300 s")
        ways: dict[str, Callable[[], object]] = {
            name: (lambda plan=plan, table=table: plan.run(table, workers=1)) for name, plan in plans.items()
        }
        compare(rows, rounds, "tumbling 60 s", ways)


def sellers(rows: int) -> tuple[pa.Table, pa.Table]:
    """Persons, and three auctions for each, by the rules of NEXMark: most are of few sellers."""
    draw = np.random.default_rng(8)
    persons = rows // 4
    auctions = 3 * persons
    last = np.arange(auctions) // 3
    hot = draw.integers(0, HOT_SELLER, auctions) > 0
    cold = np.maximum(last - draw.integers(0, ACTIVE_PERSONS, auctions), 0)
    seller = np.where(hot, last // 100 * 100, cold)
    span_ms = 100_000
    person = pa.table(
        {
            "id": np.arange(persons),
            "name": pa.array(np.arange(persons)).cast(pa.string()),
            "date_time": pa.array(np.arange(persons) * span_ms // persons).cast(pa.timestamp("ms")),
        }
    )
    auction = pa.table(
        {
            "id": np.arange(auctions),
            "seller": seller,
            "reserve": draw.integers(0, 10_000, auctions),
            "date_time": pa.array(last * span_ms // persons).cast(pa.timestamp("ms")),
        }
    )
    return person, auction


def joined() -> ps.Stream:
    """Each auction with its seller, in the ten seconds in which the seller joined."""
    person = ps.stream(
        {"id": "int64", "name": "string", "date_time": "timestamp[ms]"}, time="date_time", name="person"
    )
    auction = ps.stream(
        {"id": "int64", "seller": "int64", "reserve": "int64", "date_time": "timestamp[ms]"},
        time="date_time",
        name="auction",
    )
    opened = auction.select("date_time", "reserve", auction="id", id="seller")
    return person.join(opened, window=ps.tumbling("10s"), on="id")


def join(rows: int, rounds: int) -> None:
    """A window join."""
    person, auction = sellers(rows)
    rows = len(person) + len(auction)
    data = {"person": person, "auction": auction}
    plan, connection = joined(), database(**data)
    window = "epoch_ms({}.date_time) // 10000"
    sql = f"""SELECT p.id, p.name, a.reserve, a.id AS auction, p.date_time, a.date_time AS opened
              FROM person p JOIN auction a
              ON p.id = a.seller AND {window.format("p")} = {window.format("a")}"""
    frames = {name: pl.DataFrame(table).lazy() for name, table in data.items()}
    number = (pl.col("date_time").cast(pl.Int64) // 10_000).alias("w")
    left, right = (frame.with_columns(number) for frame in frames.values())
    frame = left.join(right, left_on=["id", "w"], right_on=["seller", "w"])
    matches = plan.run(data).rows_out
    assert matches == len(connection.sql(sql).arrow().read_all()) == len(frame.collect())
    print(f"window join of NEXMark q8, {rows:,} rows, {matches:,} matches")
    compare(
        rows,
        rounds,
        "penstock",
        {
            "penstock": lambda: plan.run(data, workers=1),
            "duckdb": lambda: connection.sql(sql).arrow().read_all(),
            "polars": frame.collect,
        },
    )
    full = {name: _whole(name, table) for name, table in data.items()}
    distinct = f"""SELECT p.w, p.id, p.name FROM
        (SELECT DISTINCT {window.format("person")} AS w, id, name FROM person) p JOIN
        (SELECT DISTINCT {window.format("auction")} AS w, seller FROM auction) a
        ON p.id = a.seller AND p.w = a.w"""
    query = nexmark.q8()
    found = query.run(full).rows_out
    assert found == len(connection.sql(distinct).arrow().read_all())
    print(f"NEXMark q8 whole, {rows:,} rows, {found:,} results")
    compare(
        rows,
        rounds,
        "penstock",
        {
            "penstock": lambda: query.run(full, workers=1),
            "duckdb": lambda: connection.sql(distinct).arrow().read_all(),
        },
    )


def _whole(name: str, table: pa.Table) -> pa.Table:
    """The table with all columns of its stream."""
    schema = pa.schema(nexmark.schema("person" if name == "person" else "auction"))
    given = {field.name: field for field in table.schema}
    columns = [
        table[field.name].cast(field.type) if field.name in given else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def workers(rows: int, rounds: int) -> None:
    """One worker and two."""
    for keys in (100, 1_000_000):
        table = keyed_rows(rows, keys)
        windowed = ps.stream(table.schema, time="t").window(ps.tumbling(f"{rows // WINDOWS}us"), by="k")
        plan = windowed.agg(n=ps.count(), total=ps.sum("x"), mean=ps.mean("x"))
        print(f"tumbling on two workers, {keys:,} keys, {rows:,} rows")
        _on_workers(plan, table, rows, rounds, ("merge", "exchange"))
    person, auction = sellers(rows)
    print(f"window join of NEXMark q8 on two workers, {len(person) + len(auction):,} rows")
    data = {"person": person, "auction": auction}
    _on_workers(joined(), data, len(person) + len(auction), rounds, ("exchange",))


def _on_workers(plan: ps.Stream, data: object, rows: int, rounds: int, strategies: tuple[str, ...]) -> None:
    ways: dict[str, Callable[[], object]] = {"one worker": lambda: plan.run(data, workers=1)}
    for strategy in strategies:
        ways[f"two workers, {strategy}"] = lambda strategy=strategy: plan.run(
            data, workers=2, strategy=strategy
        )
    compare(rows, rounds, "one worker", ways)


PARTS = {"tumbling": tumbling, "sliding": sliding, "join": join, "workers": workers}


def main() -> None:
    """Measures what was asked for, or everything.

    Example:
        >>> main()  # doctest: +SKIP
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []])
    options = parser.parse_args()
    for part in options.parts or PARTS:
        PARTS[part](options.rows, options.rounds)


if __name__ == "__main__":
    main()
