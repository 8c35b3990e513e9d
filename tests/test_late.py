"""Late rows: counted, warned about, never dropped in silence."""

from __future__ import annotations

import re
import warnings
from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from reference.engine import run_quietly


def windowed(delay: int = 0, size: int = 10) -> ps.Stream:
    return ps.stream({"t": "int64"}, time="t", delay=delay).window(ps.tumbling(size)).agg(n=ps.count())


def times(*values: int) -> pa.Table:
    return pa.table({"t": pa.array(values, pa.int64())})


def test_late_rows_are_counted_and_warned_about() -> None:
    with pytest.warns(ps.LateRowsWarning, match="2") as caught:
        result = windowed().run(times(100, 1, 105, 20))
    assert len(caught) == 1, "one warning per run, however many rows were late"
    assert (result.rows_late, result.rows_in) == (2, 4)
    assert issubclass(ps.LateRowsWarning, UserWarning)


def test_the_warning_points_at_the_caller() -> None:
    with pytest.warns(ps.LateRowsWarning) as caught:
        windowed().run(times(100, 1))
    assert caught[0].filename == __file__


def test_the_warning_says_what_to_do() -> None:
    with pytest.warns(ps.LateRowsWarning, match="delay"):
        windowed().run(times(100, 1))


def test_a_warning_made_an_error_leaves_the_stream_usable() -> None:
    stream = windowed()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.LateRowsWarning)
        with pytest.raises(ps.LateRowsWarning):
            stream.run(times(100, 1))
        assert len(stream.run(times(1, 100))) == 2


def test_no_warning_without_late_rows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = windowed().run(times(1, 9, 2, 10))
    assert (result.rows_late, result.late_by) == (0, None)


def test_nothing_is_late_when_the_delay_is_long() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = windowed(delay=1000).run(times(500, 0, 900, 3))
    assert (result.rows_late, result.late_by) == (0, None)


def test_nothing_is_late_without_a_window() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ps.stream({"t": "int64"}, time="t").filter(ps.col("t") < 1000).run(times(100, 1, 50))
    assert (result.rows_late, result.rows_out) == (0, 3)


def test_late_by_is_the_largest_distance_to_the_watermark() -> None:
    result = run_quietly(windowed(delay=5), times(105, 83, 99, 200, 60))
    assert result.rows_late == 3
    assert "135" in str(result.late_by), "the watermark stood at 195 when 60 came"
    assert "unit" in str(result.late_by)


@pytest.mark.parametrize(
    ("unit", "late", "text"),
    [
        ("s", 90, "90|1.5|1m"),
        ("ms", 1200, r"1\.2 ?s|1200 ?ms|1s ?200ms"),
        ("us", 7, "7 ?[uµ]s"),
        ("ns", 7, "7 ?ns"),
    ],
)
def test_late_by_is_readable_for_timestamps(unit: str, late: int, text: str) -> None:
    stream = (
        ps.stream({"t": f"timestamp[{unit}]"}, time="t").window(ps.tumbling(f"1{unit}")).agg(n=ps.count())
    )
    result = run_quietly(stream, pa.table({"t": pa.array([late, 0], pa.timestamp(unit))}))
    assert result.rows_late == 1
    assert re.search(text, str(result.late_by)), result.late_by


def test_the_delay_may_be_a_timedelta() -> None:
    schema = {"t": "timestamp[ms]"}
    by_text = ps.stream(schema, time="t", delay="250ms")
    by_value = ps.stream(schema, time="t", delay=timedelta(milliseconds=250))
    data = pa.table({"t": pa.array([1250, 999, 1251, 999], pa.timestamp("ms"))})
    for stream in (by_text, by_value):
        result = run_quietly(stream.window(ps.tumbling("1s")).agg(n=ps.count()), data)
        assert result.rows_late == 2
    one_less = ps.stream(schema, time="t", delay=timedelta(milliseconds=251))
    assert run_quietly(one_less.window(ps.tumbling("1s")).agg(n=ps.count()), data).rows_late == 1


@given(st.lists(st.integers(-50, 50), max_size=30), st.integers(0, 20), st.data())
def test_lateness_does_not_depend_on_batches(values: list[int], delay: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(values)))
    stream = windowed(delay=delay)
    whole = run_quietly(stream, times(*values))
    parts = run_quietly(stream, [times(*values[:cut]), times(*values[cut:])])
    single = run_quietly(stream, [times(value) for value in values])
    assert whole.rows_late == parts.rows_late == single.rows_late
    assert whole.late_by == parts.late_by == single.late_by


@given(st.lists(st.integers(-200, 200), max_size=40), st.integers(0, 100))
def test_a_longer_delay_never_makes_more_rows_late(values: list[int], delay: int) -> None:
    short = run_quietly(windowed(delay=delay), times(*values)).rows_late
    longer = run_quietly(windowed(delay=delay + 1), times(*values)).rows_late
    assert longer <= short


@given(st.lists(st.integers(-200, 200), max_size=40))
def test_rows_in_order_are_never_late(values: list[int]) -> None:
    assert run_quietly(windowed(), times(*sorted(values))).rows_late == 0


def test_late_rows_of_one_key_do_not_hide_those_of_another() -> None:
    stream = (
        ps.stream({"t": "int64", "k": "int64"}, time="t").window(ps.tumbling(10), by="k").agg(n=ps.count())
    )
    keys = list(range(50))
    table = pa.table({"t": [1000] + [1] * 50, "k": [0, *keys]})
    result = run_quietly(stream, table)
    assert (result.rows_late, result.rows_out) == (50, 1)
