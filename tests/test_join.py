"""Joins of windows, against nested loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference import live, strategies, windowed_cases
from reference.compare import as_bag
from reference.engine import arrow_schema, batches_of, rows_of
from reference.joining import Side, joined
from reference.options import account_of, run_one, run_options
from reference.plans import Row
from reference.types import FLOAT64, INT64, STRING, Type, Value
from reference.watchdog import watched
from reference.windowing import Windows, arrive

EXAMPLES = settings().max_examples
HOWS: tuple[Literal["inner", "left", "right", "full"], ...] = ("inner", "left", "right", "full")
SCHEMA = {"t": "int64", "k": "string", "v": "int64"}
LEFT = ps.stream(SCHEMA, time="t", name="left")
RIGHT = ps.stream(SCHEMA, time="t", name="right")


def table(*rows: tuple[int, str | None, int]) -> pa.Table:
    schema = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    return pa.Table.from_pylist([dict(zip(SCHEMA, row, strict=True)) for row in rows], schema)


def pairs(result: ps.Result) -> list[tuple[Value, ...]]:
    """Window, key and the values of both sides, in order."""
    found = [(row["window_start"], row["k"], row["v"], row["v_right"]) for row in rows_of(result)]
    return sorted(found, key=lambda row: tuple((value is None, value) for value in row))


# By hand.


@pytest.mark.parametrize("options", [{}, {"chain": "off"}, {"workers": 2}], ids=str)
def test_pairs_have_the_time_of_their_window(options: dict[str, Any]) -> None:
    """In a longer window the last is of the last of them; the latest row is found by its own column."""
    both = LEFT.join(RIGHT, window=ps.tumbling(10), on="k")
    data = {
        "left": table((1, "a", 9), (8, "a", 1), (12, "a", 5), (17, "a", 3)),
        "right": table((4, "a", 7), (14, "a", 7)),
    }
    ends = both.window(ps.tumbling(20), by="k").agg(first=ps.first("v"), last=ps.last("v"))
    assert [(row["first"], row["last"]) for row in run_one(ends, data, **options).to_pylist()] == [(1, 5)]
    latest = both.window(ps.tumbling(20), by="k").top_k(1, "t").select("t", "v")
    assert run_one(latest, data, **options).to_pylist() == [{"t": 17, "v": 3}]
    earliest = both.window(ps.tumbling(20), by="k").top_k(1, "t", smallest=True).select("t", "v")
    assert run_one(earliest, data, **options).to_pylist() == [{"t": 1, "v": 9}]


@pytest.mark.parametrize("options", [{}, {"chain": "off"}, {"workers": 2}], ids=str)
def test_what_is_written_instead_of_the_last_of_a_join(options: dict[str, Any]) -> None:
    both = LEFT.join(RIGHT, window=ps.tumbling(10), on="k")
    data = {"left": table((1, "a", 9), (8, "a", 1), (12, "a", 5)), "right": table((4, "a", 7), (14, "a", 7))}
    with pytest.raises(ps.PlanError, match=r"write max\(col\(\"v\"\)\), or \.top_k\(1, column\)"):
        both.window(ps.tumbling(10), by="k").agg(last=ps.last("v"))
    most = both.window(ps.tumbling(10), by="k").agg(most=ps.max("v"))
    assert sorted(row["most"] for row in run_one(most, data, **options).to_pylist()) == [5, 9]
    latest = both.window(ps.tumbling(10), by="k").top_k(1, "t").select("t", "v")
    found = run_one(latest, data, **options).to_pylist()
    assert sorted((row["t"], row["v"]) for row in found) == [(8, 1), (12, 5)]


@pytest.mark.parametrize("how", HOWS)
def test_each_kind_keeps_its_rows(how: Any) -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k", how=how)
    left = table((1, "both", 1), (2, "left", 2), (3, None, 3), (12, "both", 4))
    right = table((9, "both", 10), (5, "right", 20), (6, None, 30), (22, "both", 40))
    expected: list[tuple[Value, ...]] = [(0, "both", 1, 10)]
    if how in ("left", "full"):
        expected += [(0, "left", 2, None), (0, None, 3, None), (10, "both", 4, None)]
    if how in ("right", "full"):
        expected += [(0, "right", None, 20), (0, None, None, 30), (20, "both", None, 40)]
    result = run_one(query, {"left": left, "right": right})
    assert pairs(result) == sorted(expected, key=lambda row: tuple((value is None, value) for value in row))
    assert account_of(result)["rows_contributed"] == 8


def test_the_columns_of_a_join() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k")
    assert query.schema.names == ["window_start", "window_end", "k", "t", "v", "t_right", "v_right"]
    assert query.schema.types == ["int64", "int64", "string", "int64", "int64", "int64", "int64"]
    row = rows_of(query.run({"left": table((1, "a", 2)), "right": table((3, "a", 4))}))[0]
    assert list(row.values()) == [0, 10, "a", 1, 2, 3, 4]


def test_another_suffix() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k", suffix=" of the other")
    assert query.schema.names[-2:] == ["t of the other", "v of the other"]


def test_a_suffix_is_for_shared_names_only() -> None:
    query = LEFT.join(RIGHT.rename(v="offer"), window=ps.tumbling(10), on="k")
    assert query.schema.names == ["window_start", "window_end", "k", "t", "v", "t_right", "offer"]


def test_a_key_with_two_names_has_that_of_the_left() -> None:
    query = LEFT.join(RIGHT.rename(k="key"), window=ps.tumbling(10), left_on="k", right_on="key", how="full")
    assert query.schema.names == ["window_start", "window_end", "k", "t", "v", "t_right", "v_right"]
    result = query.run({"left": table((1, "a", 1), (1, "b", 2)), "right": table((2, "a", 3), (2, "c", 4))})
    assert pairs(result) == [(0, "a", 1, 3), (0, "b", 2, None), (0, "c", None, 4)]


def test_keys_are_paired_in_their_order() -> None:
    left, right = LEFT.rename(v="x"), RIGHT.rename(k="name", v="number")
    query = left.join(right, window=ps.tumbling(10), left_on=["x", "k"], right_on=["number", "name"])
    assert query.schema.names == ["window_start", "window_end", "x", "k", "t", "t_right"]
    data = {"left": table((1, "a", 1), (1, "a", 2)), "right": table((2, "a", 2), (2, "b", 1))}
    assert [(row["x"], row["k"]) for row in rows_of(query.run(data))] == [(2, "a")]


def test_one_null_among_several_keys_matches_nothing() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on=["v", "k"], how="full").select(
        "v", "k", "t", "t_right"
    )
    both = table((1, None, 1), (2, "a", 2))
    found = [tuple(row.values()) for row in rows_of(query.run({"left": both, "right": both}))]
    assert sorted(found, key=repr) == [(1, None, 1, None), (1, None, None, 1), (2, "a", 2, 2)]


def test_every_row_meets_every_other() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k").select(pair=col("v") * 1000 + col("v_right"))
    left = table(*((n % 10, "a", n) for n in range(30)))
    right = table(*((n % 10, "a", n) for n in range(20)))
    for block_rows in (None, 1, 7):
        result = run_one(query, {"left": left, "right": right}, block_rows=block_rows)
        assert sorted(row["pair"] for row in result.to_pylist()) == [
            n * 1000 + m for n in range(30) for m in range(20)
        ]


def test_a_pair_is_in_each_window_that_holds_both() -> None:
    query = LEFT.join(RIGHT, window=ps.sliding(10, 5), on="k", how="full")
    result = query.run({"left": table((6, "a", 1)), "right": table((11, "a", 2))})
    assert pairs(result) == [(0, "a", 1, None), (5, "a", 1, 2), (10, "a", None, 2)]


def test_a_row_at_the_end_of_a_window_is_in_the_next() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k")
    result = query.run({"left": table((9, "a", 1), (10, "a", 2)), "right": table((9, "a", 3), (10, "a", 4))})
    assert pairs(result) == [(0, "a", 1, 3), (10, "a", 2, 4)]


def test_windows_may_be_moved() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10, offset=5), on="k")
    data = {"left": table((4, "a", 1), (5, "a", 2)), "right": table((-5, "a", 3), (14, "a", 4))}
    assert pairs(query.run(data)) == [(-5, "a", 1, 3), (5, "a", 2, 4)]


def test_late_rows_are_left_out_and_counted_on_both_sides() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k", how="full")
    left, right = table((30, "a", 1), (5, "a", 2)), table((40, "a", 3), (6, "a", 4), (7, "a", 5))
    result = run_one(query, {"left": left, "right": right})
    assert pairs(result) == [(30, "a", 1, None), (40, "a", None, 3)]
    assert result.rows_late == 3
    with pytest.warns(ps.LateRowsWarning, match="3"):
        query.run({"left": left, "right": right})


def test_the_other_stream_makes_no_row_late() -> None:
    """Lateness belongs to a row and its own source, however far the other one is."""
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k")
    left = table(*((n, "a", n) for n in range(0, 1000, 10)))
    result = run_one(query, {"left": left, "right": table((5, "a", 5), (995, "a", 995))})
    assert result.rows_late == 0
    assert pairs(result) == [(0, "a", 0, 5), (990, "a", 990, 995)]


def test_one_side_is_empty() -> None:
    data = {"left": table((1, "a", 1)), "right": table()}
    counts = {
        how: LEFT.join(RIGHT, window=ps.tumbling(10), on="k", how=how).run(data).rows_out for how in HOWS
    }
    assert counts == {"inner": 0, "left": 1, "right": 0, "full": 1}


@pytest.mark.parametrize(
    ("kind", "keys", "matching"),
    [
        ("float64", [0.0, float("nan"), 1.0, None], 3),
        ("bool", [True, False, None], 2),
        ("binary", [b"", b"\x00", None], 2),
        ("decimal128(9, 2)", [Decimal(1), Decimal(2), None], 2),
        ("uint64", [0, 2**64 - 1, None], 2),
        ("date32", [0, 1, None], 2),
        ("timestamp[us]", [0, -1, None], 2),
    ],
)
def test_keys_of_any_type(kind: str, keys: list[Any], matching: int) -> None:
    one = ps.stream({"t": "int64", "k": kind}, time="t", name="one")
    two = ps.stream({"t": "int64", "k": kind}, time="t", name="two")
    arrow = pa.schema(one.schema).field("k").type
    data = pa.table({"t": pa.array([1] * len(keys), pa.int64()), "k": pa.array(keys, arrow)})
    result = run_one(one.join(two, window=ps.tumbling(10), on="k"), {"one": data, "two": data})
    assert result.rows_out == matching


def test_negative_zero_and_not_a_number_are_keys_like_others() -> None:
    one, two = (ps.stream({"t": "int64", "k": "float64"}, time="t", name=name) for name in ("one", "two"))
    query = one.join(two, window=ps.tumbling(10), on="k").select("k")
    nan = float("nan")
    data = {"one": pa.table({"t": [1, 1], "k": [-0.0, nan]}), "two": pa.table({"t": [2, 2], "k": [nan, 0.0]})}
    assert sorted(map(repr, (abs(row["k"]) for row in query.run(data).to_pylist()))) == ["0.0", "nan"]


# Behind and before other windows.


def test_a_join_of_windows_drops_their_bounds() -> None:
    views = LEFT.window(ps.tumbling(10), by="k").agg(views=ps.count())
    clicks = RIGHT.window(ps.tumbling(10), by="k").agg(clicks=ps.count())
    query = views.join(clicks, window=ps.tumbling(20), on="k", how="left")
    assert query.schema.names == ["window_start", "window_end", "k", "views", "clicks"]
    data = {"left": table((1, "a", 0), (2, "a", 0), (15, "a", 0)), "right": table((19, "a", 0), (20, "a", 0))}
    found = [tuple(row.values()) for row in rows_of(query.run(data))]
    assert sorted(found) == [(0, 20, "a", 1, 1), (0, 20, "a", 2, 1)]


def test_bounds_that_are_renamed_are_kept() -> None:
    views = LEFT.window(ps.tumbling(10), by="k").agg(views=ps.count())
    named = views.select("window_end", "k", "views", began="window_start")
    query = named.join(RIGHT, window=ps.tumbling(20), on="k").select("window_start", "began", "views", "v")
    result = query.run({"left": table((11, "a", 0)), "right": table((3, "a", 7))})
    assert rows_of(result) == [{"window_start": 0, "began": 10, "views": 1, "v": 7}]


def test_a_window_behind_a_join_holds_whole_windows() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k").window(ps.tumbling(20)).agg(n=ps.count())
    left, right = (
        table((1, "a", 0), (19, "a", 0), (20, "a", 0)),
        table((9, "a", 0), (10, "a", 0), (29, "a", 0)),
    )
    found = {row["window_start"]: row["n"] for row in rows_of(query.run({"left": left, "right": right}))}
    assert found == {0: 2, 20: 1}


def test_a_stream_joined_with_itself() -> None:
    stream = ps.stream(SCHEMA, time="t")
    query = stream.join(stream, window=ps.tumbling(10), on="k", how="full")
    result = run_one(query, table((1, "a", 1), (2, "a", 2), (3, None, 3), (14, "b", 4), (5, "a", 5)))
    assert pairs(result) == [
        (0, "a", 1, 1), (0, "a", 1, 2), (0, "a", 2, 1), (0, "a", 2, 2),
        (0, None, 3, None), (0, None, None, 3), (10, "b", 4, 4),
    ]  # fmt: skip
    account = account_of(result)
    assert (account["rows_in"], account["rows_copied"], account["rows_late"]) == (5, 5, 2)


# As rows come.


def test_pairs_leave_at_once_and_lonely_rows_when_their_window_closes() -> None:
    query = LEFT.join(RIGHT, window=ps.tumbling(10), on="k", how="left").select("k", "v", "v_right")
    left, right = ps.PushSource(), ps.PushSource()
    with ps.Engine(workers=2) as engine, watched(engine) as queries:
        running = engine.submit(query, source={"left": left, "right": right})
        queries.append(running)
        results = running.results()
        left.push(table((1, "a", 1), (2, "b", 2)))
        right.push(table((3, "a", 3)))
        assert rows_of(next(results)) == [{"k": "a", "v": 1, "v_right": 3}]
        right.push(table((10, "z", 4)))
        left.push(table((10, "z", 5)))
        found = rows_of(next(results))
        while len(found) < 2:
            found += rows_of(next(results))
        assert sorted(found, key=repr) == [
            {"k": "b", "v": 2, "v_right": None},
            {"k": "z", "v": 5, "v_right": 4},
        ]
        left.close()
        right.close()
        assert live.rows(results) == []
        assert running.status == "finished"


# At random.


@dataclass(frozen=True)
class Case:
    """Two streams under a join."""

    windows: Windows
    how: Any
    on: tuple[str, ...]
    key: Type
    sides: tuple[list[Row], list[Row]]
    cuts: tuple[list[int], list[int]]
    delays: tuple[int, int]
    options: dict[str, Any]

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        """Those of each of the streams."""
        return (("id", INT64), ("t", INT64), ("k", self.key), ("b", STRING))


@st.composite
def some_rows(draw: st.DrawFn, size: int, key: Type, first: int) -> list[Row]:
    times = draw(strategies.times(INT64, size))
    keys = st.sampled_from([*strategies.pool(key)[:5], None])
    cells = draw(st.lists(st.tuples(times, keys, st.sampled_from(["x", "y", None])), max_size=14))
    return [{"id": first + n, "t": t, "k": k, "b": b} for n, (t, k, b) in enumerate(cells)]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    windows = draw(st.one_of(windowed_cases.sliding_windows(), windowed_cases.tumbling_windows()))
    key = draw(st.sampled_from([STRING, FLOAT64, INT64]))
    sides = (draw(some_rows(windows.size, key, 0)), draw(some_rows(windows.size, key, 100)))
    delay = strategies.delays(INT64, windows.size)
    on = draw(st.sampled_from([("k",), ("b", "k"), ("b",)]))
    cuts = (draw(strategies.cuts(len(sides[0]))), draw(strategies.cuts(len(sides[1]))))
    how = draw(st.sampled_from(HOWS))
    return Case(windows, how, on, key, sides, cuts, (draw(delay), draw(delay)), draw(run_options()))


@settings(max_examples=max(10, EXAMPLES // 2))
@given(cases())
def test_random_joins_equal_nested_loops(case: Case) -> None:
    schema = arrow_schema(case.columns)
    left, right = (
        ps.stream(schema, time="t", delay=delay, name=name)
        for name, delay in zip(("left", "right"), case.delays, strict=True)
    )
    query = left.join(right, window=case.windows.build(), on=case.on, how=case.how)
    names = [name for name, _ in case.columns]
    sides = [
        Side(arrive(rows, "t", delay), names, case.on)
        for rows, delay in zip(case.sides, case.delays, strict=True)
    ]
    expected, late = joined(case.windows, sides[0], sides[1], case.how)
    batches = [batches_of(case.columns, rows, cuts) for rows, cuts in zip(case.sides, case.cuts, strict=True)]
    result = run_one(query, {"left": batches[0], "right": batches[1]}, **case.options)
    event(f"late rows: {min(len(late), 3)}, rows: {min(len(expected), 5)}")
    assert as_bag(rows_of(result)) == as_bag(expected)
    assert result.rows_late == len(late)
    assert all(list(row) == query.schema.names for row in expected)


@settings(max_examples=max(10, EXAMPLES // 2))
@given(cases())
def test_random_joins_of_a_stream_with_itself(case: Case) -> None:
    """A diamond: both sides are made of the same rows."""
    stream = ps.stream(arrow_schema(case.columns), time="t", delay=case.delays[0])
    some = stream.filter(col("id") % 3 != 0)
    query = some.join(stream, window=case.windows.build(), on=case.on, how=case.how)
    arrived = arrive([*case.sides[0], *case.sides[1]], "t", case.delays[0])
    names = [name for name, _ in case.columns]
    fewer = [one for one in arrived if int(str(one.row["id"])) % 3 != 0]
    expected, late = joined(
        case.windows, Side(fewer, names, case.on), Side(arrived, names, case.on), case.how
    )
    batches = batches_of(case.columns, [one.row for one in arrived], case.cuts[0])
    result = run_one(query, batches, **case.options)
    assert as_bag(rows_of(result)) == as_bag(expected)
    account = account_of(result)
    assert account["rows_late"] == len(late)
    assert account["rows_filtered"] == len(arrived) - len(fewer)
    assert account["rows_in"] == account["rows_copied"] == len(arrived)


# What cannot be joined.

WINDOW = ps.tumbling(10)
ANYTHING: dict[object, Any] = {"outer": "outer", 10: 10, "table": table()}
OTHER_TIME = ps.stream({"t": "timestamp[ms]", "k": "string"}, time="t", name="other")
MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "sessions": (lambda: LEFT.join(RIGHT, window=ps.session(10), on="k"), ps.PlanError, "session"),
    "no key": (lambda: LEFT.join(RIGHT, window=WINDOW), ps.PlanError, "key"),
    "an empty key": (lambda: LEFT.join(RIGHT, window=WINDOW, on=[]), ps.PlanError, "key"),
    "one key more on the left": (
        lambda: LEFT.join(RIGHT, window=WINDOW, left_on=["k", "v"], right_on="k"), ps.PlanError, "key"),
    "keys of different types": (
        lambda: LEFT.join(RIGHT, window=WINDOW, left_on="k", right_on="v"), ps.TypeMismatchError, "int64"),
    "times of different types": (
        lambda: LEFT.join(OTHER_TIME, window=WINDOW, on="k"), ps.TypeMismatchError, "timestamp"),
    "no time on the left": (
        lambda: LEFT.drop("t").join(RIGHT, window=WINDOW, on="k"), ps.MissingTimeColumnError, "time"),
    "no time on the right": (
        lambda: LEFT.join(RIGHT.drop("t"), window=WINDOW, on="k"), ps.MissingTimeColumnError, "time"),
    "two columns of one name": (
        lambda: LEFT.join(RIGHT, window=WINDOW, on="k", suffix=""), ps.PlanError, "two columns"),
    "a suffix that is taken": (
        lambda: LEFT.with_columns(v_right=col("v")).join(RIGHT, window=WINDOW, on="k"),
        ps.PlanError, "v_right"),
    "streams that nobody can tell apart": (
        lambda: ps.stream(SCHEMA, time="t").join(ps.stream(SCHEMA, time="t", delay=1), window=WINDOW, on="k"),
        ps.PlanError, "name"),
    "two streams of one name": (
        lambda: LEFT.join(ps.stream(SCHEMA, time="v", name="left"), window=WINDOW, on="k"),
        ps.PlanError, "left"),
    "another kind": (
        lambda: LEFT.join(RIGHT, window=WINDOW, on="k", how=ANYTHING["outer"]), ps.PlanError, "full"),
    "on and left_on": (lambda: LEFT.join(RIGHT, window=WINDOW, on="k", left_on="k"), TypeError, "left_on"),
    "no window": (lambda: LEFT.join(RIGHT, window=ANYTHING[10], on="k"), TypeError, "tumbling"),
    "a table": (lambda: LEFT.join(ANYTHING["table"], window=WINDOW, on="k"), TypeError, "Stream"),
    "a size of no time": (
        lambda: LEFT.join(RIGHT, window=ps.tumbling("10s"), on="k"), ps.DurationError, "10s"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_joined(mistake: str) -> None:
    attempt, kind, words = MISTAKES[mistake]
    with pytest.raises(kind, match=words):
        attempt()


@pytest.mark.parametrize("side", ["left_on", "right_on", "on"])
def test_an_unknown_column_is_named_with_the_closest_match(side: str) -> None:
    one, two = (ps.stream({"t": "int64", "city": "string"}, time="t", name=name) for name in ("one", "two"))
    keys: dict[str, Any] = {"left_on": "city", "right_on": "city"} if side != "on" else {}
    with pytest.raises(ps.UnknownColumnError, match="ctiy") as caught:
        one.join(two, window=WINDOW, **{**keys, side: "ctiy"})
    assert (caught.value.column, caught.value.suggestion) == ("ctiy", "city")
