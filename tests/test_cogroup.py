"""Two streams by window and key, each with aggregates of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference import strategies, windowed_cases
from reference.compare import as_bag
from reference.engine import arrow_schema, batches_of, rows_of
from reference.grouping import Aggregates, build, cogrouped
from reference.options import account_of, run_one, run_options
from reference.plans import Row
from reference.types import FLOAT64, INT64, STRING, Type, Value
from reference.watchdog import watched
from reference.windowing import arrive

EXAMPLES = settings().max_examples
SCHEMA = {"t": "int64", "k": "string", "v": "int64"}
LEFT = ps.stream(SCHEMA, time="t", name="left")
RIGHT = ps.stream(SCHEMA, time="t", name="right")
TEN = ps.tumbling(10)
MANY: Aggregates = {
    "m": ("count", None),
    "values": ("count", "id"),
    "ids": ("sum", "id"),
    "first": ("first", "s"),
}
OTHERS: Aggregates = {
    "n": ("count", None),
    "different": ("count_distinct", "s"),
    "last": ("last", "s"),
    "most": ("max", "id"),
}


def table(*rows: tuple[int, str | None, int | None]) -> pa.Table:
    schema = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    return pa.Table.from_pylist([dict(zip(SCHEMA, row, strict=True)) for row in rows], schema)


def counted(window: ps.Window = TEN, **keys: Any) -> ps.Stream:
    groups = LEFT.cogroup(RIGHT, window=window, **(keys or {"by": "k"}))
    return groups.agg(
        left={"m": ps.count(), "total": ps.sum("v")}, right={"n": ps.count("v"), "most": ps.max("v")}
    )


def found(result: ps.Result) -> list[tuple[Value, ...]]:
    rows = [tuple(row.values()) for row in rows_of(result)]
    return sorted(rows, key=lambda row: tuple((value is None, value) for value in row))


# At random.


@st.composite
def some_rows(draw: st.DrawFn, size: int, key: Type, first: int) -> list[Row]:
    times = draw(strategies.times(INT64, size))
    keys = st.sampled_from([*strategies.pool(key)[:5], None])
    cells = draw(st.lists(st.tuples(times, keys, st.sampled_from(["x", "", None])), max_size=20))
    return [{"id": first + n, "t": t, "k": k, "s": s} for n, (t, k, s) in enumerate(cells)]


ANY_WINDOWS = st.one_of(
    windowed_cases.sliding_windows(), windowed_cases.tumbling_windows(), windowed_cases.session_windows()
)


@settings(max_examples=max(10, EXAMPLES // 2))
@given(st.data(), run_options())
def test_random_streams_equal_the_reference(data: st.DataObject, options: dict[str, Any]) -> None:
    windows = data.draw(ANY_WINDOWS)
    key = data.draw(st.sampled_from([STRING, FLOAT64, INT64]))
    by = data.draw(st.sampled_from([[], ["k"], ["s", "k"]]))
    columns: tuple[tuple[str, Type], ...] = (("id", INT64), ("t", INT64), ("k", key), ("s", STRING))
    sides = [data.draw(some_rows(windows.size, key, first)) for first in (0, 100)]
    delays = [data.draw(strategies.delays(INT64, windows.size)) for _ in sides]
    left, right = (
        ps.stream(arrow_schema(columns), time="t", delay=delay, name=name)
        for name, delay in zip(("left", "right"), delays, strict=True)
    )
    query = left.cogroup(right, window=windows.build(), by=by).agg(left=build(MANY), right=build(OTHERS))
    arrived = [arrive(rows, "t", delay) for rows, delay in zip(sides, delays, strict=True)]
    expected, late = cogrouped(windows, (arrived[0], arrived[1]), (by, by), (MANY, OTHERS))
    batches = {
        name: batches_of(columns, rows, data.draw(strategies.cuts(len(rows))))
        for name, rows in zip(("left", "right"), sides, strict=True)
    }
    result = run_one(query, batches, **options)
    event(f"{windows.kind}, late rows: {min(late, 3)}, rows: {min(len(expected), 5)}")
    assert as_bag(rows_of(result)) == as_bag(expected)
    assert result.rows_late == late
    assert all(list(row) == query.schema.names for row in expected)


@settings(max_examples=max(10, EXAMPLES // 6))
@given(some_rows(10, STRING, 0), ANY_WINDOWS)
def test_a_stream_with_itself_counts_everything_twice(rows: list[Row], windows: Any) -> None:
    columns: tuple[tuple[str, Type], ...] = (("id", INT64), ("t", INT64), ("k", STRING), ("s", STRING))
    stream = ps.stream(arrow_schema(columns), time="t")
    query = stream.cogroup(stream, window=windows.build(), by="k").agg(
        left={"m": ps.count(), "a": ps.sum("id")}, right={"n": ps.count(), "b": ps.sum("id")}
    )
    result = run_one(query, batches_of(columns, rows))
    account = account_of(result)
    assert account["rows_copied"] == account["rows_in"] == len(rows)
    assert all((row["m"], row["a"]) == (row["n"], row["b"]) for row in rows_of(result))


# By hand.


def test_each_key_of_either_stream_gives_a_row() -> None:
    left = table((1, "both", 1), (2, "both", 2), (3, "left", None), (4, None, 4))
    right = table((5, "both", 10), (6, "right", 20), (7, "right", None), (8, None, 40), (12, "both", 50))
    result = run_one(counted(), {"left": left, "right": right})
    assert found(result) == [
        (0, 10, "both", 2, 3, 1, 10), (0, 10, "left", 1, None, 0, None), (0, 10, "right", 0, None, 1, 20),
        (0, 10, None, 1, 4, 1, 40), (10, 20, "both", 0, None, 1, 50),
    ]  # fmt: skip
    assert account_of(result)["rows_contributed"] == 9


def test_the_columns() -> None:
    query = counted()
    assert query.schema.names == ["window_start", "window_end", "k", "m", "total", "n", "most"]
    assert query.schema.types == ["int64", "int64", "string", "int64", "int64", "int64", "int64"]
    assert query.time == "window_end"
    one_side = LEFT.cogroup(RIGHT, window=TEN, by="k").agg(right={"n": ps.count()})
    assert one_side.schema.names == ["window_start", "window_end", "k", "n"]


def test_without_a_key_a_window_is_one_group() -> None:
    result = counted(by=None).run({"left": table((1, "a", 1)), "right": table((2, "b", 2), (3, "c", 3))})
    assert found(result) == [(0, 10, 1, 1, 2, 3)]


def test_keys_of_different_names() -> None:
    right = RIGHT.rename(k="name")
    query = LEFT.cogroup(right, window=TEN, left_by="k", right_by="name").agg(
        left={"m": ps.count()}, right={"n": ps.count()}
    )
    assert query.schema.names == ["window_start", "window_end", "k", "m", "n"]
    result = query.run({"left": table((1, "a", 1)), "right": table((2, "a", 2), (3, "b", 3))})
    assert found(result) == [(0, 10, "a", 1, 1), (0, 10, "b", 0, 1)]


def test_keys_may_be_expressions() -> None:
    parity = (col("v") % 2).alias("parity")
    result = counted(by=[parity]).run({"left": table((1, "a", 1), (1, "a", 3)), "right": table((2, "b", 2))})
    assert found(result) == [(0, 10, 0, 0, None, 1, 2), (0, 10, 1, 2, 4, 0, None)]


def test_a_session_is_made_of_both_streams() -> None:
    """A row of the one stream brings two sessions of the other one together."""
    result = counted(ps.session(10)).run(
        {"left": table((0, "a", 1), (18, "a", 2)), "right": table((9, "a", 3))}
    )
    assert found(result) == [(0, 28, "a", 2, 3, 1, 3)]
    apart = counted(ps.session(10)).run(
        {"left": table((0, "a", 1), (18, "a", 2)), "right": table((9, "b", 3))}
    )
    assert found(apart) == [
        (0, 10, "a", 1, 1, 0, None), (9, 19, "b", 0, None, 1, 3), (18, 28, "a", 1, 2, 0, None),
    ]  # fmt: skip


def test_each_sliding_window_has_its_own_groups() -> None:
    result = counted(ps.sliding(10, 5)).run({"left": table((6, "a", 1)), "right": table((11, "a", 2))})
    assert found(result) == [
        (0, 10, "a", 1, 1, 0, None), (5, 15, "a", 1, 1, 1, 2), (10, 20, "a", 0, None, 1, 2),
    ]  # fmt: skip


def test_late_rows_of_both_sides_are_counted() -> None:
    left, right = table((25, "a", 1), (5, "a", 2)), table((3, "a", 3), (35, "a", 4), (29, "a", 5))
    result = run_one(counted(), {"left": left, "right": right})
    assert found(result) == [
        (0, 10, "a", 0, None, 1, 3), (20, 30, "a", 1, 1, 0, None), (30, 40, "a", 0, None, 1, 4),
    ]  # fmt: skip
    assert result.rows_late == 2


def test_one_stream_is_empty() -> None:
    for name, row in (("left", (0, 10, "a", 1, 1, 0, None)), ("right", (0, 10, "a", 0, None, 1, 1))):
        data = {"left": table(), "right": table(), name: table((1, "a", 1))}
        assert found(counted().run(data)) == [row]
    assert len(counted().run({"left": table(), "right": table()})) == 0


def test_a_window_behind_groups_holds_whole_windows() -> None:
    query = counted().window(ps.tumbling(20)).agg(m=ps.sum("m"), n=ps.sum("n"))
    data = {"left": table((1, "a", 1), (19, "a", 1), (20, "a", 1)), "right": table((9, "a", 1), (10, "b", 1))}
    assert found(query.run(data)) == [(0, 20, 2, 2), (20, 40, 1, 0)]


def test_groups_leave_when_both_streams_have_come_so_far() -> None:
    left, right = ps.PushSource(), ps.PushSource()
    with ps.Engine(workers=2) as engine, watched(engine) as queries:
        running = engine.submit(counted(), source={"left": left, "right": right})
        queries.append(running)
        left.push(table((1, "a", 1), (50, "a", 1)))
        right.push(table((2, "a", 2)))
        right.push(table((3, "a", 3), (10, "z", 4)))
        assert rows_of(next(running.results())) == [
            {"window_start": 0, "window_end": 10, "k": "a", "m": 1, "total": 1, "n": 2, "most": 3}
        ]
        running.stop()


NO_AGGREGATES: Any = {"n": "count"}
WRONG = ps.stream({"t": "int64", "k": "int64", "v": "int64"}, time="t", name="wrong")
MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "keys of different types": (
        lambda: LEFT.cogroup(WRONG, window=TEN, by="k").agg(left={"n": ps.count()}),
        ps.TypeMismatchError, "int64"),
    "two columns of one name": (
        lambda: LEFT.cogroup(RIGHT, window=TEN, by="k").agg(left={"n": ps.count()}, right={"n": ps.count()}),
        ps.PlanError, "n"),
    "the name of a key": (
        lambda: LEFT.cogroup(RIGHT, window=TEN, by="k").agg(left={"k": ps.count()}), ps.PlanError, "k"),
    "the name of a bound": (
        lambda: LEFT.cogroup(RIGHT, window=TEN, by="k").agg(left={"window_end": ps.count()}),
        ps.PlanError, "window_end"),
    "more keys on one side": (
        lambda: LEFT.cogroup(RIGHT, window=TEN, left_by=["k", "v"], right_by="k").agg(left={"n": ps.count()}),
        ps.PlanError, "keys"),
    "no time": (
        lambda: LEFT.cogroup(RIGHT.drop("t"), window=TEN, by="k"), ps.MissingTimeColumnError, "time"),
    "a total of text": (
        lambda: LEFT.cogroup(RIGHT, window=TEN).agg(right={"x": ps.sum("k")}), ps.TypeMismatchError, "sum"),
    "by and left_by": (lambda: LEFT.cogroup(RIGHT, window=TEN, by="k", left_by="k"), TypeError, "left_by"),
    "no window": (lambda: LEFT.cogroup(RIGHT, window=10), TypeError, "tumbling"),  # type: ignore[arg-type]
    "a table": (lambda: LEFT.cogroup(table(), window=TEN), TypeError, "Stream"),
    "no aggregate": (
        lambda: LEFT.cogroup(RIGHT, window=TEN, by="k").agg(left=NO_AGGREGATES), TypeError, "aggregates"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_grouped(mistake: str) -> None:
    attempt, kind, words = MISTAKES[mistake]
    with pytest.raises(kind, match=words):
        attempt()


@pytest.mark.parametrize("where", ["left key", "right key", "left aggregate", "right aggregate"])
def test_an_unknown_column_is_named_with_the_closest_match(where: str) -> None:
    one, two = (ps.stream({"t": "int64", "city": "string"}, time="t", name=name) for name in ("one", "two"))
    wrong = ps.count("ctiy")
    attempts: dict[str, Callable[[], object]] = {
        "left key": lambda: one.cogroup(two, window=TEN, left_by="ctiy", right_by="city"),
        "right key": lambda: one.cogroup(two, window=TEN, left_by="city", right_by="ctiy"),
        "left aggregate": lambda: one.cogroup(two, window=TEN).agg(left={"n": wrong}),
        "right aggregate": lambda: one.cogroup(two, window=TEN).agg(right={"n": wrong}),
    }
    with pytest.raises(ps.UnknownColumnError) as caught:
        attempts[where]()
    assert (caught.value.column, caught.value.suggestion) == ("ctiy", "city")
