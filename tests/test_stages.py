"""Pipelines in stages: each stage on any number of parts gives, all together, what one run gives."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock import col
from penstock.staging import Staged, key_groups, stages
from reference.stateful import PLANS, SCHEMA, VIEWS, rows_of, table_of

ROWS = st.lists(
    st.tuples(st.integers(-30, 60), st.sampled_from(["a", "b", "c", "d", "e", None]), st.integers(-9, 9)),
    max_size=60,
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
}
EACH = PLANS | MORE


def in_stages(staged: Staged, data: dict[str, pa.Table], parts: int) -> list[str]:
    """Runs each stage on so many parts, one after the other."""
    made: dict[tuple[int, str], pa.Table] = {}
    for number, stage in enumerate(staged.stages):
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
                rows = table.filter(pa.array(place == share))
                shares[share][read.stream] = rows if read.time is None else rows.sort_by(read.time)
        results = [stage.outputs.run(share) for share in shares]
        for name in stage.outputs.names:
            made[number, name] = pa.concat_tables([pa.table(result[name]) for result in results])
    ((number, name),) = staged.results
    return sorted(map(repr, made[number, name].to_pylist()))


@pytest.mark.parametrize("name", EACH)
@given(rows=ROWS, parts=st.integers(1, 4))
def test_every_stage_runs_on_any_part(name: str, rows: list[tuple[int, str | None, int]], parts: int) -> None:
    table = table_of(sorted(rows, key=lambda row: row[0]))
    assert in_stages(stages(EACH[name]), {"stream": table}, parts) == rows_of(EACH[name].run(table))


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
