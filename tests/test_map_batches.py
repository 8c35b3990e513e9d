"""Functions of the user's own over batches: what comes back, and what happens when they fail."""

import copy
import pickle
import threading
import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock import col

SCHEMA = {"t": "int64", "k": "string", "x": "int64"}


def numbers(rows: int) -> pa.Table:
    return pa.table(
        {
            "t": list(range(rows)),
            "k": [f"key {n % 7}" for n in range(rows)],
            "x": [n % 100 for n in range(rows)],
        }
    )


def double(batch: ps.Batch) -> pa.Table:
    table = pa.table(batch)
    return table.set_column(2, "x", pc.multiply(table["x"], 2))


def ways() -> list[dict[str, Any]]:
    return [
        {"workers": workers, "chain": chain, "memory": memory, "mode": mode}
        for workers in (1, 2)
        for chain in ("auto", "off")
        for memory, mode in (("blocks", "state"), ("queue", "state"), ("blocks", "threads"))
    ]


@pytest.mark.parametrize("options", ways(), ids=lambda options: "-".join(map(str, options.values())))
def test_rows_go_through_the_function(options: dict[str, Any]) -> None:
    plan = ps.stream(SCHEMA, time="t").filter(col("x") > 10).map_batches(double).filter(col("x") < 100)
    result = plan.run(numbers(10_000), **options)
    expected = [2 * (n % 100) for n in range(10_000) if 10 < n % 100 < 50]
    assert sorted(row["x"] for row in result.to_pylist()) == sorted(expected)


@pytest.mark.parametrize("options", ways(), ids=lambda options: "-".join(map(str, options.values())))
def test_a_window_behind_the_function_knows_the_time_and_who_is_late(options: dict[str, Any]) -> None:
    events = ps.stream({"t": "int64"}, time="t").map_batches(lambda batch: pa.table(batch))
    counts = events.window(ps.tumbling(10)).agg(n=ps.count())
    with pytest.warns(ps.LateRowsWarning):
        result = counts.run([pa.table({"t": [1, 25, 3, 26]}), pa.table({"t": [4, 27]})], **options)
    rows = {row["window_start"]: row["n"] for row in result.to_pylist()}
    assert rows == {0: 1, 20: 3}
    assert (result.rows_late, result.late_results) == (0, 2), "what comes back from a function are results"


TIME_TYPES = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "date32", "date64"),
    *(f"timestamp[{unit}]" for unit in ("s", "ms", "us", "ns")),
]


@pytest.mark.parametrize("kind", TIME_TYPES)
@pytest.mark.parametrize("options", ways(), ids=lambda options: "-".join(map(str, options.values())))
def test_rows_behind_the_function_are_late_whatever_the_type_of_their_time(
    kind: str, options: dict[str, Any]
) -> None:
    """A time that is narrower than 64 bits is judged like any other."""
    days = kind in ("date32", "date64")
    step = 86_400_000 if kind == "date64" else 1
    schema = ps.stream({"t": kind}).schema

    def rows(*times: int) -> pa.Table:
        wide = pa.int32() if kind == "date32" else pa.int64()
        return pa.table(
            {"t": pa.array([time * step for time in times], wide).cast(pa.schema(schema)[0].type)}
        )

    events = ps.stream({"t": kind}, time="t")
    size: Any = "10d" if days else 10 if "int" in kind else f"10{kind[10:-1]}"
    plan = events.map_batches(lambda batch: pa.table(batch)).map_batches(lambda batch: pa.table(batch))
    counts = plan.filter(col("t").is_not_null()).window(ps.tumbling(size)).agg(n=ps.count())
    with pytest.warns(ps.LateRowsWarning):
        result = counts.run([rows(1, 25, 3, 26), rows(4, 27)], **options)
    assert sorted(row["n"] for row in result.to_pylist()) == [1, 3]
    assert (result.rows_late, result.late_results) == (0, 2)


def test_rows_may_be_added_dropped_and_given_other_columns() -> None:
    def explode(batch: ps.Batch) -> pa.Table:
        words = [word for line in pa.table(batch)["line"].to_pylist() for word in line.split()]
        return pa.table(
            {"word": pa.array(words, pa.string()), "length": pa.array(map(len, words), pa.int32())}
        )

    plan = ps.stream({"line": "string"}).map_batches(explode, schema={"word": "string", "length": "int32"})
    assert plan.schema.names == ["word", "length"]
    assert plan.time is None
    rows = plan.run(pa.table({"line": ["to be or", "", "not to be"]})).to_pylist()
    assert sorted(row["word"] for row in rows) == ["be", "be", "not", "or", "to", "to"]


@pytest.mark.parametrize("options", ways(), ids=lambda options: "-".join(map(str, options.values())))
def test_a_column_that_is_added_without_a_schema_is_named(options: dict[str, Any]) -> None:
    def add(batch: ps.Batch) -> pa.Table:
        table = pa.table(batch)
        return table.append_column("y", table["x"]).append_column("z", table["x"])

    added = ps.stream({"x": "int64"}).map_batches(add)
    data = pa.table({"x": [1, 2]})
    for on_error in ("fail", "skip"):
        with pytest.raises(ps.SchemaMismatchError, match="y, z; declare .* schema=") as caught:
            added.run(data, on_error=on_error, **options)
        assert caught.value.column == "y"
    declared = ps.stream({"x": "int64"}).map_batches(add, schema={"x": "int64", "y": "int64"})
    assert declared.run(data, **options).to_pylist() == [{"x": 1, "y": 1}, {"x": 2, "y": 2}]
    with pytest.raises(ps.SchemaMismatchError, match="y, z"):
        copy.deepcopy(added).run(data, **options)


def test_what_is_known_of_the_schema_survives_pickling() -> None:
    added = pickle.loads(pickle.dumps(ps.stream({"x": "int64"}).map_batches(with_y)))
    with pytest.raises(ps.SchemaMismatchError, match="y; declare"):
        added.run(pa.table({"x": [1]}))


def with_y(batch: ps.Batch) -> pa.Table:
    table = pa.table(batch)
    return table.append_column("y", table["x"])


def test_what_does_not_fit_the_schema_is_refused() -> None:
    plan = ps.stream({"x": "int64"}).map_batches(lambda batch: pa.table({"y": [1]}))
    with pytest.raises(ps.SchemaMismatchError, match="x"):
        plan.run(pa.table({"x": [1]}))
    plan = ps.stream({"x": "int64"}).map_batches(lambda batch: 5)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="gives back"):
        plan.run(pa.table({"x": [1]}))


class PoisonError(Exception):
    """Raised for rows that the function cannot stand."""


def picky(batch: ps.Batch) -> pa.Table:
    table = pa.table(batch)
    for row in table.to_pylist():
        if row["x"] == 13:
            raise PoisonError("thirteen")
    return table


def test_an_error_comes_out_as_itself_and_names_the_row() -> None:
    with pytest.raises(PoisonError, match="thirteen") as caught:
        ps.stream(SCHEMA).map_batches(picky).run(numbers(1_000))
    assert any("'t': 13" in note for note in caught.value.__notes__), caught.value.__notes__
    assert caught.traceback[-1].name == "picky"


@pytest.mark.parametrize("options", ways(), ids=lambda options: "-".join(map(str, options.values())))
def test_poisoned_rows_are_skipped_and_counted(options: dict[str, Any]) -> None:
    result = ps.stream(SCHEMA).map_batches(picky).run(numbers(5_000), on_error="skip", **options)
    assert (result.rows_rejected, result.rows_out) == (50, 4_950)
    metrics = result.metrics()
    accounted = ("rows_contributed", "rows_filtered", "rows_late", "rows_shed", "rows_rejected")
    assert metrics["rows_in"] + metrics["rows_copied"] == sum(metrics[name] for name in accounted)


def test_poisoned_rows_become_dead_letters() -> None:
    letters: list[dict[str, Any]] = []
    plan = ps.stream(SCHEMA).with_columns(y=col("x") + 1).map_batches(picky)
    result = plan.run(numbers(2_000), on_error=lambda batch: letters.extend(batch.to_pylist()))
    assert [letter["t"] for letter in letters] == list(range(13, 2_000, 100))
    assert {letter["rejected_by"] for letter in letters} == {"map_batches"}
    assert all("PoisonError('thirteen')" in letter["rejected_because"] for letter in letters)
    assert (result.rows_rejected, result.rows_out) == (20, 1_980)


def test_an_error_of_the_dead_letter_function_ends_the_run() -> None:
    def refuse(batch: ps.Batch) -> None:
        raise PoisonError("no letters today")

    with pytest.raises(PoisonError, match="no letters"):
        ps.stream(SCHEMA).map_batches(picky).run(numbers(2_000), on_error=refuse)


def test_plans_with_functions_are_pickled_but_not_written_as_json() -> None:
    plan = ps.stream(SCHEMA).map_batches(double)
    with pytest.raises(ps.PlanError, match="double"):
        plan.to_json()
    again = pickle.loads(pickle.dumps(plan))
    assert again.run(numbers(3)).to_pylist() == plan.run(numbers(3)).to_pylist()
    both = pickle.loads(pickle.dumps(ps.outputs(a=plan, b=plan.filter(col("x") > 2))))
    assert both.run(numbers(3))["b"].rows_out == 1
    assert "double" in plan.explain()


def test_one_function_is_called_at_a_time_and_others_go_on() -> None:
    inside, most = 0, 0
    lock = threading.Lock()

    def slow(batch: ps.Batch) -> pa.Table:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.002)
        with lock:
            inside -= 1
        return pa.table(batch)

    slow_plan = ps.stream(SCHEMA).map_batches(slow)
    with ps.Engine(workers=2) as engine:
        slow_queries = [engine.submit(slow_plan, source=numbers(3_000), sink="collect") for _ in range(4)]
        quick = engine.submit(ps.stream(SCHEMA).filter(col("x") > 5), source=numbers(3_000), sink="collect")
        assert quick.result().rows_in == 3_000
        assert [query.result().rows_out for query in slow_queries] == [3_000] * 4
    assert most == 1


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        ps.stream(SCHEMA).map_batches("double")  # type: ignore[arg-type]
    with pytest.raises(ps.UnsupportedTypeError):
        ps.stream(SCHEMA).map_batches(double, schema=pa.schema({"x": pa.list_(pa.int64())}))
