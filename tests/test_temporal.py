"""Functions of times, against Python's own calendar and the zones of `zoneinfo`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from reference.arithmetic import FailedError, RefusedError
from reference.casts import zone_of
from reference.compare import assert_same_rows
from reference.engine import arrow_schema, rows_of, table_of
from reference.functions import part, truncated
from reference.plans import Columns, Row
from reference.types import (
    DATE32,
    DATE64,
    INT64,
    PER_SECOND,
    STRING,
    TIME32_MS,
    TIME32_S,
    TIME64_NS,
    TIME64_US,
    Type,
    Value,
    duration,
    timestamp,
)

COL = ps.col
PARTS = ("year", "month", "day", "hour", "minute", "second", "millisecond", "weekday", "ordinal_day", "date")
# Zones whose rules are old, with whole and half hours, and with summer in June and in December.
ZONES = (
    None,
    "UTC",
    "+05:30",
    "-03:30",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Sydney",
)
MORE_ZONES = (
    "America/Santiago",
    "America/Havana",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Pacific/Auckland",
)
KINDS = [
    *(timestamp(unit, zone) for unit in PER_SECOND for zone in ZONES),
    DATE32, DATE64, TIME32_S, TIME32_MS, TIME64_US, TIME64_NS,
]  # fmt: skip
FIRST = int(datetime(1, 1, 3, tzinfo=UTC).timestamp())
LAST = int(datetime(9999, 12, 29, tzinfo=UTC).timestamp())


@pytest.mark.parametrize("zone", [*filter(None, ZONES), *MORE_ZONES])
def test_clocks_change_for_ever(zone: str) -> None:
    """Rules do not end where tables do: every three hours around the changes of years near and far."""
    times = [
        int(datetime(year, month, day, tzinfo=UTC).timestamp()) + 3 * 3600 * step
        for year in (2037, 2038, 2099, 2100, 2101, 2104, 2128, 2200, 2400, 3000, 9998)
        for month, day in (
            (1, 1),
            (2, 27),
            (3, 8),
            (3, 25),
            (4, 1),
            (9, 24),
            (10, 1),
            (10, 25),
            (11, 1),
            (12, 31),
        )
        for step in range(60)
    ]
    column = pa.array(times, pa.int64()).cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("s", zone))
    stream = ps.stream({"t": f"timestamp[s, tz={zone}]"}).select(h=COL("t").dt.hour(), d=COL("t").dt.day())
    found = [(row["h"], row["d"]) for row in stream.run(pa.table({"t": column})).to_pylist()]
    there = [datetime.fromtimestamp(time, zone_of(zone)) for time in times]
    assert found == [(local.hour, local.day) for local in there]


@pytest.mark.parametrize(
    ("kind", "day"), [("time64[us]", 86_400_000_000), ("time32[s]", 86_400), ("time64[ns]", 86_400 * 10**9)]
)
def test_a_time_of_day_beyond_the_day_is_a_number(kind: str, day: int) -> None:
    """Arrow lets any number stand in such a column; it is neither wrapped around nor written as a time."""
    plain = pa.int32() if kind == "time32[s]" else pa.int64()
    values = [-1, 0, day - 1, day, 3 * day, None]
    column = pa.array(values, plain).view(pa.schema(ps.stream({"t": kind}).schema)[0].type)
    stream = ps.stream({"t": kind})
    data = pa.table({"t": column})
    rows = [row["t"] for row in stream.run(data).to_pylist()]
    assert [rows[0], *rows[3:]] == [-1, day, 3 * day, None]
    texts = stream.select(s=COL("t").cast("string"))
    with pytest.raises(ps.ComputeError, match="-1 of time.* is no time of day"):
        texts.run(data)
    kept = texts.run(data, on_error="skip")
    assert (kept.rows_rejected, kept.to_pylist()[0]["s"], kept.to_pylist()[2]["s"]) == (3, "00:00:00", None)
    assert kept.to_pylist()[1]["s"].startswith("23:59:59")


@pytest.mark.parametrize(
    ("kind", "day"),
    [
        ("time32[s]", 86_400),
        ("time32[ms]", 86_400_000),
        ("time64[us]", 86_400_000_000),
        ("time64[ns]", 86_400 * 10**9),
    ],
)
def test_a_time_of_day_beyond_the_day_has_no_parts(kind: str, day: int) -> None:
    plain = pa.int32() if kind.startswith("time32") else pa.int64()
    column = pa.array([-1, 0, day - 1, day, 3 * day, None], plain)
    data = pa.table({"t": column.view(pa.schema(ps.stream({"t": kind}).schema)[0].type)})
    for name, last in {"hour": 23, "minute": 59, "second": 59, "millisecond": None}.items():
        expression = getattr(COL("t").dt, name)()
        parts = ps.stream({"t": kind}).select(r=expression)
        with pytest.raises(ps.ComputeError, match=rf"dt\.{name}\(\): -1 of time.* is no time of day"):
            parts.run(data)
        kept = parts.run(data, on_error="skip")
        rows = [row["r"] for row in kept.to_pylist()]
        assert (kept.rows_rejected, rows[0], rows[2]) == (3, 0, None)
        assert last is None or rows[1] == last
        # Rows that nobody asks about do not count.
        is_time = (COL("t").cast("int64") >= 0) & (COL("t").cast("int64") < day)
        chosen = ps.stream({"t": kind}).select(r=ps.when(is_time).then(expression).otherwise(-1))
        assert [row["r"] for row in chosen.run(data).to_pylist()][3:5] == [-1, -1]


def compute(columns: Columns, expression: ps.Expr, rows: list[Row]) -> list[dict[str, Value]]:
    stream = ps.stream(arrow_schema(columns)).select("id", r=expression)
    return rows_of(stream.run(table_of(columns, rows)))


def seconds(kind: Type) -> st.SearchStrategy[int]:
    """Seconds from the epoch that Python's calendar and a column of the type hold."""
    if kind.kind == "time":
        return st.integers(0, 86_399)
    if kind.kind == "date":
        return st.integers(FIRST // 86_400, LAST // 86_400).map(lambda day: day * 86_400)
    # Before 1900 clocks follow the sun: zones are compared from then on, for ever.
    low, high = (FIRST if kind.zone in (None, "UTC") else -2_000_000_000), LAST
    if kind.unit == "ns":
        low, high = max(low, -(2**63) // 10**9 + 1), min(high, 2**63 // 10**9 - 1)
    near = st.sampled_from(
        [0, -1, 1, 1_711_846_800, 1_711_846_799, 1_729_990_800, 1_729_990_799, -86_400, low, high]
    )
    return st.one_of(near, st.integers(max(low, -(10**9)), min(high, 2 * 10**9)), st.integers(low, high))


def ticks(kind: Type) -> st.SearchStrategy[int]:
    if kind.unit == "d":
        return seconds(kind).map(lambda second: second // 86_400)
    per_second = PER_SECOND[kind.unit]
    rest = st.just(0) if kind.kind == "date" else st.integers(0, per_second - 1)
    return st.builds(lambda second, rest: second * per_second + rest, seconds(kind), rest)


CASES = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(st.one_of(st.none(), ticks(kind)), max_size=12))
)


@given(CASES, st.sampled_from(PARTS))
def test_parts_of_times(case: tuple[Type, list[int | None]], name: str) -> None:
    kind, cells = case
    columns: Columns = (("id", INT64), ("a", kind))
    expression = getattr(COL("a").dt, name)()
    try:
        part(name, 0, kind)
    except RefusedError:
        with pytest.raises(ps.TypeMismatchError, match=rf"dt\.{name}\(\) needs a timestamp or a"):
            ps.stream(arrow_schema(columns)).select(r=expression)
        return
    rows: list[Row] = [{"id": i, "a": cell} for i, cell in enumerate(cells)]
    expected: list[dict[str, Value]] = [
        {"id": i, "r": None if cell is None else part(name, cell, kind)} for i, cell in enumerate(cells)
    ]
    assert_same_rows(expected, compute(columns, expression, rows), ["id"])
    wanted = "date32" if name == "date" else "int64"
    assert ps.stream(arrow_schema(columns)).select(r=expression).schema.types == [wanted]


STEPS = {"15m": 900, "1h": 3_600, "1h30m": 5_400, "1d": 86_400, "1w": 604_800, "7s": 7}


@given(CASES, st.sampled_from(list(STEPS)))
def test_truncation(case: tuple[Type, list[int | None]], every: str) -> None:
    kind, cells = case
    columns: Columns = (("id", INT64), ("a", kind))
    expression = COL("a").dt.truncate(every)
    stream = ps.stream(arrow_schema(columns))
    if kind.kind == "time":
        with pytest.raises(ps.TypeMismatchError, match="needs a timestamp or a date"):
            stream.select(r=expression)
        return
    if kind.kind == "date" and STEPS[every] % 86_400:
        with pytest.raises(ps.PlanError, match=r"whole"):
            stream.select(r=expression)
        return
    step = STEPS[every] * kind.ticks_per_day() // 86_400
    rows: list[Row] = []
    expected: list[dict[str, Value]] = []
    for i, cell in enumerate(cells):
        try:
            expected.append({"id": i, "r": None if cell is None else truncated(cell, step)})
            rows.append({"id": i, "a": cell})
        except FailedError:
            continue
    assert_same_rows(expected, compute(columns, expression, rows), ["id"])
    assert stream.select(r=expression).schema.types == [str(kind)]


def value_of(expression: ps.Expr, cells: list[Any], kind: pa.DataType) -> list[Any]:
    table = pa.table({"a": pa.array(cells, kind)})
    values: list[Any] = pa.table(ps.stream(table.schema).select(r=expression).run(table))["r"].to_pylist()
    return values


def test_times_before_1970_are_no_exception() -> None:
    last = datetime(1969, 12, 31, 23, 59, 59, 999_000)
    for name, wanted in [
        ("year", 1969), ("month", 12), ("day", 31), ("hour", 23), ("minute", 59), ("second", 59),
        ("millisecond", 999), ("weekday", 3), ("ordinal_day", 365), ("date", date(1969, 12, 31)),
    ]:  # fmt: skip
        assert value_of(getattr(COL("a").dt, name)(), [last], pa.timestamp("ms")) == [wanted]
    assert value_of(COL("a").dt.truncate("1h"), [last], pa.timestamp("ms")) == [datetime(1969, 12, 31, 23)]


def test_weeks_begin_on_monday() -> None:
    week = [date(2024, 4, 29) + timedelta(days=day) for day in range(7)]
    assert value_of(COL("a").dt.weekday(), week, pa.date32()) == [1, 2, 3, 4, 5, 6, 7]


def test_leap_years() -> None:
    days = [date(1900, 12, 31), date(2000, 12, 31), date(2024, 2, 29), date(2023, 3, 1)]
    assert value_of(COL("a").dt.ordinal_day(), days, pa.date32()) == [365, 366, 60, 60]


def test_a_zone_is_read_on_its_clocks() -> None:
    noon = datetime(2024, 7, 1, 22, 30, tzinfo=UTC)
    for zone, hour, day in [
        ("UTC", 22, 1),
        ("Europe/Berlin", 0, 2),
        ("America/New_York", 18, 1),
        ("+09:00", 7, 2),
    ]:
        kind = pa.timestamp("us", zone)
        assert value_of(COL("a").dt.hour(), [noon], kind) == [hour]
        assert value_of(COL("a").dt.day(), [noon], kind) == [day]
        assert value_of(COL("a").dt.date(), [noon], kind) == [date(2024, 7, day)]
        assert value_of(COL("a").cast("date32"), [noon], kind) == [date(2024, 7, day)]
        # Steps are those of UTC, as windows are.
        assert value_of(COL("a").dt.truncate("1d"), [noon], kind) == [datetime(2024, 7, 1, tzinfo=UTC)]


def test_an_unknown_zone_is_refused_by_name() -> None:
    stream = ps.stream({"a": "timestamp[s, tz=Mars/Olympus]"})
    with pytest.raises(ps.PlanError, match='"Mars/Olympus"'):
        stream.select(r=COL("a").dt.hour())
    assert stream.select(r=COL("a").dt.truncate("1h")).schema.names == ["r"]


def test_the_ends_of_time() -> None:
    ends = [-(2**63), 2**63 - 1]
    for unit in PER_SECOND:
        assert len(value_of(COL("a").dt.year(), ends, pa.timestamp(unit))) == 2
    assert value_of(COL("a").dt.year(), ends, pa.timestamp("s")) == [-292_277_022_657, 292_277_026_596]
    with pytest.raises(ps.ComputeError, match=r"timestamp\[s\] overflow"):
        value_of(COL("a").dt.truncate("1d"), ends, pa.timestamp("s"))
    with pytest.raises(ps.ComputeError, match="overflow"):
        value_of(COL("a").dt.hour(), ends, pa.timestamp("s", "+01:00"))
    with pytest.raises(ps.ComputeError, match="date32 overflow"):
        value_of(COL("a").dt.date(), ends, pa.timestamp("s"))


@pytest.mark.parametrize("every", [timedelta(minutes=5), 300_000, "300s", "5m"])
def test_durations_of_all_kinds(every: str | int | timedelta) -> None:
    at = datetime(2024, 5, 1, 12, 34, 56)
    assert value_of(COL("a").dt.truncate(every), [at], pa.timestamp("ms")) == [datetime(2024, 5, 1, 12, 30)]


def test_durations_that_cannot_be() -> None:
    stream = ps.stream({"a": "timestamp[s]", "s": "string"})
    cases: list[tuple[Any, type[Exception], str]] = [
        ("5 parsecs", ps.DurationError, "unknown unit"),
        ("1ms", ps.DurationError, "whole number of units"),
        (0, ps.PlanError, "above zero"),
        (-5, ps.PlanError, "above zero"),
        (timedelta(seconds=-1), ps.PlanError, "duration"),
    ]
    for every, error, words in cases:
        with pytest.raises(error, match=words):
            stream.select(r=COL("a").dt.truncate(every))
    with pytest.raises(TypeError, match="every must be a duration"):
        COL("a").dt.truncate(1.5)  # type: ignore[arg-type]


def test_only_times_have_these_functions() -> None:
    for kind in (INT64, STRING, duration("s")):
        for name in PARTS:
            with pytest.raises(ps.TypeMismatchError) as caught:
                ps.stream({"a": str(kind)}).select(r=getattr(COL("a").dt, name)())
            assert f"dt.{name}()" in str(caught.value)
            assert str(kind) in str(caught.value)


def test_they_print_as_python_and_survive_json() -> None:
    expression = COL("a").dt.truncate("1h").dt.hour() + COL("a").dt.ordinal_day()
    assert repr(expression) == 'col("a").dt.truncate("1h").dt.hour() + col("a").dt.ordinal_day()'
    stream = ps.stream({"a": "timestamp[ms]"}).select(r=expression)
    assert ps.Stream.from_json(stream.to_json()) == stream
