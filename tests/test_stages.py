"""Pipelines in stages: each stage on any number of parts gives, all together, what one run gives."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from penstock.staging import Stage, Staged, StageInput, key_groups, run_stage_part, stages
from reference.sizes import SMALLER
from reference.stateful import COUNTED, DIGITS, PLANS, SCHEMA, VIEWS, rows_of, table_of

Row = tuple[int, str | None, int]
ROWS = st.lists(
    st.tuples(st.integers(-30, 60), st.sampled_from(["a", "b", "c", "d", "e", None]), st.integers(-9, 9)),
    max_size=60,
)
# So many that rows of every key meet rows of every other.
MANY: list[Row] = [(number // 2, "abcde"[number % 5], number * 7 % 19 - 9) for number in range(60)]
# Each example runs many engines, and there are many pipelines.
FEWER = settings(max_examples=16 // SMALLER)
# Without a key: all rows have to come together.
TOGETHER: dict[str, ps.Stream] = {
    "total": VIEWS.window(ps.tumbling(7)).agg(
        n=ps.count(),
        total=ps.sum("x"),
        least=ps.min("x"),
        kinds=ps.count_distinct("k"),
        first=ps.first("x"),
        last=ps.last("x"),
    ),
    "panes": VIEWS.window(ps.sliding(20, 3, offset=1)).agg(n=ps.count(), mean=ps.mean("x")),
    "pauses": VIEWS.window(ps.session(4)).agg(n=ps.count(), last=ps.last("x")),
    "best": VIEWS.window(ps.tumbling(9)).top_k(3, "x"),
    "both": VIEWS.cogroup(VIEWS.filter(col("x") > 0), window=ps.tumbling(9), by=[]).agg(
        left={"n": ps.count()}, right={"most": ps.max("x")}
    ),
    "total of totals": VIEWS.window(ps.tumbling(5))
    .agg(n=ps.count())
    .window(ps.sliding(20, 5))
    .agg(ps.sum("n")),
}
MIRRORED = COUNTED.rename(low="high", high="low").select(*COUNTED.schema.names)
PAIRED = DIGITS.join(DIGITS, window=ps.tumbling(10), left_on="low", right_on="high").select(
    "window_start", "window_end", "low", n="x"
)
MORE: dict[str, ps.Stream] = {
    "computed key": VIEWS.window(ps.tumbling(10), by=(col("x") % 3).alias("third")).agg(n=ps.count()),
    "no state": VIEWS.select("k", "y"),
    "most frequent": VIEWS.window(ps.sliding(20, 5), by="k")
    .agg(n=ps.count())
    .window(ps.tumbling(5))
    .agg(most=ps.max("n")),
    "renamed": VIEWS.select("t", key="k", x="x")
    .window(ps.tumbling(10), by=["key", "x"])
    .agg(n=ps.count())
    .rename(key="same")
    .window(ps.tumbling(20), by="same")
    .agg(n=ps.sum("n")),
    # A stream in several places: by two keys in one stage, by others in another, and without any.
    "two operators by the same two keys": PAIRED.join(
        DIGITS.cogroup(DIGITS, window=ps.tumbling(10), left_by="low", right_by="high").agg(
            left={"lows": ps.count()}, right={"highs": ps.count()}
        ),
        window=ps.tumbling(20),
        on="low",
        how="full",
    ),
    "keys exchanged": PAIRED.union(
        DIGITS.join(DIGITS, window=ps.tumbling(10), left_on="high", right_on="low").select(
            "window_start", "window_end", low="high", n="x"
        )
    )
    .window(ps.tumbling(20), by="low")
    .agg(total=ps.sum("n")),
    "under other names": COUNTED.join(MIRRORED, window=ps.tumbling(10), on=["low", "high"], how="full"),
    "under other names at once": COUNTED.union(MIRRORED)
    .window(ps.tumbling(10), by=["low", "high"])
    .agg(n=ps.sum("n")),
    "with and without a key": COUNTED.window(ps.tumbling(10))
    .agg(n=ps.sum("n"))
    .cogroup(COUNTED, window=ps.tumbling(10), left_by="n", right_by="high")
    .agg(left={"total": ps.sum("n")}, right={"others": ps.count()}),
    # Rows that have lost their time, beside those of windows.
    "without a time": DIGITS.select("low", n="x").union(COUNTED.select("low", "n")),
    "without a time, windows first": COUNTED.select("low", "n").union(DIGITS.select("low", n="x")),
    "without a time from there on": DIGITS.filter(col("x") > 0)
    .select("low", "x")
    .with_columns(y=col("x") * 2)
    .filter(col("y") < 9),
}
EACH = PLANS | MORE


def shared(
    stage: Stage, data: dict[str, pa.Table], made: dict[tuple[int, str], pa.Table], parts: int
) -> list[dict[str, pa.Table]]:
    """The rows of a stage, for each part."""
    shares: list[dict[str, pa.Table]] = [{} for _ in range(parts)]
    for read in stage.inputs:
        table = data[read.name] if read.stage is None else made[read.stage, read.name]
        match read.spread:
            case "anyhow":
                place = np.arange(len(table)) % parts
            case "together":
                place = np.zeros(len(table), int)
            case "by_key":
                place = np.frombuffer(key_groups(table, read.keys), np.uint8).astype(int) % parts
        for share in range(parts):
            shares[share][read.stream] = table.filter(pa.array(place == share))
    return shares


def in_order(rows: pa.Table, read: StageInput) -> pa.Table:
    """Rows in the order in which none is judged by another one."""
    order = read.time if read.stage is None else read.watermark or read.time
    if order is None or (read.stage is None and read.watermark):
        return rows
    return rows.take(pc.sort_indices(rows, [(order, "ascending", "at_start")]))


def sorted_by(share: dict[str, pa.Table], stage: Stage) -> dict[str, pa.Table]:
    return {read.stream: in_order(share[read.stream], read) for read in stage.inputs}


def with_watermarks(rows: list[Row], delay: int) -> pa.Table:
    """Rows in the order in which they came, with the watermark before each."""
    largest = [max((row[0] for row in rows[:number]), default=None) for number in range(len(rows))]
    marks = pa.array([None if time is None else time - delay for time in largest], pa.int64())
    return table_of(rows).add_column(0, "__watermark", marks)


def in_stages(staged: Staged, data: dict[str, pa.Table], parts: int) -> list[str]:
    """Runs each stage on so many parts, one after the other."""
    made: dict[tuple[int, str], pa.Table] = {}
    for number, stage in enumerate(staged.stages):
        shares = [sorted_by(share, stage) for share in shared(stage, data, made, parts)]
        results = [stage.outputs.run(share) for share in shares]
        for name in stage.outputs.names:
            made[number, name] = pa.concat_tables([pa.table(result[name]) for result in results])
    ((number, name),) = staged.results
    return sorted(map(repr, made[number, name].to_pylist()))


@pytest.mark.parametrize("name", EACH)
@FEWER
@given(rows=ROWS, parts=st.integers(1, 4))
@example(rows=MANY, parts=3)
def test_every_stage_runs_on_any_part(name: str, rows: list[Row], parts: int) -> None:
    table = table_of(sorted(rows, key=lambda row: row[0]))
    assert in_stages(stages(EACH[name]), {"stream": table}, parts) == rows_of(EACH[name].run(table))


ORDERED = {name: plan for name, plan in (EACH | TOGETHER).items() if name != "corrected"}


@pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")
@pytest.mark.parametrize("name", ORDERED)
@FEWER
@given(rows=ROWS, parts=st.integers(1, 4))
@example(rows=MANY, parts=3)
def test_which_rows_are_late_is_told_by_their_order(name: str, rows: list[Row], parts: int) -> None:
    plan = ORDERED[name]
    staged = stages(plan, ordered=True)
    found = in_stages(staged, {"stream": with_watermarks(rows, 3)}, parts)
    assert found == rows_of(plan.run(table_of(rows)))


def merged(plan: ps.Stream, shares: list[pa.Table]) -> list[str]:
    """Runs what has to come together on each share of the rows, and puts the states together."""
    before, total = stages(plan).stages
    rows = [before.outputs.run(share) for share in shares]
    parts = [{read.stream: pa.table(given[read.name]) for read in total.inputs} for given in rows]
    left = [run_stage_part(total.outputs, part, imposed_watermarks={}) for part in parts]
    assert all(result.rows_out == 0 for part in left for result in part.results.values())
    states = [part.state for part in left if part.state is not None]
    assert len(states) == len(shares)
    done = run_stage_part(
        total.outputs, {read.stream: [] for read in total.inputs}, states, imposed_watermarks={}, last=True
    )
    assert done.state is None
    return rows_of(done.results["result"])


@pytest.mark.parametrize("name", TOGETHER)
@FEWER
@given(rows=ROWS, parts=st.integers(1, 4))
def test_states_of_parts_are_put_together(name: str, rows: list[Row], parts: int) -> None:
    plan = TOGETHER[name]
    assert stages(plan).stages[1].inputs[0].spread == "together"
    # No share is in order, and none has rows that another has.
    shares = [table_of(rows[share::parts]) for share in range(parts)]
    in_order = table_of(sorted(rows, key=lambda row: row[0]))
    assert merged(plan, shares) == rows_of(plan.run(in_order))


def portion_in_stages(
    staged: Staged,
    portion: pa.Table,
    come: int | None,
    states: dict[tuple[int, int], bytes],
    parts: int,
    *,
    last: bool,
) -> list[str]:
    """What a portion of the rows brings out, where it is told how far event time comes with it."""
    made: dict[tuple[int, str], pa.Table] = {}
    behind: dict[tuple[int, str], int | None] = {}
    for place, stage in enumerate(staged.stages):
        shares = shared(stage, {"stream": portion}, made, parts)
        if stage.inputs[0].spread == "anyhow":
            assert all(read.stage is None for read in stage.inputs)
            results = [stage.outputs.run(share) for share in shares]
            behind |= {(place, output): come for output in stage.outputs.names}
        else:
            times = {read.stream: behind[read.stage or 0, read.name] for read in stage.inputs}
            told = {stream: time for stream, time in times.items() if time is not None}
            done = []
            for share, given in enumerate(shares):
                before = [states[place, share]] if (place, share) in states else []
                done.append(run_stage_part(stage.outputs, given, before, imposed_watermarks=told, last=last))
                if (state := done[-1].state) is not None:
                    states[place, share] = state
            results = [dict(part.results) for part in done]
            for output in stage.outputs.names:
                (behind[place, output],) = {part.behind[output] for part in done}
        for output in stage.outputs.names:
            made[place, output] = pa.concat_tables([pa.table(result[output]) for result in results])
    ((place, output),) = staged.results
    return sorted(map(repr, made[place, output].to_pylist()))


@pytest.mark.parametrize("name", [name for name in PLANS if name != "corrected"])
@FEWER
@given(rows=ROWS, cuts=st.lists(st.integers(0, 60), max_size=4), parts=st.integers(1, 3))
@example(rows=MANY, cuts=[20, 40], parts=3)
def test_event_time_comes_as_far_as_was_told(name: str, rows: list[Row], cuts: list[int], parts: int) -> None:
    """In portions, as micro-batches are: rows of a portion come at once, and each brings out the same."""
    rows = sorted(rows, key=lambda row: row[0])
    plan, staged = PLANS[name], stages(PLANS[name])
    states: dict[tuple[int, int], bytes] = {}
    state: bytes | None = None
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for number, (start, end) in enumerate(pairwise(bounds)):
        last = number == len(bounds) - 2
        alone = plan.run_part(table_of(rows[start:end]), state, last=last)
        state = alone.state
        # In any order within the portion; the delay is 3.
        portion = table_of(list(reversed(rows[start:end])))
        come = rows[end - 1][0] - 3 if end else None
        found = portion_in_stages(staged, portion, come, states, parts, last=last)
        assert found == rows_of(alone.result)


def test_states_that_have_not_come_equally_far_are_refused() -> None:
    total = stages(TOGETHER["total"]).stages[1]
    name = total.inputs[0].stream
    empty = pa.table(stages(TOGETHER["total"]).stages[0].outputs.run(table_of([])).pop(total.inputs[0].name))
    states = [
        run_stage_part(total.outputs, {name: empty}, imposed_watermarks=told).state
        for told in ({}, {name: 5})
    ]
    with pytest.raises(ps.PlanError, match="have not come equally far"):
        run_stage_part(
            total.outputs, {name: []}, [state for state in states if state], imposed_watermarks={}, last=True
        )
    with pytest.raises(ps.PlanError, match='no stream "strem"'):
        run_stage_part(total.outputs, {name: empty}, imposed_watermarks={"strem": 5})


def test_a_key_that_is_kept_needs_no_other_cut() -> None:
    def cuts(plan: ps.Stream) -> list[Any]:
        return [[(read.spread, read.keys) for read in stage.inputs] for stage in stages(plan).stages]

    assert cuts(PLANS["window of windows"])[1:] == [[("by_key", ("k", "x"))], [("by_key", ("k",))]]
    wider = VIEWS.window(ps.tumbling(5), by="k").agg(n=ps.count()).window(ps.tumbling(10), by=["k", "n"])
    assert len(cuts(wider.agg(m=ps.count()))) == 2
    both = VIEWS.window(ps.tumbling(10), by="k").agg(n=ps.count())
    other = VIEWS.window(ps.tumbling(10), by="k").agg(m=ps.sum("x"))
    assert len(cuts(both.join(other, window=ps.tumbling(10), on="k"))) == 2
    assert cuts(PLANS["no key"])[1] == [("together", ())]
    assert cuts(MORE["computed key"])[1] == [("by_key", ("__key_0",))]


def test_rows_of_two_keys_come_in_by_each() -> None:
    def keys(plan: ps.Stream) -> list[tuple[str, ...]]:
        last = stages(plan).stages[-1]
        assert len({read.stream for read in last.inputs}) == len(last.inputs)
        assert len({(read.stage, read.name) for read in last.inputs}) == len(last.inputs)
        return [read.keys for read in last.inputs]

    assert keys(PLANS["join with itself"]) == [("low",), ("high",)]
    assert keys(PLANS["cogroup with itself"]) == [("__key_0",), ("__key_0",)]
    assert keys(PLANS["windows join themselves"]) == [("low", "high"), ("high", "low")]
    assert keys(MORE["two operators by the same two keys"]) == [("low",), ("high",)]
    # By one key once is enough, whatever it is called.
    assert keys(DIGITS.join(DIGITS, window=ps.tumbling(10), on="low")) == [("low",)]
    named = DIGITS.cogroup(DIGITS, window=ps.tumbling(10), left_by=col("low").alias("key"), right_by="low")
    assert keys(named.agg(left={"n": ps.count()}, right={})) == [("low",)]


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (VIEWS.window(ps.tumbling(5), close_after="1s").agg(ps.count()), "close by the clock"),
        (ps.stream(SCHEMA, time=ps.ingestion_time("at")), "when it arrives"),
        (ps.stream(SCHEMA, time="t", watermark="x"), "watermarks are taken from the data"),
    ],
)
def test_what_depends_on_one_place_is_refused(plan: ps.Stream, reason: str) -> None:
    with pytest.raises(ps.PlanError, match=reason):
        stages(plan)


@pytest.mark.parametrize("name", ["__watermark", "__key_0"])
def test_names_that_are_needed_on_the_way_are_refused(name: str) -> None:
    named = ps.stream({"t": "int64", name: "int64"}, time="t")
    with pytest.raises(ps.PlanError, match=f'column "{name}": on several machines this name is needed'):
        stages(named)
    with pytest.raises(ps.PlanError, match="rename it"):
        stages(VIEWS.with_columns(**{name: col("x")}).select("k"))


def test_late_rows_as_an_output_are_refused() -> None:
    result, late = VIEWS.window(ps.tumbling(10)).agg(n=ps.count()).split_late()
    with pytest.raises(ps.PlanError, match="late rows are an output"):
        stages(ps.outputs(result=result, late=late))


def test_key_groups_are_those_of_the_engine() -> None:
    table = pa.table({"k": ["a", None, "a"], "x": pa.array([1, 2, 1], "int16"), "other": [{"a": 1}] * 3})
    first, second, third = key_groups(table, ("k", "x"))
    assert first == third != second
    with pytest.raises(ps.PlanError, match='no column "z"'):
        key_groups(table, ("z",))
    with pytest.raises(ps.PlanError, match="cannot be a key"):
        key_groups(table, ("other",))
    assert key_groups(table.slice(0, 0), ("k",)) == b""
