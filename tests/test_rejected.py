"""Rows that an operator rejects: wherever it stands, they are skipped or handed out, and counted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock import col
from reference.compare import as_bag
from reference.options import account_of

SCHEMA = {"t": "int64", "k": "string", "v": "int64"}
LEFT = ps.stream(SCHEMA, time="t", name="left")
RIGHT = ps.stream(SCHEMA, time="t", name="right")
TEN = ps.tumbling(10)
NAMES = pa.table({"k": ["a", "b", "c"], "name": ["Anna", "Bert", "Cleo"]})
PART = 12 // col("v")
"""Has no answer where `v` is zero."""


def rows(count: int) -> pa.Table:
    """Rows of three keys, each with long pauses, whose values are zero in every third stretch of time."""
    times = [n + 30 * (n // 30) for n in range(count)]
    return pa.table(
        {
            "t": times,
            "k": ["abc"[n % 3] for n in range(count)],
            "v": [time // 60 % 3 * (1 + n % 4) for n, time in enumerate(times)],
        }
    )


WAYS: list[dict[str, Any]] = [
    *({"workers": workers, "chain": chain} for workers in (1, 2, 4) for chain in ("auto", "off")),
    {"workers": 2, "mode": "threads"},
    {"workers": 2, "memory": "queue", "chain": "off"},
    {"workers": 2, "strategy": "exchange"},
]


def run(plans: ps.Stream | ps.Outputs, data: Any, on_error: Any, **options: Any) -> dict[str, ps.Result]:
    outputs = plans if isinstance(plans, ps.Outputs) else ps.outputs(result=plans)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.LateRowsWarning)
        results = outputs.run(data, on_error=on_error, **options)
    for result in results.values():
        account_of(result)
    return dict(results)


def windowed() -> ps.Stream:
    return LEFT.window(TEN, by="k").agg(v=ps.min("v"))


def passed(batch: ps.Batch) -> pa.Table:
    return pa.table(batch)


BEHIND: dict[str, Callable[[], ps.Stream]] = {
    "a window": windowed,
    "sliding windows": lambda: LEFT.window(ps.sliding(10, 5), by="k").agg(v=ps.min("v")),
    "a session": lambda: LEFT.window(ps.session(5), by="k").agg(v=ps.min("v")),
    "the first rows": lambda: LEFT.window(TEN, by="k").top_k(2, "v"),
    "a join": lambda: LEFT.join(RIGHT.select("t", "k"), window=TEN, on="k"),
    "a co-group": lambda: LEFT.cogroup(RIGHT, window=TEN, by="k").agg(
        left={"v": ps.min("v")}, right={"n": ps.count()}
    ),
    "a function": lambda: LEFT.map_batches(passed),
    "a window over windows": lambda: windowed().window(ps.tumbling(20), by="k").agg(v=ps.min("v")),
}


def inputs(what: str, count: int = 200) -> dict[str, pa.Table]:
    return {
        name: rows(count) for name in (("left", "right") if what in ("a join", "a co-group") else ("left",))
    }


def without_name(result: ps.Result) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "name"} for row in result.to_pylist()]


@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("what", BEHIND)
def test_a_lookup_behind_an_operator_with_dead_letters(what: str, options: dict[str, Any]) -> None:
    plan = BEHIND[what]().lookup(NAMES, on="k").filter(PART > 0)
    expected = run(BEHIND[what]().filter(col("v") != 0), inputs(what), "fail")["result"]
    letters: list[dict[str, Any]] = []
    found = run(plan, inputs(what), lambda batch: letters.extend(batch.to_pylist()), **options)["result"]
    for row in found.to_pylist():
        assert row["name"][0].lower() == row["k"]
    assert as_bag(without_name(found)) == as_bag(expected.to_pylist())
    assert letters
    assert {letter["v"] for letter in letters} == {0}
    assert {letter["rejected_by"] for letter in letters} == {"filter"}
    assert {letter["name"][0].lower() == letter["k"] for letter in letters} == {True}


@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("what", BEHIND)
def test_results_that_are_rejected_are_counted(what: str, options: dict[str, Any]) -> None:
    plan = BEHIND[what]()
    everything = run(plan, inputs(what), "fail")["result"]
    bad = sum(row["v"] == 0 for row in everything.to_pylist())
    assert bad
    parts = plan.with_columns(part=PART)
    found = run(parts, inputs(what), "skip", **options)["result"]
    metrics = found.metrics()
    assert (metrics["rows_rejected"], metrics["rejected_results"]) == (0, bad)
    assert found.rejected_results == bad
    assert len(found) == len(everything) - bad
    assert f"{bad:,} results rejected" in repr(found)
    letters: list[dict[str, Any]] = []
    again = run(parts, inputs(what), lambda batch: letters.extend(batch.to_pylist()), **options)["result"]
    assert (again.rejected_results, len(letters)) == (bad, bad)


@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(map(str, options.values())))
def test_rows_and_results_that_are_rejected_are_told_from_each_other(options: dict[str, Any]) -> None:
    plan = (
        LEFT.filter(12 // (col("v") - 2) < 99).window(TEN, by="k").agg(v=ps.min("v")).with_columns(part=PART)
    )
    found = run(plan, {"left": rows(400)}, "skip", **options)["result"]
    assert found.rows_rejected == rows(400)["v"].to_pylist().count(2) > 0
    everything = run(LEFT.filter(col("v") != 2).window(TEN, by="k").agg(v=ps.min("v")), rows(400), "fail")
    assert found.rejected_results == sum(row["v"] == 0 for row in everything["result"].to_pylist())


@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(map(str, options.values())))
def test_a_function_behind_a_window_counts_what_it_rejects(options: dict[str, Any]) -> None:
    def picky(batch: ps.Batch) -> pa.Table:
        table = pa.table(batch)
        if 0 in table["v"].to_pylist():
            raise ZeroDivisionError("v is zero")
        return table

    everything = run(windowed(), rows(200), "fail")["result"]
    bad = sum(row["v"] == 0 for row in everything.to_pylist())
    found = run(windowed().map_batches(picky), rows(200), "skip", **options)["result"]
    assert (found.rows_rejected, found.rejected_results) == (0, bad)
    assert len(found) == len(everything) - bad


@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("kind", ["int64", "int16", "timestamp[ms]"])
def test_rows_that_a_function_gives_back_without_a_time(kind: str, options: dict[str, Any]) -> None:
    stream = ps.stream({"t": kind, "v": "int64"}, time="t")
    unit = 10 if kind.startswith("int") else "10ms"

    def forgetful(batch: ps.Batch) -> pa.Table:
        table = pa.table(batch)
        times = [None if v % 4 == 0 else t for t, v in zip(table["t"], table["v"].to_pylist(), strict=True)]
        known = [None if t is None else t.as_py() for t in times]
        return table.set_column(0, "t", pa.array(known, table.schema.field("t").type))

    plan = stream.map_batches(forgetful).window(ps.tumbling(unit)).agg(n=ps.count())
    numbers = pa.array(range(100), pa.int64())
    data = pa.table({"t": numbers.cast(stream.schema.types[0]), "v": numbers})
    letters: list[dict[str, Any]] = []
    found = run(plan, data, lambda batch: letters.extend(batch.to_pylist()), **options)["result"]
    assert sum(row["n"] for row in found.to_pylist()) == 75
    assert (found.rows_rejected, found.rejected_results) == (0, 25)
    assert sorted(letter["v"] for letter in letters) == list(range(0, 100, 4))
    assert {letter["rejected_because"] for letter in letters} == {'column "t" is null: the row has no time'}
    everything = stream.map_batches(lambda b: pa.table(b).set_column(0, "t", pa.nulls(len(b), pa.int64())))
    none = run(everything, data, "skip", **options)["result"] if kind == "int64" else None
    assert none is None or (len(none), none.rejected_results) == (0, 100)
    with pytest.raises(ps.NullTimeError):
        run(plan, data, "fail", **options)


@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(map(str, options.values())))
def test_late_rows_that_are_looked_up_and_rejected(options: dict[str, Any]) -> None:
    result, late = LEFT.window(TEN, by="k").agg(n=ps.count()).split_late()
    late = late.lookup(NAMES, on="k").with_columns(part=PART)
    data = pa.table({"t": [5, 50, 6, 7, 8, 51], "k": ["a", "b", "c", "a", "b", "a"], "v": [1, 0, 2, 0, 3, 0]})
    letters: list[dict[str, Any]] = []
    found = run(
        ps.outputs(result=result, late=late), data, lambda b: letters.extend(b.to_pylist()), **options
    )
    assert sorted(row["name"] for row in found["late"].to_pylist()) == ["Bert", "Cleo"]
    assert [(letter["t"], letter["name"], letter["rejected_by"]) for letter in letters] == [
        (7, "Anna", "with_columns")
    ]
    assert (found["late"].rows_late, found["late"].rows_rejected, found["late"].rejected_results) == (3, 0, 1)


def test_a_query_on_an_engine_counts_them_too() -> None:
    with ps.Engine(workers=2) as engine:
        query = engine.submit(
            windowed().with_columns(part=PART), source=rows(200), sink="collect", on_error="skip"
        )
        result = query.result()
        assert query.metrics()["rejected_results"] == result.rejected_results > 0


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_a_dead_letter_of_a_function_keeps_no_more_than_its_row(kind: str) -> None:
    """It may wait for long, and with it would wait the whole batch that the function was given."""
    bad = {0, 1, 700, 999, 1500, 1999}
    data = pa.table(
        {
            "n": pa.array(range(2000), pa.int64()),
            "flag": pa.array([n % 2 == 0 for n in range(2000)]),
            "s": pa.array(
                [None if n == 999 else f"a text that is long enough {n}" for n in range(2000)],
                pa.schema(ps.stream({"s": kind}).schema)[0].type,
            ),
        }
    )

    def refuse(batch: ps.Batch) -> ps.Batch:
        if any(row["n"] in bad for row in batch.to_pylist()):
            raise ValueError("not this one")
        return batch

    letters: list[pa.RecordBatch] = []
    stream = ps.stream({"n": "int64", "flag": "bool", "s": kind}).map_batches(refuse)
    result = stream.run(data, on_error=lambda batch: letters.append(pa.record_batch(batch)))
    assert (result.rows_out, result.rows_rejected) == (1994, 6)
    assert sorted(letter["n"].to_pylist()[0] for letter in letters) == sorted(bad)
    for letter in letters:
        letter.validate(full=True)
        expected = data.slice(letter["n"].to_pylist()[0], 1).to_pylist()[0]
        assert letter.select(["n", "flag", "s"]).to_pylist() == [expected]
        for column in letter.columns:
            sizes = [buffer.size for buffer in column.buffers() if buffer is not None]
            assert column.offset == 0
            assert sum(sizes) <= 200, (column.type, sizes)
