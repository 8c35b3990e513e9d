"""The first rows of each window and key."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference import strategies, windowed_cases
from reference.aggregates import sort_key
from reference.compare import as_bag
from reference.engine import arrow_schema, batches_of, rows_of
from reference.options import account_of, run_one, run_options
from reference.plans import Row
from reference.types import FLOAT64, INT64, STRING, Type, Value
from reference.windowing import Arrived, Windows, arrive, clamped, group

EXAMPLES = settings().max_examples
SCHEMA = {"t": "int64", "k": "string", "v": "int64"}
STREAM = ps.stream(SCHEMA, time="t")
TEN = ps.tumbling(10)
COLUMNS: tuple[tuple[str, Type], ...] = (
    ("t", INT64), ("k", STRING), ("v", INT64), ("f", FLOAT64), ("s", STRING),
)  # fmt: skip


def table(*rows: tuple[int, str | None, int | None]) -> pa.Table:
    schema = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    return pa.Table.from_pylist([dict(zip(SCHEMA, row, strict=True)) for row in rows], schema)


def ranks(result: ps.Result) -> list[tuple[Value, ...]]:
    """Window, key, rank, value and time, in order."""
    rows = [tuple(row[name] for name in ("window_start", "k", "rank", "v", "t")) for row in rows_of(result)]
    return sorted(rows, key=lambda row: tuple((value is None, value) for value in row))


def first_rows(
    windows: Windows, arrived: list[Arrived], by: list[str], order: str, k: int, smallest: bool
) -> tuple[list[dict[str, Value]], int]:
    """What the engine is to give, and how many rows are late. There are no nulls in the other columns."""
    grouped = group(windows, arrived, lambda row: [row[name] for name in by])
    others = [name for name, _ in COLUMNS if name not in by]
    made: list[dict[str, Value]] = []
    for (start, end, _), members in grouped.groups.items():
        rows = [one.row for one in members if one.row[order] is not None]
        # Sorting is stable, in reverse as well: first by the columns that break ties, then by what counts.
        rows.sort(key=lambda row: [sort_key(row[name]) for name in others if name != order])
        rows.sort(key=lambda row: sort_key(row[order]), reverse=not smallest)  # type: ignore[arg-type,return-value]
        for rank, row in enumerate(rows[:k], 1):
            bounds: dict[str, Value] = {"window_start": clamped(start), "window_end": clamped(end)}
            keys = {name: members[0].row[name] for name in by}
            made.append({**bounds, **keys, "rank": rank, **{name: row[name] for name in others}})
    return made, len(grouped.late)


@st.composite
def some_rows(draw: st.DrawFn, size: int, nulls: bool) -> list[Row]:
    """Rows with many ties; only what they are ordered by may be null, unless all may be."""
    times = draw(strategies.times(INT64, size))
    texts: list[str | None] = ["a", "b", "", "longer than twelve bytes"]
    floats: list[float | None] = [0.0, 1.5, -2.0, float("nan"), float("inf")]
    cell = st.tuples(
        times, st.sampled_from(["a", "b", None]), st.sampled_from([0, 1, 2, -1, None]),
        st.sampled_from([*floats, None] if nulls else floats),
        st.sampled_from([*texts, None] if nulls else texts),
    )  # fmt: skip
    rows = draw(st.lists(cell, max_size=25))
    return [{"t": t, "k": k, "v": v, "f": f, "s": s} for t, k, v, f, s in rows]


WINDOWS = st.one_of(windowed_cases.sliding_windows(), windowed_cases.tumbling_windows())


@settings(max_examples=max(10, EXAMPLES // 2))
@given(st.data(), st.integers(1, 5), st.booleans(), run_options())
def test_random_streams_equal_the_reference(
    data: st.DataObject, k: int, smallest: bool, options: dict[str, Any]
) -> None:
    windows = data.draw(WINDOWS)
    delay = data.draw(strategies.delays(INT64, windows.size))
    by, order = data.draw(
        st.sampled_from([(["k"], "v"), (["k"], "f"), (["k"], "s"), (["k", "v"], "f"), (["k"], "t")])
    )
    rows = data.draw(some_rows(windows.size, nulls=False))
    stream = ps.stream(arrow_schema(COLUMNS), time="t", delay=delay)
    # Where a null in a column that breaks ties goes is not documented: `v` is null only where it counts.
    if order != "v":
        rows = [{**row, "v": row["v"] or 0} for row in rows]
    query = stream.window(windows.build(), by=by).top_k(k, order, smallest=smallest)
    expected, late = first_rows(windows, arrive(rows, "t", delay), by, order, k, smallest)
    batches = batches_of(COLUMNS, rows, data.draw(strategies.cuts(len(rows))))
    result = run_one(query, batches, **options)
    event(f"late rows: {min(late, 3)}, rows: {min(len(expected), 5)}")
    assert as_bag(rows_of(result)) == as_bag(expected)
    assert result.rows_late == late
    assert all(list(row) == query.schema.names for row in expected)


@settings(max_examples=max(10, EXAMPLES // 3))
@given(
    some_rows(10, nulls=True), st.randoms(use_true_random=False), st.integers(1, 4), st.sampled_from("vfs")
)
def test_the_order_of_arrival_does_not_matter(rows: list[Row], rng: Random, k: int, order: str) -> None:
    """Whatever the ties are, nulls and duplicates among them."""
    rows = [{**row, "t": min(max(int(str(row["t"])), -(2**61)), 2**61)} for row in rows]
    shuffled = list(rows)
    rng.shuffle(shuffled)
    stream = ps.stream(arrow_schema(COLUMNS), time="t", delay=2**63 - 1)
    query = stream.window(TEN, by="k").top_k(k, order)
    answers = [as_bag(rows_of(run_one(query, batches_of(COLUMNS, some)))) for some in (rows, shuffled)]
    assert answers[0] == answers[1]


def test_the_columns() -> None:
    query = STREAM.window(TEN, by="k").top_k(2, "v")
    assert query.schema.names == ["window_start", "window_end", "k", "rank", "t", "v"]
    assert STREAM.window(TEN).top_k(2, "v").schema.names == [
        "window_start",
        "window_end",
        "rank",
        "t",
        "k",
        "v",
    ]
    parity = STREAM.window(TEN, by=(col("v") % 2).alias("parity")).top_k(1, "t")
    assert parity.schema.names == ["window_start", "window_end", "parity", "rank", "t", "k", "v"]


@pytest.mark.parametrize(
    ("smallest", "expected"),
    [
        (False, [(0, "a", 1, 9, 3), (0, "a", 2, 5, 1), (0, "b", 1, -1, 4), (10, "a", 1, 7, 11)]),
        (True, [(0, "a", 1, 1, 2), (0, "a", 2, 5, 1), (0, "b", 1, -1, 4), (10, "a", 1, 7, 11)]),
    ],
)
def test_the_largest_and_the_smallest(smallest: bool, expected: list[tuple[Value, ...]]) -> None:
    data = table((1, "a", 5), (2, "a", 1), (3, "a", 9), (4, "b", -1), (5, "b", None), (11, "a", 7))
    result = run_one(STREAM.window(TEN, by="k").top_k(2, "v", smallest=smallest), data)
    assert ranks(result) == expected
    assert account_of(result)["rows_contributed"] == 6


def test_fewer_rows_than_places() -> None:
    assert ranks(STREAM.window(TEN, by="k").top_k(100, "v").run(table((1, "a", 5)))) == [(0, "a", 1, 5, 1)]


def test_rows_that_are_all_null_give_no_window() -> None:
    assert len(STREAM.window(TEN, by="k").top_k(1, "v").run(table((1, "a", None), (2, "b", None)))) == 0


def test_no_row_at_all() -> None:
    assert len(STREAM.window(TEN, by="k").top_k(1, "v").run(table())) == 0


def test_ties_are_broken_from_left_to_right() -> None:
    """The smaller value comes first, also among the largest."""
    data = table((4, "b", 1), (3, "z", 1), (3, "c", 1), (9, "a", 1))
    for smallest in (False, True):
        result = STREAM.window(TEN).top_k(3, "v", smallest=smallest).run(data)
        found = sorted((row["rank"], row["t"], row["k"]) for row in result.to_pylist())
        assert found == [(1, 3, "c"), (2, 3, "z"), (3, 4, "b")]


def test_equal_rows_have_places_of_their_own() -> None:
    result = STREAM.window(TEN, by="k").top_k(2, "v").run(table((1, "a", 5), (1, "a", 5), (1, "a", 5)))
    assert ranks(result) == [(0, "a", 1, 5, 1), (0, "a", 2, 5, 1)]


def test_rows_are_ordered_by_an_expression() -> None:
    result = STREAM.window(TEN, by="k").top_k(1, -col("v")).run(table((1, "a", 5), (2, "a", 3)))
    assert ranks(result) == [(0, "a", 1, 3, 2)]


def test_not_a_number_is_the_largest() -> None:
    stream = ps.stream({"t": "int64", "f": "float64"}, time="t").window(TEN)
    data = pa.table({"t": [1, 2, 3], "f": [float("inf"), float("nan"), -1.0]})
    found = [row["t"] for row in stream.top_k(3, "f").run(data).to_pylist()]
    assert found == [2, 1, 3]


def test_null_is_a_key_like_any_other() -> None:
    result = STREAM.window(TEN, by="k").top_k(1, "v").run(table((1, None, 5), (2, None, 6), (3, "a", 1)))
    assert ranks(result) == [(0, "a", 1, 1, 3), (0, None, 1, 6, 2)]


def test_each_sliding_window_has_its_own() -> None:
    result = (
        STREAM.window(ps.sliding(10, 5), by="k")
        .top_k(1, "v")
        .run(table((1, "a", 9), (6, "a", 5), (12, "a", 1)))
    )
    assert ranks(result) == [
        (-5, "a", 1, 9, 1), (0, "a", 1, 9, 1), (5, "a", 1, 5, 6), (10, "a", 1, 1, 12),
    ]  # fmt: skip


def test_text_of_rows_that_have_gone_out_of_memory_is_still_right() -> None:
    stream = ps.stream({"t": "int64", "name": "string", "v": "int64"}, time="t")
    query = stream.window(ps.tumbling(100_000)).top_k(3, "v").select("rank", "name")
    names = [f"a name that is long enough, number {n}" for n in range(20_000)]
    data = pa.table({"t": range(20_000), "name": names, "v": [n * 7919 % 20_000 for n in range(20_000)]})
    expected = [names[place] for place in sorted(range(20_000), key=lambda n: -(n * 7919 % 20_000))[:3]]
    rows = sorted(
        run_one(query, data.to_batches(500), budget="16MiB", block_rows=128).to_pylist(),
        key=lambda r: r["rank"],
    )
    assert [row["name"] for row in rows] == expected


def test_a_window_behind_the_first_rows() -> None:
    best = STREAM.window(TEN, by="k").top_k(1, "v")
    query = best.window(ps.tumbling(20)).agg(total=ps.sum("v"), n=ps.count())
    data = table((1, "a", 5), (2, "b", 3), (12, "a", 4), (19, "a", 1), (20, "a", 7))
    found = {row["window_start"]: (row["total"], row["n"]) for row in query.run(data).to_pylist()}
    assert found == {0: (12, 3), 20: (7, 1)}


@pytest.mark.parametrize("order", [[5, 12, 7], [12, 7]], ids=repr)
def test_allowed_lateness_is_kept_or_refused(order: list[int]) -> None:
    """What `window` was told is not forgotten in silence."""
    windowed = STREAM.window(TEN, by="k", allowed_lateness=10)
    try:
        query = windowed.top_k(1, "v")
    except ps.PlanError:
        return
    assert run_one(query, table(*((time, "a", 1) for time in order))).rows_late == 0


MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no place": (lambda: STREAM.window(TEN).top_k(0, "v"), ps.PlanError, "at least one"),
    "fewer than none": (lambda: STREAM.window(TEN).top_k(-1, "v"), ps.PlanError, "at least one"),
    "half a place": (lambda: STREAM.window(TEN).top_k(1.5, "v"), TypeError, "1.5"),  # type: ignore[arg-type]
    "a truth": (lambda: STREAM.window(TEN).top_k(True, "v"), TypeError, "True"),
    "sessions": (lambda: STREAM.window(ps.session(5)).top_k(1, "v"), ps.PlanError, "session"),
    "a rank": (lambda: STREAM.with_columns(rank=col("v")).window(TEN).top_k(1, "v"), ps.PlanError, "rank"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_asked_for(mistake: str) -> None:
    attempt, kind, words = MISTAKES[mistake]
    with pytest.raises(kind, match=words):
        attempt()


def test_an_unknown_column_is_named_with_the_closest_match() -> None:
    stream = ps.stream({"t": "int64", "speed": "int64"}, time="t")
    with pytest.raises(ps.UnknownColumnError) as caught:
        stream.window(TEN).top_k(1, "spede")
    assert (caught.value.column, caught.value.suggestion) == ("spede", "speed")
