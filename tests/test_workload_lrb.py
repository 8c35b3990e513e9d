"""LRB: accidents and tolls against SQL, and accidents against those that were planted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.workloads import lrb
from reference import lrb as reference
from reference.compare import assert_same_rows
from reference.engine import rows_of
from reference.options import run_all, run_one
from reference.sizes import SMALLER
from reference.types import Value

ROWS = 200_000 // SMALLER
MINUTES = (60, 40, 20)
BRANCHES: dict[str, Callable[[ps.Stream | None, int], ps.Stream]] = {
    "accidents": lrb.accidents,
    "lav": lrb.lav,
    "vehicles": lrb.vehicles,
    "tolls": lrb.tolls,
}
SEGMENT = ("window_end", "xway", "dir", "seg")
KEYS = dict.fromkeys([*BRANCHES, "query"], SEGMENT) | {"accidents": (*SEGMENT, "lane", "pos")}


def pipeline(name: str, minute: int) -> ps.Stream:
    return lrb.query(minute) if name == "query" else BRANCHES[name](None, minute)


def check(name: str, traffic: reference.Traffic, data: Any = None, **options: Any) -> list[dict[str, Value]]:
    result = run_one(pipeline(name, traffic.minute), traffic.rows if data is None else data, **options)
    assert result.rows_late == 0
    rows = rows_of(result)
    assert_same_rows(reference.answer(name, traffic), rows, KEYS[name])
    return rows


def test_the_generator_is_of_the_declared_columns() -> None:
    assert reference.traffic(1000, seed=1).rows.schema == pa.schema(lrb.schema())


@pytest.mark.parametrize("minute", MINUTES)
def test_the_generator_makes_what_the_query_must_tell_apart(minute: int) -> None:
    traffic = reference.traffic(100_000, 1, minute)
    rows = reference.answer("query", traffic)
    before = {tuple(row[key] for key in SEGMENT): row["toll"] for row in reference.answer("tolls", traffic)}
    waived = [row for row in rows if row["toll"] != before[tuple(row[key] for key in SEGMENT)]]
    assert len(waived) > 5
    assert sum(row["toll"] != 0 for row in rows) > 20
    crowded = [row for row in rows if isinstance(row["vehicles"], int) and row["vehicles"] > 50]
    assert any(isinstance(row["lav"], float) and row["lav"] >= 40 for row in crowded)


@pytest.mark.parametrize("minute", MINUTES)
@pytest.mark.parametrize("name", KEYS)
def test_same_as_sql(name: str, minute: int) -> None:
    assert check(name, reference.traffic(ROWS, 2, minute))


@pytest.mark.slow
@pytest.mark.skipif(SMALLER > 1, reason="once is enough")
def test_same_as_sql_over_a_million_rows() -> None:
    assert check("query", reference.traffic(1_000_000, seed=3))


@pytest.mark.parametrize("minute", MINUTES)
@pytest.mark.parametrize("seed", range(4))
def test_planted_accidents_are_found_and_nothing_else(seed: int, minute: int) -> None:
    traffic = reference.traffic(20_000, seed, minute)
    planted = reference.planted_accidents(traffic)
    places = {tuple(row[key] for key in ("xway", "dir", "lane", "pos")) for row in planted}
    assert len(places) >= 5
    assert_same_rows(planted, rows_of(lrb.accidents(minute=minute).run(traffic.rows)), KEYS["accidents"])


@pytest.mark.parametrize(("chain", "workers"), list(product(["auto", "off"], [1, 2])))
@pytest.mark.parametrize("batch_rows", [1, 613, 10_000])
def test_neither_batches_nor_workers_nor_chains_matter(batch_rows: int, chain: str, workers: int) -> None:
    traffic = reference.traffic(3_000, 5)
    check("query", traffic, traffic.rows.to_batches(batch_rows), chain=chain, workers=workers)


def test_branches_share_the_reports() -> None:
    plan = lrb.query().explain()
    assert plan.count('col("type") == 0') == 1
    assert sum(" stream " in line for line in plan.splitlines()) == 1


def test_branches_run_together() -> None:
    traffic = reference.traffic(20_000, 6)
    reports = lrb.position_reports(delay=reference.DELAY)
    together = ps.outputs(**{name: branch(reports, 60) for name, branch in BRANCHES.items()})
    for name, result in run_all(together, traffic.rows).items():
        assert_same_rows(reference.answer(name, traffic), rows_of(result), KEYS[name])


def standing(*places: tuple[int, int, int], begin: int = 0) -> list[dict[str, int]]:
    """Reports of vehicles that stand in lane 1, each at a direction, segment and time after the beginning."""
    blank = dict.fromkeys(lrb.schema().names, 0)
    return [
        blank
        | {
            "time": begin + after + 30 * n,
            "vid": vid,
            "lane": 1,
            "dir": direction,
            "seg": seg,
            "pos": seg * 5280,
        }
        for vid, (direction, seg, after) in enumerate(places)
        for n in range(4)
    ]


def passing(direction: int, segs: range, time: int) -> list[dict[str, int]]:
    """Sixty slow vehicles in each segment: the toll is 200."""
    blank = dict.fromkeys(lrb.schema().names, 0) | {"speed": 10, "lane": 1, "dir": direction, "time": time}
    return [
        blank | {"vid": 1000 + n, "seg": seg, "pos": seg * 5280 + n + 1} for seg in segs for n in range(60)
    ]


def tolls(rows: list[dict[str, int]], window_end: int) -> dict[Value, Value]:
    """The tolls of a minute, by segment."""
    table = pa.Table.from_pylist(sorted(rows, key=lambda row: row["time"]), schema=pa.schema(lrb.schema()))
    result = rows_of(lrb.query().run(table))
    return {row["seg"]: row["toll"] for row in result if row["window_end"] == window_end}


@pytest.mark.parametrize(("direction", "waived"), [(0, range(46, 51)), (1, range(50, 55))])
def test_tolls_are_waived_up_to_four_segments_before_an_accident(direction: int, waived: range) -> None:
    rows = standing((direction, 50, 0), (direction, 50, 1)) + passing(direction, range(44, 57), 70)
    expected = {seg: 0 if seg in waived else 200 for seg in range(44, 57)}
    # The vehicles that stand lie in the segment as well, and the toll would be 2 * 12 * 12 there.
    assert tolls(rows, 120) == expected


@pytest.mark.parametrize(
    ("begin", "live"), [(0, {120}), (29, {120}), (30, {180}), (59, {180}), (60, {180}), (90, {240})]
)
def test_an_accident_lives_in_the_minute_in_which_its_window_ends(begin: int, live: set[int]) -> None:
    """Four reports fit into one window: the one that begins with the half minute of the first."""
    crowds = [row for time in range(0, 360, 60) for row in passing(0, range(48, 49), time)]
    rows = standing((0, 50, 0), (0, 50, 0), begin=begin) + crowds
    found = {end for end in range(60, 361, 60) if tolls(rows, end)[48] == 0}
    assert found == live


def test_a_minute_needs_a_half() -> None:
    with pytest.raises(ValueError, match="15"):
        lrb.query(minute=15)
