"""Errors: each of its own class, naming the thing and what to do; and after one, everything still works."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference.engine import run_quietly

SCHEMA = {"event_time": "timestamp[ms]", "event_type": "string", "price": "int64", "campaign_id": "int32"}


def stream(**options: str) -> ps.Stream:
    return ps.stream(SCHEMA, time="event_time", **options)


CLASSES: dict[type[Exception], tuple[type[Exception], ...]] = {
    ps.PlanError: (ps.PenstockError, ValueError),
    ps.UnknownColumnError: (ps.PlanError,),
    ps.TypeMismatchError: (ps.PlanError,),
    ps.MissingTimeColumnError: (ps.PlanError,),
    ps.UnsupportedTypeError: (ps.PlanError,),
    ps.DurationError: (ps.PlanError,),
    ps.SizeError: (ps.PlanError, ValueError),
    ps.DataError: (ps.PenstockError, ValueError),
    ps.SchemaMismatchError: (ps.DataError,),
    ps.NullTimeError: (ps.DataError,),
    ps.TimeAheadError: (ps.DataError,),
    ps.StreamConsumedError: (ps.DataError,),
    ps.InputError: (ps.DataError,),
    ps.ComputeError: (ps.PenstockError, ArithmeticError),
    ps.MemoryLimitExceeded: (ps.PenstockError, MemoryError),
    ps.EngineError: (ps.PenstockError, RuntimeError),
}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_family_of_errors(kind: type[Exception]) -> None:
    for parent in CLASSES[kind]:
        assert issubclass(kind, parent)
    assert issubclass(kind, ps.PenstockError)
    assert kind.__module__.startswith("penstock")
    assert kind.__doc__


USES: dict[str, Callable[[str], object]] = {
    "filter": lambda name: stream().filter(ps.col(name) == "view"),
    "select by name": lambda name: stream().select(name),
    "select": lambda name: stream().select(ps.col(name).alias("x")),
    "with columns": lambda name: stream().with_columns(x=ps.col(name)),
    "lookup": lambda name: stream().lookup(pa.table({name: ["a"], "n": [1]}), on=name),
    "window key": lambda name: stream().window(ps.tumbling("1s"), by=name),
    "window keys": lambda name: stream().window(ps.tumbling("1s"), by=["price", name]),
    "aggregate": lambda name: stream().window(ps.tumbling("1s")).agg(ps.max(name)),
    "time column": lambda name: ps.stream(SCHEMA, time=name),
}


@pytest.mark.parametrize("use", USES)
def test_an_unknown_column_is_named_with_the_closest_match(use: str) -> None:
    with pytest.raises(ps.UnknownColumnError, match="evnt_type") as caught:
        USES[use]("evnt_type")
    error = caught.value
    assert (error.column, error.suggestion) == ("evnt_type", "event_type")
    assert list(error.available) == list(SCHEMA)
    assert "event_type" in str(error)


@pytest.mark.parametrize("use", USES)
def test_without_anything_close_there_is_no_suggestion(use: str) -> None:
    with pytest.raises(ps.UnknownColumnError, match="zzzzzzzz") as caught:
        USES[use]("zzzzzzzz")
    assert caught.value.suggestion is None
    for name in SCHEMA:
        assert name in str(caught.value), "the columns there are help as well"


def test_case_counts_as_close() -> None:
    with pytest.raises(ps.UnknownColumnError) as caught:
        stream().select("Price")
    assert caught.value.suggestion == "price"


def test_columns_that_are_gone_are_unknown() -> None:
    with pytest.raises(ps.UnknownColumnError) as caught:
        stream().select("event_time", "price").filter(ps.col("event_type") == "view")
    assert list(caught.value.available) == ["event_time", "price"]


def test_a_window_needs_a_time_column() -> None:
    without = [
        ps.stream(SCHEMA),
        stream().select("price"),
        stream().window(ps.tumbling("1s"), allowed_lateness="1s").agg(ps.count()),
        stream().window(ps.tumbling("1s")).agg(ps.count()).select("count"),
        stream().window(ps.tumbling("1s")).agg(ps.count()).split_late()[1],
    ]
    for timeless in without:
        with pytest.raises(ps.MissingTimeColumnError, match="time"):
            timeless.window(ps.tumbling("1s"), by=None)


@pytest.mark.parametrize(
    "kind", ["string", "float64", "bool", "uint64", "decimal128(10, 0)", "time32[s]", "duration[s]"]
)
def test_time_must_be_a_time(kind: str) -> None:
    with pytest.raises(ps.PlanError, match="t") as caught:
        ps.stream({"t": kind}, time="t")
    assert kind in str(caught.value)


BAD_DURATIONS: list[str] = [
    "",
    "s",
    "10",
    "10 parsecs",
    "-1s",
    "0s",
    "1.5.2s",
    "NaNs",
    "1e400s",
    "9" * 40 + "s",
    "ten s",
    "1s1s1",
]


@pytest.mark.parametrize("text", BAD_DURATIONS)
def test_a_bad_window_size_is_a_duration_error(text: str) -> None:
    with pytest.raises(ps.DurationError) as caught:
        stream().window(ps.tumbling(text)).agg(ps.count())
    assert text[:20] in str(caught.value)


@pytest.mark.parametrize("text", [text for text in BAD_DURATIONS if text != "0s"])
def test_a_bad_delay_is_a_duration_error(text: str) -> None:
    with pytest.raises(ps.DurationError):
        stream(delay=text)


@pytest.mark.parametrize("size", [timedelta(0), timedelta(seconds=-1)])
def test_windows_have_a_length(size: timedelta) -> None:
    with pytest.raises(ps.DurationError):
        stream().window(ps.tumbling(size)).agg(ps.count())


def test_integer_times_take_integer_durations() -> None:
    integers = ps.stream({"t": "int64"}, time="t")
    for size in ("10s", timedelta(seconds=1), 0, -5):
        with pytest.raises(ps.DurationError):
            integers.window(ps.tumbling(size)).agg(ps.count())
    for delay in ("1s", timedelta(seconds=1), -1):
        with pytest.raises(ps.DurationError):
            ps.stream({"t": "int64"}, time="t", delay=delay)
    assert len(integers.window(ps.tumbling(10)).agg(ps.count()).run(pa.table({"t": [1]}))) == 1


def test_a_duration_finer_than_the_column_is_refused() -> None:
    for kind, size, time_unit in (
        ("timestamp[s]", "1500ms", "1s"),
        ("timestamp[ms]", "10us", "1ms"),
        ("date32", "12h", "1d"),
    ):
        with pytest.raises(ps.DurationError, match=time_unit):
            ps.stream({"t": kind}, time="t").window(ps.tumbling(size)).agg(ps.count())


def test_a_duration_of_another_kind_is_a_type_error() -> None:
    sizes: list[Any] = [1.5, None, [], b"1s"]
    for size in sizes:
        with pytest.raises((TypeError, ps.DurationError)):
            stream().window(ps.tumbling(size)).agg(ps.count())


DUPLICATES: dict[str, Callable[[], object]] = {
    "select": lambda: stream().select("price", ps.col("event_type").alias("price")),
    "with columns": lambda: stream().with_columns(ps.col("price").alias("x"), x=ps.col("price")),
    "keys": lambda: stream().window(ps.tumbling("1s"), by=["price", "price"]).agg(ps.count()),
}


@pytest.mark.parametrize("use", DUPLICATES)
def test_a_name_twice_is_a_plan_error(use: str) -> None:
    with pytest.raises(ps.PlanError, match="price|x"):
        DUPLICATES[use]()


def test_the_time_column_cannot_be_replaced() -> None:
    with pytest.raises(ps.PlanError, match="event_time"):
        stream().with_columns(event_time=ps.col("event_time") + timedelta(seconds=1))


def test_a_null_time_names_its_row() -> None:
    query = stream().filter(ps.col("price") > 0).window(ps.tumbling("1s")).agg(ps.count())
    columns = {"event_type": ["a"] * 3, "price": [1] * 3, "campaign_id": pa.array([1] * 3, pa.int32())}
    good = pa.table({"event_time": pa.array([1, 2, 3], pa.timestamp("ms")), **columns})
    bad = pa.table({"event_time": pa.array([1, None, None], pa.timestamp("ms")), **columns})
    with pytest.raises(ps.NullTimeError, match="event_time") as caught:
        query.run([good, good, bad])
    assert caught.value.row == 7


def test_a_null_time_matters_even_if_the_row_is_filtered_out() -> None:
    query = ps.stream({"t": "int64", "x": "int64"}, time="t").filter(ps.col("x") > 0)
    with pytest.raises(ps.NullTimeError) as caught:
        query.window(ps.tumbling(10)).agg(ps.count()).run(pa.table({"t": [1, None], "x": [1, -1]}))
    assert caught.value.row == 1


def test_after_an_error_the_same_stream_runs_again() -> None:
    query = ps.stream({"t": "int64", "x": "int64"}, time="t").with_columns(y=ps.col("x") + 1)
    query = query.window(ps.tumbling(10)).agg(n=ps.count(), y=ps.sum("y"))
    fine = pa.table({"t": [1, 2], "x": [1, 2]})

    def failing() -> Iterator[pa.Table]:
        yield fine
        raise LookupError("mine")

    bad: list[tuple[type[Exception], Callable[[], Any]]] = [
        (ps.ComputeError, lambda: pa.table({"t": [1, 1], "x": [1, 2**63 - 1]})),
        (ps.NullTimeError, lambda: pa.table({"t": [1, None], "x": [1, 2]})),
        (ps.SchemaMismatchError, lambda: [fine, pa.table({"t": [1]})]),
        (LookupError, failing),
        (TypeError, lambda: [fine, 3]),
    ]
    for kind, data in bad:
        with pytest.raises(kind):
            query.run(data())
        result = query.run(fine)
        assert result.to_arrow().select(["n", "y"]).to_pylist() == [{"n": 2, "y": 5}]


def test_a_failed_step_leaves_the_stream_as_it_was() -> None:
    source = stream()
    before = source.to_json()
    for use in USES.values():
        with pytest.raises(ps.UnknownColumnError):
            use("nothing")
        with pytest.raises(ps.UnknownColumnError):
            source.select("nothing")
    assert source.to_json() == before


def test_an_overflow_says_where() -> None:
    query = ps.stream({"price": "int32"}).select(r=ps.col("price") * 1000)
    with pytest.raises(ps.ComputeError, match=r"(?i)overflow") as caught:
        query.run(pa.table({"price": pa.array([1, 2**31 - 1], pa.int32())}))
    assert "price" in str(caught.value)


def test_errors_pickle() -> None:
    """Errors cross process borders with their fields."""
    errors: list[ps.PenstockError] = []
    for provoke in (
        lambda: stream().select("prise"),
        lambda: ps.stream({"x": "int64"}).run(pa.table({"y": [1]})),
        lambda: ps.stream({"t": "int64"}, time="t").window(ps.tumbling(1)).agg(ps.count()).run(
            pa.table({"t": pa.array([None], pa.int64())})
        ),
        lambda: stream().filter(ps.col("price")),
        lambda: ps.stream({"x": "int64"}).select(r=ps.col("x") // 0).run(pa.table({"x": [1]})),
    ):  # fmt: skip
        with pytest.raises(ps.PenstockError) as caught:
            provoke()
        errors.append(caught.value)
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), again.__dict__) == (str(error), error.__dict__)
    unknown, schema, null = errors[:3]
    assert isinstance(unknown, ps.UnknownColumnError)
    assert unknown.suggestion == "price"
    assert isinstance(schema, ps.SchemaMismatchError)
    assert schema.column == "x"
    assert isinstance(null, ps.NullTimeError)
    assert null.row == 0


def test_late_rows_are_no_error() -> None:
    query = ps.stream({"t": "int64"}, time="t").window(ps.tumbling(1)).agg(ps.count())
    assert run_quietly(query, pa.table({"t": [5, 1]})).rows_late == 1


def test_surrogates_are_refused_politely() -> None:
    for use in (ps.col, ps.lit):
        with pytest.raises(ValueError, match="surrogate|utf"):
            use("\ud800")
