"""Streams longer than any block or run inside the engine, against the reference.

The random plans of the property tests see few rows each. Here the rows are many, so that windows, keys,
filters and late rows fall on both sides of every internal boundary, wherever that may be.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from reference import engine, plans
from reference.compare import assert_same_rows
from reference.expressions import Binary, Column, Expression, Literal, Unary
from reference.plans import Agg, Filter, Lookup, Plan, Row, Select, Source, Step, Window, WithColumns
from reference.sizes import SMALLER
from reference.types import BOOL, FLOAT64, INT32, INT64, STRING, Value

pytestmark = pytest.mark.slow

ROWS = 12_000 // SMALLER
COLUMNS = (
    ("id", INT64), ("t", INT64), ("k", INT64), ("name", STRING), ("x", INT32), ("f", FLOAT64), ("flag", BOOL),
)  # fmt: skip
AGGS = (
    Agg("n", "count"), Agg("ids", "sum", Column("id")), Agg("known", "count", Column("x")),
    Agg("total", "sum", Column("x")), Agg("low", "min", Column("f")), Agg("high", "max", Column("name")),
    Agg("mean", "mean", Column("f")),
)  # fmt: skip

# Each shape of time: how far the clock goes per row, and how far rows stray from it.
CLOCKS: dict[str, Callable[[random.Random, int], int]] = {
    "in order": lambda rng, i: i // 3,
    "a little out of order": lambda rng, i: i + rng.randint(-20, 20),
    "far out of order": lambda rng, i: i + rng.choice([0, 0, 0, -5000, 3000]),
    "with gaps": lambda rng, i: i // 1000 * 10**12 + rng.randint(0, 200),
    "backwards": lambda rng, i: -i,
    "all at once": lambda rng, i: 7,
    "anywhere": lambda rng, i: rng.randint(-(2**63), 2**63 - 1),
}


def rows_of_clock(clock: str, keys: int, seed: int) -> list[Row]:
    """Rows whose times follow a clock, with `keys` distinct keys."""
    rng = random.Random(seed)
    made: list[Row] = []
    for i in range(ROWS):
        k = rng.randrange(keys)
        made.append(
            {
                "id": i,
                "t": CLOCKS[clock](rng, i),
                "k": None if rng.random() < 0.02 else k * 7919 - 50_000,
                "name": None if rng.random() < 0.02 else f"name {k % 300}" + " that is long" * (k % 2),
                "x": None if rng.random() < 0.1 else rng.randint(-(2**31), 2**31 - 1),
                "f": None if rng.random() < 0.1 else rng.choice([0.0, -0.0, rng.random(), rng.gauss(0, 1e6)]),
                "flag": rng.choice([True, False, None]),
            }
        )
    return made


def run_both(plan: Plan, rows: list[Row], batch_rows: int) -> None:
    """The engine and the reference agree on the rows and on all counts."""
    expected = plans.run(plan, rows)
    table = engine.table_of(plan.source.columns, rows)
    result = engine.run_quietly(engine.build(plan), table.to_batches(max_chunksize=batch_rows))
    metrics = engine.assert_nothing_lost(result)
    assert (metrics["rows_late"], metrics["rows_filtered"]) == (expected.rows_late, expected.rows_filtered)
    window = next((step for step in plan.steps if isinstance(step, Window)), None)
    keys = ["id"] if window is None else ["window_start", *(name for name, _ in window.by)]
    assert_same_rows(expected.rows, engine.rows_of(result), keys)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("size", "delay"), [(10, 0), (1000, 100), (7, 5000)])
def test_windows_of_a_long_stream(clock: str, size: int, delay: int) -> None:
    rows = rows_of_clock(clock, keys=5, seed=size)
    plan = Plan(Source(COLUMNS, "t", delay), (Window(size, (("k", Column("k")),), AGGS),))
    run_both(plan, rows, batch_rows=ROWS if size == 10 else 777)


@pytest.mark.parametrize("keys", [1, 2, 300, 8_000])
@pytest.mark.parametrize("by", [("k",), ("name",), ("k", "name", "flag")], ids=" ".join)
def test_keys_of_a_long_stream(keys: int, by: tuple[str, ...]) -> None:
    rows = rows_of_clock("a little out of order", keys, seed=keys)
    window = Window(5000, tuple((name, Column(name)) for name in by), AGGS)
    run_both(Plan(Source(COLUMNS, "t", 10), (window,)), rows, batch_rows=4096)


def share(percent: int) -> Expression:
    """A predicate that keeps about so many percent of the rows, in no simple pattern."""
    scrambled = Binary("%", Binary("*", Column("id"), Literal(7919)), Literal(100))
    return Binary("<", scrambled, Literal(percent))


@pytest.mark.parametrize("percent", [0, 3, 97, 100])
@pytest.mark.parametrize("batch_rows", [1, 1023, 1024, ROWS])
def test_filters_of_a_long_stream(percent: int, batch_rows: int) -> None:
    rows = rows_of_clock("a little out of order", 20, seed=percent)[: 2000 if batch_rows == 1 else ROWS]
    steps: tuple[Step, ...] = (
        Filter((share(percent),)),
        WithColumns((("y", Binary("+", Column("x"), Literal(2**40))),)),
        Filter((Binary("|", Column("flag"), Unary("is_null", Column("x"))),)),
    )
    run_both(Plan(Source(COLUMNS, "t", 0), steps), rows, batch_rows)
    run_both(Plan(Source(COLUMNS, "t", 0), (*steps, Window(100, (), AGGS))), rows, batch_rows)


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("keys", ["dense", "sparse", "text"])
def test_lookups_of_a_long_stream(how: plans.How, keys: str) -> None:
    rng = random.Random(5)
    rows = rows_of_clock("in order", 400, seed=3)[:6000]
    on = "name" if keys == "text" else "slot"
    wide = {"dense": list(range(-20, 50)), "sparse": [rng.randint(-(2**62), 2**62) for _ in range(60)]}
    table: list[Value] = [f"name {i}" for i in range(0, 300, 5)] if keys == "text" else list(wide[keys])
    choices = [*wide.get(keys, [0]), -(2**63), 2**63 - 1, 50, -21, None]
    rows = [{**row, "slot": rng.choice(choices)} for row in rows]
    entries = tuple((key, i % 17, None if i % 5 == 0 else f"label {i}") for i, key in enumerate(table))
    kind = STRING if keys == "text" else INT64
    lookup = Lookup(((on, kind), ("group", INT64), ("label", STRING)), entries, (on,), how)
    columns = (*COLUMNS, ("slot", INT64))
    plan = Plan(
        Source(columns, "t", 0),
        (lookup, Window(500, (("group", Column("group")), ("label", Column("label"))), AGGS)),
    )
    run_both(plan, rows, batch_rows=1500)
    run_both(
        Plan(Source(columns), (lookup, Select((("id", Column("id")), ("label", Column("label")))))),
        rows,
        1500,
    )


def test_many_open_windows() -> None:
    """A long delay keeps thousands of windows open, each with few rows."""
    rows = rows_of_clock("far out of order", 3, seed=11)
    plan = Plan(Source(COLUMNS, "t", 10**9), (Window(2, (("k", Column("k")),), AGGS),))
    run_both(plan, rows, batch_rows=5000)
