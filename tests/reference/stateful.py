"""A pipeline of every kind of operator with state, for whoever claims that something changes no answer."""

import pyarrow as pa

import penstock as ps
from penstock import col

SCHEMA = {"t": "int64", "k": "string", "x": "int64"}


def views() -> ps.Stream:
    kinds = pa.table({"k": ["a", "b"], "weight": [1, 10]})
    stream = ps.stream(SCHEMA, time="t", delay=3).filter(col("x") != 5).lookup(kinds, on="k", how="left")
    return stream.with_columns(y=col("x") * 2)


VIEWS = views()
# Two keys of the same values, so that every row belongs to one by the first and to another by the second.
DIGITS = VIEWS.with_columns(low=col("x") % 3, high=col("x") // 3 % 3)
COUNTED = DIGITS.window(ps.tumbling(5), by=["low", "high"]).agg(n=ps.count())

PLANS = {
    "tumbling": views()
    .window(ps.tumbling(10), by="k")
    .agg(
        n=ps.count(),
        total=ps.sum("y"),
        least=ps.min("x"),
        kinds=ps.count_distinct("x"),
        first=ps.first("x"),
        last=ps.last("x"),
        weight=ps.max("weight"),
    ),
    "sliding": views().window(ps.sliding(12, 4, offset=1), by=["k", "weight"]).agg(n=ps.count()),
    "no key": views().window(ps.tumbling(7)).agg(n=ps.count(), total=ps.sum("x")),
    "top_k": views().window(ps.tumbling(10), by="k").top_k(2, "x"),
    "behind": views().window(ps.tumbling(10), by="k").agg(n=ps.count()).filter(col("n") > 1),
    "session": views().window(ps.session(4), by="k").agg(n=ps.count(), first=ps.first("x")),
    "corrected": views().window(ps.tumbling(10), by="k", allowed_lateness=6).agg(n=ps.count()),
    "window of windows": views()
    .window(ps.tumbling(5), by=["k", "x"])
    .agg(n=ps.count())
    .window(ps.tumbling(10), by="k")
    .agg(n=ps.sum("n"), kinds=ps.count()),
    "join": VIEWS.join(
        VIEWS.filter(col("x") > 0).select("t", "k", z="x"), window=ps.tumbling(10), on="k", how="full"
    ),
    "cogroup": VIEWS.cogroup(VIEWS.filter(col("x") > 0), window=ps.session(6), by="k").agg(
        left={"n": ps.count()}, right={"positive": ps.count(), "most": ps.max("x")}
    ),
    "join with itself": DIGITS.join(
        DIGITS, window=ps.tumbling(10), left_on="low", right_on="high", how="full"
    ),
    "cogroup with itself": VIEWS.cogroup(
        VIEWS, window=ps.session(6), left_by=col("x") % 3, right_by=col("x") // 3 % 3
    ).agg(left={"n": ps.count()}, right={"others": ps.count(), "most": ps.max("x")}),
    "windows join themselves": COUNTED.join(
        COUNTED, window=ps.tumbling(10), left_on=["low", "high"], right_on=["high", "low"], how="full"
    ),
    "windows cogroup themselves": COUNTED.cogroup(
        COUNTED, window=ps.tumbling(10), left_by=["low", "n"], right_by=["high", "n"]
    ).agg(left={"windows": ps.count()}, right={"most": ps.max("low")}),
    "union": VIEWS.union(VIEWS.filter(col("x") < 0)).window(ps.tumbling(10), by="k").agg(n=ps.count()),
}


def rows_of(result: ps.Result) -> list[str]:
    """The rows, in no order."""
    return sorted(map(repr, result.to_pylist()))


def table_of(rows: list[tuple[int, str | None, int]]) -> pa.Table:
    """Rows of `SCHEMA`."""
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(SCHEMA.values())]
    return pa.table(dict(zip(SCHEMA, columns, strict=True)))
