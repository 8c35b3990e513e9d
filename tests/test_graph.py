"""Pipelines that branch and come together: unions, splits, outputs, diamonds, windows over windows."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from reference import graphs
from reference.compare import as_bag
from reference.engine import rows_of
from reference.graphs import Graph
from reference.live import comes_to
from reference.options import SPREADING, account_of, run_all, run_one, run_options
from reference.sizes import SMALLER
from reference.watchdog import watched

EXAMPLES = settings().max_examples
SCHEMA = {"t": "int64", "k": "string", "v": "int64"}
STREAM = ps.stream(SCHEMA, time="t")
NORTH = ps.stream(SCHEMA, time="t", name="north")
SOUTH = ps.stream(SCHEMA, time="t", name="south", delay=5)
TEN = ps.tumbling(10)


def table(*rows: tuple[int, str | None, int | None]) -> pa.Table:
    schema = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    return pa.Table.from_pylist([dict(zip(SCHEMA, row, strict=True)) for row in rows], schema)


def values(result: ps.Result, column: str = "v") -> list[Any]:
    return sorted((row[column] for row in result.to_pylist()), key=lambda value: (value is None, value))


def counts(result: ps.Result) -> dict[Any, Any]:
    return {row["window_start"]: row["n"] for row in result.to_pylist()}


# At random.


def check(graph: Graph, results: dict[str, ps.Result]) -> None:
    """Each output is what the interpreter gives, and the account is its account."""
    expected = graphs.answer(graph)
    for result, rows in zip(results.values(), expected.rows, strict=True):
        assert as_bag(rows_of(result)) == as_bag(rows)
    event(f"late rows: {min(expected.account['rows_late'], 3)}")
    event(f"operators: {len(graph.reached())}")
    for result in results.values():
        assert account_of(result) == expected.account


ON_ERROR = ("skip", "letters", "fail")


@given(graphs.graphs(wild=True), run_options(), st.sampled_from(ON_ERROR))
def test_random_graphs_that_reject_rows_equal_the_interpreter(
    graph: Graph, options: dict[str, Any], on_error: Any
) -> None:
    """Rows that operators reject, wherever they stand, are left out, counted and handed out."""
    account = graphs.answer(graph).account
    rejected = account["rows_rejected"] + account["rejected_results"]
    event(f"rejected: {min(rejected, 3)}")
    letters: list[dict[str, Any]] = []
    if on_error == "letters":
        options["on_error"] = lambda batch: letters.extend(batch.to_pylist())
    else:
        options["on_error"] = "skip" if rejected else on_error
    check(graph, run_all(graphs.build_all(graph), graphs.inputs(graph), **options))
    assert len(letters) == (rejected if on_error == "letters" else 0)


@given(graphs.graphs(), run_options())
def test_random_graphs_equal_the_interpreter(graph: Graph, options: dict[str, Any]) -> None:
    check(graph, run_all(graphs.build_all(graph), graphs.inputs(graph), **options))


@settings(max_examples=max(10, EXAMPLES // 6))
@given(graphs.graphs(), run_options())
def test_random_graphs_survive_json_and_pickle(graph: Graph, options: dict[str, Any]) -> None:
    outputs = graphs.build_all(graph)
    text = outputs.to_json()
    again = ps.Outputs.from_json(text)
    assert again == outputs
    assert again.to_json() == text
    assert again.explain() == outputs.explain()
    assert pickle.loads(pickle.dumps(outputs)) == outputs
    check(graph, run_all(again, graphs.inputs(graph), **options))


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
@settings(max_examples=max(10, EXAMPLES // 6))
@given(st.one_of(graphs.graphs(), graphs.meetings()), st.data())
def test_random_graphs_on_an_engine_whichever_source_speaks_first(graph: Graph, data: st.DataObject) -> None:
    """Some of the sources are shared. Each step of the query may read any of them, by an edge or itself."""
    batches = {name: list(parts) for name, parts in graphs.inputs(graph).items()}
    turns = [name for name, parts in batches.items() for _ in range(len(parts) + 1)]
    turns = data.draw(st.permutations(turns))
    sources = {name: ps.PushSource(capacity=64) for name in batches}
    options = data.draw(run_options())
    spreading = {name: options.pop(name) for name in SPREADING if name in options}
    if data.draw(st.booleans()):  # then operators read shared sources themselves
        options["chain"] = "off"
    shared = data.draw(st.sets(st.sampled_from(sorted(sources))))
    patient = data.draw(st.booleans())  # tasks go idle between batches, and have to be woken for each
    with ps.Engine(**options) as engine, watched(engine) as queries:
        given: dict[str, Any] = dict(sources)
        for name in shared:
            number = int(name[1:])
            given[name] = engine.source(graphs.stream_of(number, graph.streams[number]), sources[name])
        query = engine.submit(graphs.build_all(graph), source=given, sink="collect", **spreading)
        queries.append(query)
        for name in turns:
            if batches[name]:
                batch = batches[name].pop(0)
                taken = query.metrics()["rows_in"] + batch.num_rows
                assert sources[name].push(batch)
                assert not patient or comes_to(query, "rows_in", taken)
            else:
                sources[name].close()
        check(graph, {name: query.result(name) for name in query.outputs})
        assert query.status == "finished"


# Unions.


def test_a_union_has_the_rows_of_both() -> None:
    result = run_one(
        NORTH.union(SOUTH), {"north": table((1, "a", 1)), "south": table((1, "a", 1), (2, None, None))}
    )
    assert values(result) == [1, 1, None]
    assert account_of(result)["rows_in"] == 3


def test_a_union_of_one_and_of_itself() -> None:
    data = table((1, "a", 1), (2, "b", 2))
    assert values(STREAM.union().run(data)) == [1, 2]
    twice = run_one(STREAM.union(STREAM), data)
    assert values(twice) == [1, 1, 2, 2]
    assert account_of(twice)["rows_copied"] == 2


def test_rows_keep_the_watermark_of_their_own_source() -> None:
    """The north is far ahead and makes no row of the south late, nor does the south save one of the north."""
    query = NORTH.union(SOUTH).window(TEN).agg(n=ps.count())
    north = table((1, "a", 1), (95, "a", 2), (9, "a", 3))
    south = table((2, "b", 4), (11, "b", 5), (7, "b", 6), (16, "b", 7), (8, "b", 8))
    for options in ({}, {"block_rows": 1}, {"chain": "off", "workers": 3}, {"memory": "queue"}):
        result = run_one(query, {"north": north, "south": south}, **options)
        assert counts(result) == {0: 3, 10: 2, 90: 1}
        assert result.rows_late == 2


def test_a_window_behind_a_union_waits_for_all_of_them() -> None:
    query = NORTH.union(SOUTH).window(TEN).agg(n=ps.count())
    north, south = ps.PushSource(), ps.PushSource()
    with ps.Engine(workers=2) as engine, watched(engine) as queries:
        running = engine.submit(query, source={"north": north, "south": south})
        queries.append(running)
        results = running.results()
        north.push(table((1, "a", 1), (1000, "a", 2)))
        south.push(table((2, "b", 3), (14, "b", 4)))
        south.push(table((3, "b", 5)))
        south.push(table((15, "b", 6)))
        assert rows_of(next(results)) == [{"window_start": 0, "window_end": 10, "n": 3}]
        south.close()
        north.close()
        rest = [row for batch in results for row in rows_of(batch)]
        assert sorted((row["window_start"], row["n"]) for row in rest) == [(10, 2), (1000, 1)]


def test_a_source_that_ends_or_is_empty_holds_nobody_up() -> None:
    query = NORTH.union(SOUTH).window(TEN).agg(n=ps.count())
    north, south = ps.PushSource(), ps.PushSource()
    with ps.Engine(workers=2) as engine, watched(engine) as queries:
        running = engine.submit(query, source={"north": north, "south": south})
        queries.append(running)
        south.close()
        north.push(table((1, "a", 1), (10, "a", 2)))
        assert rows_of(next(running.results())) == [{"window_start": 0, "window_end": 10, "n": 1}]
        running.stop()


# Splits and several outputs.


def test_a_split_gives_each_row_to_the_first_that_takes_it() -> None:
    low, even, rest = STREAM.split(col("v") < 5, col("v") % 2 == 0)
    data = table(*((n, "a", n) for n in range(10)), (10, "a", None))
    found = run_all(ps.outputs(low=low, even=even, rest=rest), data)
    assert {name: values(result) for name, result in found.items()} == {
        "low": [0, 1, 2, 3, 4], "even": [6, 8], "rest": [5, 7, 9, None],
    }  # fmt: skip
    account = account_of(found["low"])
    assert account == {
        "rows_in": 11, "rows_copied": 22,
        "rows_contributed": 11, "rows_filtered": 22, "rows_late": 0, "rows_shed": 0,
        "rows_rejected": 0, "late_results": 0, "rejected_results": 0,
    }  # fmt: skip


@settings(max_examples=max(10, EXAMPLES // 10))
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=30),
    st.lists(st.integers(-5, 25), min_size=1, max_size=4),
)
def test_the_parts_of_a_split_are_the_whole(given_values: list[int | None], bounds: list[int]) -> None:
    parts = STREAM.split(*(col("v") < bound for bound in bounds))
    assert len(parts) == len(bounds) + 1
    data = table(*((n, "a", value) for n, value in enumerate(given_values)))
    found = run_all(ps.outputs(**{f"p{n}": part for n, part in enumerate(parts)}), data)
    left = list(given_values)
    for result, bound in zip(found.values(), bounds, strict=False):
        taken = [value for value in left if value is not None and value < bound]
        left = [value for value in left if value is None or value >= bound]
        assert values(result) == sorted(taken)
    assert len(found[f"p{len(bounds)}"]) == len(left)


def test_what_outputs_have_in_common_is_done_once() -> None:
    common = STREAM.filter(col("v") > 1).with_columns(w=col("v") * 2)
    both = ps.outputs(rows=common, sums=common.window(TEN, by="k").agg(total=ps.sum("w")))
    found = run_all(both, table((1, "a", 1), (2, "a", 2), (3, "b", 3)))
    assert values(found["rows"], "w") == [4, 6]
    assert {row["k"]: row["total"] for row in found["sums"].to_pylist()} == {"a": 4, "b": 6}
    account = account_of(found["rows"])
    assert (account["rows_in"], account["rows_copied"], account["rows_filtered"]) == (3, 2, 1)
    names = [operator["name"].split()[0] for operator in found["rows"].metrics()["operators"]]
    assert names.count("filter") == 1


def test_outputs_are_found_by_name() -> None:
    both = ps.outputs(all=STREAM, dear=STREAM.filter(col("v") > 1))
    assert both.names == ["all", "dear"]
    assert both["all"] == STREAM
    with pytest.raises(KeyError, match="dera"):
        both["dera"]
    assert list(run_all(both, table()).keys()) == ["all", "dear"]


def test_each_output_of_a_query_goes_where_it_is_told() -> None:
    low, high = STREAM.split(col("v") < 5)
    taken: list[Any] = []
    data = table(*((n, "a", n) for n in range(10)))
    with ps.Engine(workers=2) as engine, watched(engine) as queries:
        both, sinks = ps.outputs(low=low, high=high), {"low": "collect", "high": taken.append}
        query = engine.submit(both, source=data, sink=sinks)  # type: ignore[arg-type]
        queries.append(query)
        assert values(query.result("low")) == [0, 1, 2, 3, 4]
        assert sorted(row["v"] for batch in taken for row in batch.to_pylist()) == [5, 6, 7, 8, 9]
        assert query.outputs == ["low", "high"]
        with pytest.raises(ps.PlanError, match="low"):
            query.result("lo")


# Diamonds.


def test_a_diamond_of_windows() -> None:
    """One source, two windows over it, and a join of the two."""
    counted = STREAM.window(TEN, by="k").agg(n=ps.count())
    summed = STREAM.filter(col("v") > 0).window(ps.tumbling(5), by="k").agg(total=ps.sum("v"))
    query = counted.join(summed, window=TEN, on="k", how="left").select("window_start", "k", "n", "total")
    result = run_one(query, table((1, "a", 1), (6, "a", 2), (7, "b", 0), (12, "a", 4)))
    found = sorted((row["window_start"], row["k"], row["n"], row["total"]) for row in result.to_pylist())
    assert found == [(0, "a", 2, 1), (0, "a", 2, 2), (0, "b", 1, None), (10, "a", 1, 4)]
    account = account_of(result)
    assert (account["rows_in"], account["rows_copied"], account["rows_filtered"]) == (4, 4, 1)


@pytest.mark.parametrize("memory", ["blocks", "queue"])
@pytest.mark.parametrize("mode", ["state", "threads"])
def test_a_diamond_with_little_memory_comes_to_its_end(memory: Any, mode: Any) -> None:
    """One branch drops nearly all, the other passes all on; neither may wait for the other for ever."""
    rows = 20_000 // SMALLER
    few, many = STREAM.filter(col("v") % 5_000 == 0), STREAM.with_columns(v=col("v") + 1).filter(col("v") > 0)
    windowed = few.union(many).window(ps.tumbling(1000), by="k").agg(n=ps.count())
    outputs = ps.outputs(windows=windowed, few=few, pairs=few.join(many, window=TEN, on="k"))
    data = pa.table({"t": pa.array(range(rows)), "k": ["a"] * rows, "v": pa.array(range(rows))})
    options: Any = {
        "memory": memory,
        "mode": mode,
        "chain": "off",
        "block_rows": 64,
        "budget": "8MiB",
        "workers": 2,
    }
    with ps.Engine(**options) as engine, watched(engine) as queries:
        query = engine.submit(outputs, source=data.to_batches(max_chunksize=500), sink="collect")
        queries.append(query)
        total = sum(row["n"] for row in query.result("windows").to_pylist())
        kept = -(-rows // 5_000)
        assert (total, len(query.result("few")), len(query.result("pairs"))) == (rows + kept, kept, 10 * kept)
        account_of(query.result("few"))


def test_a_sink_that_stands_still_holds_back_and_loses_nothing() -> None:
    low, high = STREAM.split(col("v") % 2 == 0)
    rows = 20_000
    data = pa.table({"t": pa.array(range(rows)), "k": ["a"] * rows, "v": pa.array(range(rows))})
    go_on = threading.Event()
    seen: list[int] = []

    def slow(batch: ps.Batch) -> None:
        go_on.wait(30)
        seen.append(batch.num_rows)

    with ps.Engine(workers=2, budget="16MiB", block_rows=256) as engine, watched(engine) as queries:
        sinks: Any = {"low": slow, "high": "collect"}
        query = engine.submit(ps.outputs(low=low, high=high), source=data.to_batches(1000), sink=sinks)
        queries.append(query)
        assert not query.wait(0.05)
        go_on.set()
        assert len(query.result("high")) == rows // 2
        assert sum(seen) == rows // 2


# Windows over windows.


def test_a_window_over_windows_holds_whole_windows() -> None:
    tens = STREAM.window(TEN).agg(n=ps.count())
    twenties = tens.window(ps.tumbling(20)).agg(windows=ps.count(), n=ps.sum("n"))
    data = table(*((n, "a", n) for n in range(0, 60, 3)))
    rows = [(row["window_start"], row["windows"], row["n"]) for row in twenties.run(data).to_pylist()]
    assert sorted(rows) == [(0, 2, 7), (20, 2, 7), (40, 2, 6)]


def test_windows_over_windows_of_any_kind_lose_nothing() -> None:
    data = table(*((n * 7 % 90, "a", 1) for n in range(90)))
    stream = ps.stream(SCHEMA, time="t", delay=200)
    for inner in (TEN, ps.session(1), ps.tumbling(7, offset=3)):
        for outer in (ps.tumbling(30), ps.session(50), ps.tumbling(11)):
            query = stream.window(inner).agg(n=ps.count()).window(outer).agg(n=ps.sum("n"))
            result = run_one(query, data)
            assert (sum(row["n"] for row in result.to_pylist()), result.rows_late) == (90, 0)


# Late rows.


def test_late_rows_have_an_output_of_their_own() -> None:
    query = STREAM.window(TEN, by="k").agg(n=ps.count())
    result, late = query.split_late()
    assert result == query
    assert (late.schema.names, late.time) == (list(SCHEMA), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.LateRowsWarning)  # somebody takes them
        found = ps.outputs(result=result, late=late).run(
            table((5, "a", 1), (25, "a", 2), (7, "b", 3), (8, None, 4))
        )
    assert rows_of(found["late"]) == [{"t": 7, "k": "b", "v": 3}, {"t": 8, "k": None, "v": 4}]
    assert sorted(row["window_start"] for row in found["result"].to_pylist()) == [0, 20]
    assert account_of(found["late"])["rows_late"] == 2


@pytest.mark.parametrize("window", [TEN, ps.sliding(10, 5), ps.session(10)], ids=lambda window: window.kind)
def test_rows_are_late_or_counted(window: ps.Window) -> None:
    times = [5, 25, 7, 12, 24, 3, 90, 71, 85, 40]
    result, late = STREAM.window(window).agg(rows=ps.max("v"), least=ps.min("v")).split_late()
    data = table(*((time, "a", n) for n, time in enumerate(times)))
    for options in ({}, {"block_rows": 1}, {"chain": "off"}):
        found = run_all(ps.outputs(result=result, late=late), data, **options)
        account = account_of(found["late"])
        assert len(found["late"]) == account["rows_late"] > 0
        assert account["rows_contributed"] + account["rows_late"] == len(times)
        reached = {row[name] for row in found["result"].to_pylist() for name in ("rows", "least")}
        assert not reached & set(values(found["late"]))


def test_late_rows_go_on_like_any_others() -> None:
    result, late = NORTH.union(SOUTH).window(TEN).agg(n=ps.count()).split_late()
    cleaned = late.filter(col("v") > 1).select("k", double=col("v") * 2)
    data = {
        "north": table((50, "n", 1), (1, "n", 2), (2, "n", 1)),
        "south": table((60, "s", 3), (49, "s", 4)),
    }
    found = run_all(ps.outputs(result=result, late=cleaned), data)
    assert sorted(tuple(row.values()) for row in found["late"].to_pylist()) == [("n", 4), ("s", 8)]
    assert counts(found["result"]) == {50: 1, 60: 1}


def test_late_rows_of_the_first_rows_of_windows() -> None:
    result, late = STREAM.window(TEN, by="k").top_k(1, "v").split_late()
    found = run_all(ps.outputs(result=result, late=late), table((25, "a", 1), (7, "a", 9), (26, "a", 2)))
    assert values(found["late"]) == [9]
    assert values(found["result"]) == [2]


# Text and copies of a plan.


def branching() -> ps.Outputs:
    everything = NORTH.union(SOUTH)
    dear, cheap = everything.split(col("v") > 10)
    sums = dear.window(ps.sliding(10, 5), by="k").agg(total=ps.sum("v"), last=ps.last("v"))
    pairs = sums.join(cheap.window(ps.session(3), by="k").agg(n=ps.count()), window=TEN, on="k", how="full")
    result, late = pairs.window(TEN, allowed_lateness=5).agg(rows=ps.count()).split_late()
    best = everything.window(ps.tumbling(10, offset=2), by="k").top_k(3, "v")
    both = NORTH.cogroup(SOUTH, window=TEN, by="k").agg(left={"m": ps.count()}, right={"n": ps.sum("v")})
    return ps.outputs(result=result, late=late, best=best, both=both)


def test_the_plan_of_a_branching_pipeline(snapshot: Callable[[str, str], None]) -> None:
    snapshot("explain_graph", branching().explain())
    assert str(branching()) == branching().explain()


def test_copies_of_a_branching_pipeline() -> None:
    plan = branching()
    for again in (
        ps.Outputs.from_json(plan.to_json()),
        pickle.loads(pickle.dumps(plan)),
        copy.deepcopy(plan),
    ):
        assert again == plan
        assert hash(again) == hash(plan)
        assert again.explain() == plan.explain()
        assert again.names == ["result", "late", "best", "both"]
    assert plan != ps.outputs(result=plan["result"])
    one = plan["best"]
    assert ps.Stream.from_json(one.to_json()) == one
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"version": 1}', "not json"])
def test_text_that_is_no_plan(text: str) -> None:
    with pytest.raises(ps.PlanError):
        ps.Outputs.from_json(text)


def test_the_json_of_one_pipeline_is_not_that_of_several() -> None:
    with pytest.raises(ps.PlanError):
        ps.Stream.from_json(ps.outputs(a=NORTH, b=SOUTH).to_json())


# What cannot be run, or built.

DATA = table((1, "a", 1))
WRONG_NAMES: Any = {"north": DATA, 1: DATA}
BOTH = NORTH.union(SOUTH)
OTHER_TYPE = ps.stream({"t": "int64", "k": "string", "v": "int32"}, time="t", name="other")
MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no data for a stream": (lambda: BOTH.run({"north": DATA}), ps.PlanError, "south"),
    "data for no stream": (
        lambda: BOTH.run({"north": DATA, "south": DATA, "suoth": DATA}),
        ps.PlanError, 'suoth.*did you mean "south"'),
    "data without a name": (lambda: BOTH.run(DATA), ps.PlanError, "north.*south"),
    "a name that is no string": (lambda: BOTH.run(WRONG_NAMES), TypeError, "1"),
    "streams without names": (
        lambda: STREAM.union(ps.stream(SCHEMA, time="t", delay=1)), ps.PlanError, "name"),
    "outputs of streams without names": (
        lambda: ps.outputs(a=STREAM, b=ps.stream({"x": "int64"})), ps.PlanError, "name"),
    "two streams of one name": (
        lambda: NORTH.union(ps.stream(SCHEMA, time="t", delay=1, name="north")), ps.PlanError, "north"),
    "other columns": (lambda: NORTH.union(SOUTH.drop("v")), ps.PlanError, "columns"),
    "another order": (lambda: NORTH.union(SOUTH.select("t", "v", "k")), ps.PlanError, "order"),
    "another type": (lambda: NORTH.union(OTHER_TYPE), ps.TypeMismatchError, "int32"),
    "another time": (lambda: NORTH.union(ps.stream(SCHEMA, time="v", name="x")), ps.PlanError, "time"),
    "no time": (lambda: NORTH.union(ps.stream(SCHEMA, name="x")), ps.PlanError, "time"),
    "a union with a table": (lambda: NORTH.union(DATA), TypeError, "Stream"),
    "a union of nothing": (ps.union, TypeError, "at least one"),
    "no output": (ps.outputs, ps.PlanError, "at least one"),
    "an output that is none": (lambda: ps.outputs(a=DATA), TypeError, "a="),
    "an empty name": (lambda: ps.stream(SCHEMA, name=""), ps.PlanError, "name"),
    "a name of another kind": (lambda: ps.stream(SCHEMA, name=1), TypeError, "name"),  # type: ignore[arg-type]
    "no predicate": (STREAM.split, TypeError, "predicate"),
    "a split by numbers": (lambda: STREAM.split(col("v")), ps.TypeMismatchError, "bool"),
    "late rows of no window": (STREAM.split_late, ps.PlanError, "window"),
    "late rows of a join": (lambda: NORTH.join(SOUTH, window=TEN, on="k").split_late(), ps.PlanError, "join"),
    "a window over late rows": (
        lambda: STREAM.window(TEN).agg(ps.count()).split_late()[1].window(TEN),
        ps.MissingTimeColumnError, "time"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_done(mistake: str) -> None:
    attempt, kind, words = MISTAKES[mistake]
    with pytest.raises(kind, match=words):
        attempt()


def test_a_misspelt_stream_is_named_with_the_closest_match() -> None:
    """The wrong name is what the user has to find."""
    with pytest.raises(ps.PlanError, match="suoth"):
        BOTH.run({"north": DATA, "suoth": DATA})


def test_a_cycle_cannot_be_said() -> None:
    """Steps give new streams, and those they are made of stay as they were."""
    longer = STREAM.filter(col("v") > 1).union(STREAM)
    assert longer != STREAM
    assert ps.stream(SCHEMA, time="t") == STREAM
    with pytest.raises(AttributeError):
        STREAM._plan = longer._plan


def test_an_error_in_one_branch_ends_the_whole_run_and_says_why() -> None:
    broken = STREAM.with_columns(v=col("v") // (col("v") - 3))
    with pytest.raises(ps.ComputeError):
        ps.outputs(fine=STREAM, broken=broken).run(table((1, "a", 3)))
    assert values(run_all(ps.outputs(fine=STREAM, broken=broken), table((1, "a", 4)))["broken"]) == [4]
