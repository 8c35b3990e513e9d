"""Random streams and plans, drawn with hypothesis.

Arithmetic in random windowed plans stays far from overflow, so that the answer never depends on whether a
column nobody reads is computed; overflow has tests of its own.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache

from hypothesis import strategies as st

from reference.expressions import Binary, Column, Expression, Literal, Unary
from reference.plans import Agg, Filter, How, Lookup, Plan, Row, Select, Source, Step, Window, WithColumns
from reference.types import (
    BOOL,
    DATE32,
    DATE64,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT32,
    Type,
    Value,
    decimal,
    timestamp,
)

TIME_TYPES = (
    INT64, INT32, UINT8, UINT32, DATE32, DATE64,
    timestamp("s"), timestamp("ms"), timestamp("us"), timestamp("ns"), timestamp("ms", "UTC"),
)  # fmt: skip
KEY_TYPES = (STRING, INT32, FLOAT64, BOOL, decimal(6, 2), timestamp("ms"), UINT8, DATE32, Type("binary"))

NAN, INF = float("nan"), float("inf")
SMALL_FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e6, NAN, INF, -INF]),
    st.floats(-1e6, 1e6),
)
LONG = "a value longer than twelve bytes"


def pool(kind: Type) -> list[Value]:
    """Few distinct values of a type, so that keys repeat and joins match."""
    if kind.kind == "int":
        return [0, 1, 2, 3, kind.high, kind.low, kind.high - 1]
    if kind.kind == "float":
        return [0.0, -0.0, 1.0, -1.5, NAN, INF, -INF]
    if kind.kind == "bool":
        return [False, True]
    if kind.kind == "decimal":
        return [Decimal(n * 25).scaleb(-kind.scale) for n in (0, 1, -1, 3, -3)]
    if kind.kind == "string":
        return ["", "a", "b", "é", LONG, "longer than twelve", "z"]
    if kind.kind == "binary":
        return [b"", b"\x00", b"\xff", b"thirteen bytes"]
    return [0, 1, 2, -1, -2]


def small_values(kind: Type) -> st.SearchStrategy[Value]:
    """The values of the pool."""
    return st.sampled_from(pool(kind))


def nullable(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    """The values, with nulls among them."""
    return st.one_of(st.none(), values, values, values)


def times(kind: Type, size: int) -> st.SearchStrategy[st.SearchStrategy[int]]:
    """Ways to draw event times: around zero, on window bounds, far apart, over all there is."""
    low, high = kind.low, kind.high
    width = min(size, 2**40)
    near = st.integers(-2 * width, 3 * width)
    bounds = st.builds(lambda k, d: k * width + d, st.integers(-3, 3), st.sampled_from([-1, 0, 1]))
    gaps = st.builds(
        lambda k, d: k * width + d, st.sampled_from([-(10**6), -50, 0, 1, 999]), st.integers(0, 3)
    )
    ends = st.builds(lambda end, d: end + d, st.sampled_from([low, high]), st.integers(-3, 3))
    everything = st.one_of(near, bounds, gaps, ends, st.integers(low, high))
    ways = [near, near, bounds, st.one_of(near, bounds), gaps, ends, everything]
    return st.sampled_from([way.map(lambda t: min(max(t, low), high)) for way in ways])


def sizes(kind: Type) -> st.SearchStrategy[int]:
    """Window sizes, from one unit to enormous."""
    most = 10**6 if kind.unit == "d" else 2**63 - 1
    if kind == DATE64:
        return st.integers(1, 30).map(lambda days: days * 86_400_000)
    return st.one_of(st.integers(1, 12), st.sampled_from([60, 1000, 86_400, 10**6, most - 1, most]))


def delays(kind: Type, size: int) -> st.SearchStrategy[int]:
    """How long rows may be late: not at all, a little, more than any row can be."""
    if kind.unit == "d":
        return st.one_of(st.just(0), st.integers(0, 5), st.sampled_from([10**6]))
    if kind == DATE64:
        return st.integers(0, 30).map(lambda days: days * 86_400_000)
    huge = st.sampled_from([10**9, 2**62, 2**63 - 1])
    return st.one_of(st.just(0), st.integers(0, 10), st.just(min(size, 2**62)), huge)


def source_columns(time: Type, key: Type) -> tuple[tuple[str, Type], ...]:
    """The columns every random stream has; `id` is unique."""
    return (
        ("id", INT64), ("t", time), ("k", key), ("v", INT64), ("f", FLOAT64), ("d", decimal(10, 2)),
        ("s", STRING), ("b", BOOL),
    )  # fmt: skip


POOLS: dict[str, list[Value]] = {
    "v": [0, 1, -1, 7, -8, 1000, -1000, None],
    "f": [0.0, 1.5, -0.0, 0.1, -2.25, 1e6, -1e6, 3.0, 1e-9, 0.5, -7.0, 2.0, NAN, INF, -INF, None],
    "d": [Decimal(n).scaleb(-2) for n in (0, 1, -1, 250, -99, 10**6, -(10**6))] + [None],
    "s": [*pool(STRING), None],
    "b": [False, True, None],
}


@st.composite
def rows(draw: st.DrawFn, time: Type, key: Type, size: int) -> list[Row]:
    """Rows in arrival order: duplicates, out of order, late, with nulls.

    One number per row picks its cells from the pools, which is quick to draw and shrinks well.
    """
    pools = {"k": [*pool(key), None], **POOLS}
    least = draw(st.sampled_from([10, 0, 1, 3, 20]))
    cell = st.tuples(draw(times(time, size)), st.integers(0, 2**40))
    made: list[Row] = []
    for number, (at, choice) in enumerate(draw(st.lists(cell, min_size=least, max_size=40))):
        row: dict[str, Value] = {"id": number, "t": at}
        for name, values in pools.items():
            choice, index = divmod(choice, len(values))
            row[name] = values[index]
        made.append(row)
    return made


@cache
def numbers(depth: int = 2) -> st.SearchStrategy[Expression]:
    """Integer expressions over `v` and `id` that stay small."""
    leaves = st.sampled_from([Column("v"), Column("id")])
    if depth == 0:
        return leaves
    inner = numbers(depth - 1)
    divisor = st.sampled_from([-7, -1, 2, 3]).map(Literal)
    return st.one_of(
        leaves,
        st.builds(Binary, st.sampled_from(["+", "-"]), inner, inner),
        st.builds(Binary, st.sampled_from(["+", "-", "*"]), inner, st.integers(-9, 9).map(Literal)),
        st.builds(Binary, st.sampled_from(["//", "%"]), inner, divisor),
        st.builds(Unary, st.just("-"), inner),
    )


@cache
def predicates(depth: int = 2) -> st.SearchStrategy[Expression]:
    """Boolean expressions over the columns of a random stream."""
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    halves = st.integers(-9, 9).map(lambda n: Decimal(n) / 2)
    leaves = st.one_of(
        st.builds(Binary, compare, numbers(1), st.integers(-500, 500).map(Literal)),
        st.builds(Binary, compare, st.just(Column("f")), SMALL_FLOATS.map(Literal)),
        st.builds(Binary, compare, st.just(Column("s")), small_values(STRING).map(Literal)),
        st.builds(Binary, compare, st.just(Column("d")), halves.map(Literal)),
        st.builds(
            Unary, st.sampled_from(["is_null", "is_not_null"]), st.sampled_from(["k", "v"]).map(Column)
        ),
        st.just(Column("b")),
    )
    if depth == 0:
        return leaves
    inner = predicates(depth - 1)
    return st.one_of(
        leaves,
        st.builds(Binary, st.sampled_from(["&", "|", "^"]), inner, inner),
        st.builds(Unary, st.just("~"), inner),
    )


@cache
@st.composite
def lookups(draw: st.DrawFn, key: Type) -> Lookup:
    """A lookup of `k` in a table of distinct keys."""
    least = draw(st.sampled_from([0, 2]))
    keys = draw(st.lists(small_values(key), min_size=least, max_size=7, unique_by=_distinct))
    values = st.tuples(nullable(st.integers(0, 9)), nullable(small_values(STRING)))
    entries = tuple((k, *draw(values)) for k in keys)
    columns = (("k", key), ("group", INT32), ("label", STRING))
    how: How = draw(st.sampled_from(("inner", "left")))
    return Lookup(columns, entries, ("k",), how)


def _distinct(value: Value) -> object:
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value


@cache
@st.composite
def steps(draw: st.DrawFn, key: Type) -> list[Step]:
    """What happens before the window."""
    made: list[Step] = []
    for kind in draw(st.lists(st.sampled_from(["with_columns", "select", "lookup", "filter"]), max_size=3)):
        if kind == "filter":
            made.append(Filter(tuple(draw(st.lists(predicates(), min_size=1, max_size=2)))))
        elif kind == "with_columns":
            made.append(WithColumns((("v", draw(numbers())), ("extra", draw(predicates(1))))))
        elif kind == "select" and not any(isinstance(step, (Select, Lookup)) for step in made):
            names = ["id", "t", "k", "v", "f", "d", "s", "b"]
            made.append(Select((*((name, Column(name)) for name in names), ("w", draw(numbers())))))
        elif kind == "lookup" and not any(isinstance(step, Lookup) for step in made):
            made.append(draw(lookups(key)))
    return made


@cache
def groupings(has_lookup: bool) -> st.SearchStrategy[tuple[tuple[str, Expression], ...]]:
    """What to group by: nothing, columns, an expression."""
    choices: list[tuple[str, Expression]] = [
        ("k", Column("k")), ("s", Column("s")), ("b", Column("b")),
        ("parity", Binary("%", Column("v"), Literal(2))),
    ]  # fmt: skip
    if has_lookup:
        choices.append(("group", Column("group")))
    return st.lists(st.sampled_from(choices), max_size=3, unique_by=lambda c: c[0]).map(tuple)


AGGREGATES = (
    Agg("rows", "count"), Agg("values", "count", Column("v")), Agg("total", "sum", Column("v")),
    Agg("ids", "sum", Column("id")), Agg("least", "min", Column("f")), Agg("most", "max", Column("f")),
    Agg("float_total", "sum", Column("f")), Agg("float_mean", "mean", Column("f")),
    Agg("mean", "mean", Column("v")), Agg("decimals", "sum", Column("d")), Agg("first", "min", Column("s")),
    Agg("last", "max", Column("s")), Agg("any", "max", Column("b")), Agg("latest", "max", Column("t")),
    Agg("doubled", "sum", Binary("*", Column("v"), Literal(2))), Agg("low", "min", Column("d")),
)  # fmt: skip


@st.composite
def window_cases(draw: st.DrawFn) -> tuple[Plan, list[Row]]:
    """A random windowed plan and rows for it."""
    time, key = draw(st.sampled_from(TIME_TYPES)), draw(st.sampled_from(KEY_TYPES))
    size = draw(sizes(time))
    before = draw(steps(key))
    by = draw(groupings(any(isinstance(step, Lookup) for step in before)))
    chosen = st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=5, unique_by=lambda a: a.name)
    aggs = tuple(draw(chosen))
    after: list[Step] = []
    if draw(st.booleans()):
        aggs = (Agg("size", "count"), *aggs)
        after.append(Filter((Binary(">", Column("size"), Literal(1)),)))
    source = Source(source_columns(time, key), "t", draw(delays(time, size)))
    plan = Plan(source, (*before, Window(size, by, aggs), *after))
    return plan, draw(rows(time, key, size))


@st.composite
def stateless_cases(draw: st.DrawFn) -> tuple[Plan, list[Row]]:
    """A random plan without a window, with or without a time column, and rows for it."""
    time, key = draw(st.sampled_from(TIME_TYPES)), draw(st.sampled_from(KEY_TYPES))
    source = Source(source_columns(time, key), draw(st.sampled_from([None, "t"])))
    return Plan(source, tuple(draw(steps(key)))), draw(rows(time, key, 10))


def cuts(length: int) -> st.SearchStrategy[list[int]]:
    """Where to cut rows into batches; equal cuts make empty batches."""
    return st.one_of(st.just(list(range(length))), st.lists(st.integers(0, length), max_size=12))
