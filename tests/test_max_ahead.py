"""How far ahead of the watermark a row may be, wherever the watermark comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from reference.engine import run_quietly

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")

SCHEMA = {"t": "int64", "m": "int64", "v": "int64"}
FAR = 1_000_000


@dataclass(frozen=True)
class Row:
    """A time, what it says of event time, and a value."""

    t: int | None
    m: int | None = None
    v: int = 1


def table(rows: Sequence[Row]) -> pa.Table:
    columns = {name: [getattr(row, name) for row in rows] for name in SCHEMA}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def counts(stream: ps.Stream) -> ps.Stream:
    return stream.window(ps.tumbling(10)).agg(n=ps.count(), total=ps.sum("v"))


def of_windows(rows: list[dict[str, Any]]) -> dict[int, tuple[int, int]]:
    return {row["window_start"]: (row["n"], row["total"]) for row in rows}


def taken(rows: Sequence[Row], delay: int, ahead: int | None, column: str) -> list[Row]:
    """The rows that a stream takes, in words of its documentation; `column` moves the watermark."""
    good: list[Row] = []
    for row in rows:
        said = [mark for mark in (getattr(one, column) for one in good) if mark is not None]
        most = max(said) - delay + ahead if said and ahead is not None else None
        mark = getattr(row, column)
        if row.t is None:
            continue
        if most is not None and (row.t > most or (mark is not None and mark > most)):
            continue
        good.append(row)
    return good


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("memory", ["blocks", "queue"])
def test_marks_far_ahead_are_left_out(workers: int, memory: Literal["blocks", "queue"]) -> None:
    """A row whose mark is too far ahead goes as a whole, although its time is sound, and moves nothing."""
    stream = ps.stream(SCHEMA, time="t", watermark="m", delay=2, max_ahead=50)
    rows = [
        Row(1, 1),
        Row(2, FAR, 10),
        Row(3, None),
        Row(49, 5),
        Row(50, 0, 20),
        Row(FAR, 6, 40),
        Row(12, 12),
    ]
    for cut in (1, 3, len(rows)):
        data = [table(rows[start : start + cut]) for start in range(0, len(rows), cut)]
        result = counts(stream).run(data, on_error="skip", workers=workers, memory=memory)
        assert of_windows(result.to_pylist()) == {0: (2, 2), 10: (1, 1), 40: (1, 1), 50: (1, 20)}
        assert (result.rows_in, result.rows_rejected, result.rows_late) == (7, 2, 0)


def test_before_the_first_mark_any_time_is_taken() -> None:
    stream = ps.stream(SCHEMA, time="t", watermark="m", max_ahead=50)
    rows = [Row(FAR), Row(7), Row(2 * FAR), Row(8, 3), Row(54), Row(53)]
    result = stream.run(table(rows), on_error="skip")
    assert [row["t"] for row in result.to_pylist()] == [FAR, 7, 2 * FAR, 8, 53]


def test_the_error_names_the_column_that_is_ahead() -> None:
    stream = ps.stream(SCHEMA, time="t", watermark="m", delay=2, max_ahead=50)
    letters: list[dict[str, Any]] = []
    words = {
        Row(
            4, 60
        ): 'row 1: column "m" is 60, which is 61 units ahead of the watermark -1, more than max_ahead',
        Row(
            60, 4
        ): 'row 1: column "t" is 60, which is 61 units ahead of the watermark -1, more than max_ahead',
        Row(70, 60): 'row 1: column "t" is 70, which is 71 units ahead',
    }
    for bad, said in words.items():
        with pytest.raises(ps.TimeAheadError) as caught:
            stream.run(table([Row(1, 1), bad]))
        assert said in str(caught.value)
        assert caught.value.row == 1
        letters.clear()
        stream.run(
            table([Row(1, 1), bad, Row(2, 2)]), on_error=lambda batch: letters.extend(batch.to_pylist())
        )
        assert [(row["t"], row["m"]) for row in letters] == [(bad.t, bad.m)]
        assert letters[0]["rejected_because"] in str(caught.value)


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_a_shared_source_bounds_its_marks(mode: Literal["state", "threads"]) -> None:
    declared = ps.stream(SCHEMA, time="t", watermark="m", delay=2)
    rows = [Row(1, 1), Row(2, FAR, 10), Row(4, 4), Row(12, 12)]
    with ps.Engine(workers=2, mode=mode) as engine:
        source = engine.source(declared, [table([row]) for row in rows], on_error="skip", max_ahead=50)
        query = engine.submit(counts(source.stream), source=source, sink="collect")
        assert of_windows(query.result().to_pylist()) == {0: (2, 2), 10: (1, 1)}
        assert source.metrics()["rows_rejected"] == 1


def test_a_function_is_believed_and_the_rows_are_judged_by_it() -> None:
    """Rows of a batch are judged by what was said of the batches before. What is said has no bound."""
    said = iter([None, 0, FAR, None])
    stream = ps.stream(SCHEMA, time="t", watermark=lambda batch: next(said), max_ahead=50)
    batches = [
        table([Row(FAR), Row(1)]),  # nothing has been said
        table([Row(2 * FAR), Row(2)]),  # nor here
        table([Row(51), Row(50), Row(49)]),  # event time has come to 0
        table([Row(FAR + 50), Row(FAR + 51), Row(3)]),  # and to one million
    ]
    result = stream.run(batches, on_error="skip")
    assert [row["t"] for row in result.to_pylist()] == [FAR, 1, 2 * FAR, 2, 50, 49, FAR + 50, 3]
    assert result.rows_rejected == 2


def test_a_function_sees_the_rows_that_are_rejected() -> None:
    seen: list[int] = []

    def watermark(batch: ps.Batch) -> int:
        seen.extend(row["t"] for row in batch.to_pylist())
        return min(seen)

    stream = ps.stream(SCHEMA, time="t", watermark=watermark, max_ahead=50)
    result = stream.run([table([Row(1)]), table([Row(FAR), Row(5)])], on_error="skip")
    assert seen == [1, FAR, 5]
    assert [row["t"] for row in result.to_pylist()] == [1, 5]


TIMES = st.one_of(st.integers(0, 60), st.integers(0, 10_000))
ROWS = st.builds(Row, st.one_of(st.none(), TIMES), st.one_of(st.none(), TIMES), st.integers(0, 9))


@given(
    rows=st.lists(ROWS, max_size=60),
    column=st.sampled_from(["t", "m"]),
    cut=st.integers(1, 20),
    delay=st.integers(0, 10),
    ahead=st.one_of(st.none(), st.integers(11, 100)),
    workers=st.sampled_from([1, 2]),
    block_rows=st.sampled_from([1, 3, None]),
)
def test_what_is_taken_depends_on_the_order_of_rows_alone(
    rows: list[Row],
    column: str,
    cut: int,
    delay: int,
    ahead: int | None,
    workers: int,
    block_rows: int | None,
) -> None:
    good = taken(rows, delay, ahead, column)
    marks = None if column == "t" else column
    stream = ps.stream(SCHEMA, time="t", watermark=marks, delay=delay, max_ahead=ahead)
    data = [table(rows[start : start + cut]) for start in range(0, len(rows), cut)]
    options: dict[str, Any] = {"on_error": "skip", "workers": workers, "block_rows": block_rows}
    result = run_quietly(stream, data, **options)
    assert [Row(**row) for row in result.to_pylist()] == good
    rejected = len(rows) - len(good)
    assert (result.rows_in, result.rows_rejected) == (len(rows), rejected)
    # Windows see neither the rows nor their watermarks: as if they had never come.
    unbound = ps.stream(SCHEMA, time="t", watermark=marks, delay=delay)
    clean = run_quietly(counts(unbound), [table(good)])
    screened = run_quietly(counts(stream), data, **options)
    assert of_windows(screened.to_pylist()) == of_windows(clean.to_pylist())
    assert (screened.rows_late, screened.rows_rejected) == (clean.rows_late, rejected)
