"""I1 and I2: no answer depends on how the engine is set up, nor on what else runs on it.

A pairwise cover of all options, with random graphs of queries against the naive reference, and long streams
of unique ids against an oracle of counts, sums and xors.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import penstock as ps
from reference import audited, configurations, dags, running
from reference.dags import Dag
from reference.engine import run_quietly
from reference.sizes import SMALLER
from reference.watchdog import watched

# Late rows are counted here, and nobody has to be warned of them.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::penstock.LateRowsWarning")]

COVER = configurations.cover()
PROFILE = settings()
FIRST_SEED = 0 if PROFILE.derandomize else random.randrange(2**32)
EXAMPLES = max(2, PROFILE.max_examples // 50)
"""For each configuration; in all as many as another property has, or a few more."""
LONG_ROWS = 200_000 // SMALLER
ROUNDS = 3


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests choose their own options, whoever runs them. What conftest.py sets is none of them."""
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        if name not in ("PENSTOCK_CHECKS", "PENSTOCK_TRIM"):
            monkeypatch.delenv(name)
    assert os.environ["PENSTOCK_TRIM"] == "off", "a ring for another reason hides a wake-up that was lost"


def test_every_pair_of_values_is_in_the_cover() -> None:
    met = Counter(pair for configuration in COVER for pair in configurations.pairs_of(configuration))
    assert set(met) == configurations.all_pairs()
    assert min(met.values()) >= configurations.MEETINGS
    assert len(set(COVER)) == len(COVER)
    assert 20 <= len(COVER) <= 80


@pytest.mark.parametrize("number", range(len(COVER)), ids=[configurations.label(c) for c in COVER])
def test_random_graphs_equal_the_reference(number: int) -> None:
    """Chains, and fan-outs of one source, one after the other on the same engine."""
    print(f"seed {FIRST_SEED + number}")
    options: dict[str, Any] = dict(COVER[number])
    with configurations.start(COVER[number]) as engine:

        @seed(FIRST_SEED + number)
        @settings(max_examples=EXAMPLES)
        @given(st.one_of(dags.dags(1, 1), dags.dags(2, 4)))
        def law(dag: Dag) -> None:
            with watched(engine) as queries:
                running.run(engine, dag, queries)

        law()
    result = run_quietly(audited.PLANS["windows"], audited.table(2_000, number), **options)
    audited.check("windows", 2_000, number, result, result.metrics())


@pytest.mark.parametrize("number", range(len(COVER)), ids=[configurations.label(c) for c in COVER])
def test_each_id_of_a_long_stream_counts_once(number: int) -> None:
    """Three plans that share a source: the ids that come out are those that must, by count, sum and xor."""
    # Few tables, since the oracle takes longer than the engine. Blocks of one row have a boundary at each.
    rows, drawn = LONG_ROWS // (4 if ("block_rows", 1) in COVER[number] else 1), FIRST_SEED + number % 4
    print(f"seed {drawn}")
    with configurations.start(COVER[number]) as engine, watched(engine, 120) as queries:
        batches = audited.table(rows, drawn).to_batches(max_chunksize=9_999)
        source = engine.source(audited.STREAM, batches, hold=True)
        for name, plan in audited.PLANS.items():
            queries.append(engine.submit(plan, source=source, sink="collect", name=name))
        source.start()
        for query in queries:
            audited.check(query.name, rows, drawn, query.result(), query.metrics())


# Queries that come and go.


def in_pieces(rows: pa.Table, rng: random.Random) -> Iterator[pa.RecordBatch]:
    """The rows in batches of random sizes, now and then after a pause."""
    at = 0
    while at < rows.num_rows:
        taken = rng.choice([1, 100, 1_000, 3_000])
        yield rows.slice(at, taken).combine_chunks()
        at += taken
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.02)


def end(query: ps.Query, drain: bool) -> None:
    """Stops a query, which may have ended or failed in the meantime."""
    try:
        query.stop(drain=drain)
    except (ps.ComputeError, ps.LaggedError):
        assert query.status == "failed"
    assert query.status != "running"
    assert query.error is None or isinstance(query.error, (ps.ComputeError, ps.LaggedError)), query.error


def come_and_go(
    engine: ps.Engine, shared: ps.SharedSource, rng: random.Random, until: threading.Event
) -> int:
    """Submits queries of all kinds and stops them, until told to end; says how many."""
    made, alive = 0, list[tuple[ps.Query, bool]]()
    plans = list(audited.PLANS.values())
    small = audited.table(3_000, rng.randrange(2**32))
    while not until.is_set():
        if len(alive) < 8 and rng.random() < 0.7:
            kind = rng.choice(["shared", "shared", "replay", "push", "table", "failing"])
            sink: Any = rng.choice(["discard", "collect", lambda batch: None, None])
            source: Any = {
                "shared": shared, "replay": ps.replay(small, rounds=None, rate=rng.choice([None, 5_000])),
                "push": ps.PushSource(), "table": small, "failing": small.slice(7),
            }[kind]  # fmt: skip
            plan = rng.choice(plans)
            if kind == "failing":
                plan = audited.STREAM.select(x=ps.col("id") // (ps.col("id") * 0))
            try:
                # A reader that nobody reads must not hold up the shared source.
                lag: Any = rng.choice(["fail", "shed"]) if kind == "shared" and sink is None else "wait"
                query = engine.submit(plan, source=source, sink=sink, on_lag=lag)
            except ps.SourceEndedError:
                continue
            alive.append((query, sink is not None))
            made += 1
        elif alive:
            query, drains = alive.pop(rng.randrange(len(alive)))
            end(query, drains and rng.random() < 0.5)
        time.sleep(rng.random() * 0.004)
    for query, _ in alive:
        end(query, drain=False)
    return made


@pytest.mark.parametrize("mode", configurations.OPTIONS["mode"])
@pytest.mark.parametrize("number", range(ROUNDS))
def test_queries_that_come_and_go_change_no_other_answer(mode: Any, number: int) -> None:
    print(f"seed {FIRST_SEED + number}")
    rng = random.Random(FIRST_SEED + number)
    rows = 60_000 // SMALLER
    table = audited.table(rows, number)
    policy: Any = configurations.OPTIONS["policy"][number % 3]
    block_rows = rng.choice([None, 7, 500])
    with (
        ps.Engine(mode=mode, policy=policy, workers=2, block_rows=block_rows) as engine,
        watched(engine, 60) as queries,
    ):
        shared = engine.source(audited.STREAM, in_pieces(table, random.Random(number)), hold=True)
        for name, plan in audited.PLANS.items():
            queries.append(engine.submit(plan, source=shared, sink="collect", name=f"{name} shared"))
            alone = in_pieces(table, random.Random(number + 1))
            queries.append(engine.submit(plan, source=alone, sink="collect", name=f"{name} alone"))
        until, counts, broken = threading.Event(), list[int](), list[BaseException]()

        def churn() -> None:
            try:
                counts.append(come_and_go(engine, shared, rng, until))
            except BaseException as error:
                broken.append(error)

        thread = threading.Thread(target=churn)
        thread.start()
        shared.start()
        try:
            for query in queries:
                audited.check(query.name.split()[0], rows, number, query.result(), query.metrics())
        finally:
            until.set()
            thread.join()
        assert not broken, broken
        assert counts[0] >= 3
