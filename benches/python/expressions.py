"""Expressions through the engine, beside the same expressions in polars, on one thread each.

    python benches/python/expressions.py [--rows 8_000_000] [--rounds 5] [PART_OF_A_NAME ...]

Both read the same columns; all run in turns, and the best of all rounds counts. `kept` is the whole way
through the engine, with the result in memory; `pass on` shows what that costs without an expression.
`dropped` computes the same and drops every row behind it, so that what is left is the source and the
expression. Polars keeps its result. A ratio is our time over that of polars: below 2 is the aim for
`dropped`.

`net` is the ratio for the expression alone: from both times is taken what it costs, in the same rounds, to
pass on the columns that it reads. For us that is to cut a batch into runs, to drop all rows, and to take in
what comes from outside: bitmaps of nulls become masks, and strings are checked to be text and to lie within
their buffers. Polars has done such things when it made its frame, which is not measured; passing a column on
costs it next to nothing. Reading the values of numbers is part of `net` on both sides.
"""

import argparse
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

os.environ["POLARS_MAX_THREADS"] = "1"

import numpy as np
import polars as pl
import pyarrow as pa

import penstock as ps
from penstock import col

__all__ = ["main"]

WORDS = ["Penstock", "reservoir", "a turbine of many blades", "Globe valve"]
START = datetime(2023, 11, 14, tzinfo=UTC)
P = pl.col

EXPRESSIONS: dict[str, tuple[ps.Expr, pl.Expr]] = {
    "pass on": (col("a"), P("a")),
    "pass on nulls": (col("n"), P("n")),
    "pass on strings": (col("s"), P("s")),
    "a + b": (col("a") + col("b"), P("a") + P("b")),
    "a + 1": (col("a") + 1, P("a") + 1),
    "a * b": (col("a") * col("b"), P("a") * P("b")),
    "a // 7": (col("a") // 7, P("a") // 7),
    "a % 7": (col("a") % 7, P("a") % 7),
    "f * f + f": (col("f") * col("f") + col("f"), P("f") * P("f") + P("f")),
    "n + 1, with nulls": (col("n") + 1, P("n") + 1),
    "a > b": (col("a") > col("b"), P("a") > P("b")),
    "(a > 0) & (f < 50)": ((col("a") > 0) & (col("f") < 50.0), (P("a") > 0) & (P("f") < 50.0)),
    "a as int32": (col("a").cast("int32"), P("a").cast(pl.Int32)),
    "f as int64": (col("f").cast("int64"), P("f").cast(pl.Int64)),
    "a as float64": (col("a").cast("float64"), P("a").cast(pl.Float64)),
    "a as string": (col("a").cast("string"), P("a").cast(pl.String)),
    "digits as int64": (col("digits").cast("int64"), P("digits").cast(pl.Int64)),
    "when a > b": (
        ps.when(col("a") > col("b")).then(col("a")).otherwise(col("b")),
        pl.when(P("a") > P("b")).then(P("a")).otherwise(P("b")),
    ),
    "fill_null": (col("n").fill_null(0), P("n").fill_null(0)),
    "is_in": (col("a").is_in([1, 2, 3, 4]), P("a").is_in([1, 2, 3, 4])),
    "floor": (col("f").floor(), P("f").floor()),
    "round": (col("f").round(), P("f").round()),
    "abs": (col("a").abs(), P("a").abs()),
    "sqrt": (col("f").sqrt(), P("f").sqrt()),
    "str.length": (col("s").str.length(), P("s").str.len_chars()),
    "str.lower": (col("s").str.lower(), P("s").str.to_lowercase()),
    "str.contains": (col("s").str.contains("ob"), P("s").str.contains("ob", literal=True)),
    "str.starts_with": (col("s").str.starts_with("Pen"), P("s").str.starts_with("Pen")),
    "dt.year": (col("t").dt.year(), P("t").dt.year()),
    "dt.hour": (col("t").dt.hour(), P("t").dt.hour()),
    "dt.weekday": (col("t").dt.weekday(), P("t").dt.weekday()),
    "dt.hour in Berlin": (col("z").dt.hour(), P("z").dt.hour()),
    "dt.truncate": (col("t").dt.truncate("1h"), P("t").dt.truncate("1h")),
}
FILTERS: dict[str, tuple[ps.Expr, pl.Expr]] = {
    "filter a > 300": (col("a") > 300, P("a") > 300),
    "filter (a > 0) & (f < 50)": ((col("a") > 0) & (col("f") < 50.0), (P("a") > 0) & (P("f") < 50.0)),
    "filter str.contains": (col("s").str.contains("ob"), P("s").str.contains("ob", literal=True)),
}


def make_table(rows: int) -> pa.Table:
    """The columns that the expressions read."""
    draw = np.random.default_rng(11)
    numbers = draw.integers(-300, 700, rows)
    moments = int(START.timestamp()) * 1000 + np.arange(rows) * 977
    kept = draw.random(rows) > 0.2
    texts = pa.array(WORDS).take(pa.array(draw.integers(0, len(WORDS), rows)))
    return pa.table(
        {
            "a": numbers,
            "b": draw.integers(-300, 700, rows),
            "f": numbers / 7,
            "n": pa.array(numbers, mask=~kept),
            "s": texts.cast(pa.string_view()),
            "digits": pa.array(numbers).cast(pa.string()).cast(pa.string_view()),
            "t": pa.array(moments).cast(pa.timestamp("ms")),
            "z": pa.array(moments).cast(pa.timestamp("ms", "Europe/Berlin")),
        }
    )


def best(rounds: int, ways: list[Callable[[], object]]) -> list[float]:
    """The least seconds of each way, all of them in turns."""
    least = [float("inf")] * len(ways)
    for _ in range(rounds):
        for number, way in enumerate(ways):
            begin = time.perf_counter()
            way()
            least[number] = min(least[number], time.perf_counter() - begin)
    return least


def report(name: str, rows: int, seconds: list[float]) -> None:
    """One line of the table."""
    kept, dropped, theirs, passed, theirs_passed = seconds
    speeds = " ".join(f"{rows / each / 1e6:10.1f}" for each in (kept, dropped, theirs))
    ratios = " ".join(f"{each / theirs:8.2f}" for each in (kept, dropped))
    net = "" if name.startswith("pass on") else f"{(dropped - passed) / (theirs - theirs_passed):8.2f}"
    print(f"{name:28} {speeds} {ratios} {net}", flush=True)


def drop_all(stream: ps.Stream) -> ps.Stream:
    """The stream with its first column read and no row left."""
    column = col(stream.schema.names[0])
    return stream.filter(column.is_null() & column.is_not_null())


def measure(
    streams: tuple[ps.Stream, ps.Stream],
    table: pa.Table,
    frames: tuple[pl.LazyFrame, pl.LazyFrame],
    rounds: int,
) -> list[float]:
    """Seconds of the first stream with the result kept, with the result dropped, and those of polars.

    Then of the second ones, which pass on the same columns, dropped, and those of polars.
    """
    dropped, passed = (drop_all(stream) for stream in streams)
    ways = [
        lambda: streams[0].run(table, workers=1),
        lambda: dropped.run(table, workers=1),
        frames[0].collect,
        lambda: passed.run(table, workers=1),
        frames[1].collect,
    ]
    return best(rounds, ways)


def main() -> None:
    """Measures what was asked for, or everything.

    Example:
        >>> main()  # doctest: +SKIP
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    table = make_table(options.rows)
    frame = pl.DataFrame(table)
    source = ps.stream(table.schema)
    cases: list[tuple[str, ps.Stream, pl.LazyFrame, pl.Expr]] = [
        (name, source.select(r=ours), frame.lazy().select(r=theirs), theirs)
        for name, (ours, theirs) in EXPRESSIONS.items()
    ]
    cases += [
        (name, source.filter(ours).select("a"), frame.lazy().filter(theirs).select("a"), theirs)
        for name, (ours, theirs) in FILTERS.items()
    ]
    print(f"{options.rows:,} rows, one thread, best of {options.rounds}; million rows per second, and ratios")
    print(f"{'':28} {'kept':>10} {'dropped':>10} {'polars':>10} {'kept':>8} {'dropped':>8} {'net':>8}")
    for name, stream, theirs, expression in cases:
        if not options.names or any(part in name for part in options.names):
            columns = list(dict.fromkeys(expression.meta.root_names()))
            passed = (source.select(*columns), frame.lazy().select(columns))
            seconds = measure((stream, passed[0]), table, (theirs, passed[1]), options.rounds)
            report(name, options.rows, seconds)


if __name__ == "__main__":
    main()
