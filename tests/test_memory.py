"""Memory: the answer does not depend on it, the budget holds, and results are the user's to keep."""

from __future__ import annotations

import itertools
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from reference import engine, plans, strategies
from reference.compare import as_bag, assert_same_rows
from reference.live import soon
from reference.plans import Plan, Row

HANG_SECONDS = 60
MIB = 1 << 20


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests choose their own options, whoever runs them."""
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)


def run_script(script: str, **environment: str) -> str:
    """What the script prints, in a process of its own that ends well."""
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment,
        capture_output=True, text=True, timeout=HANG_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])
    assert "panicked" not in done.stderr
    return done.stdout


# The answer.

ROWS = 3000
TABLE = pa.table(
    {
        "t": pa.array([i + (i * 7919) % 40 for i in range(ROWS)], pa.timestamp("ms")),
        "k": pa.array([None if i % 50 == 0 else i % 13 for i in range(ROWS)], pa.int64()),
        "s": [None if i % 70 == 0 else f"name {i % 9}" + " that is long" * (i % 2) for i in range(ROWS)],
        "x": pa.array([None if i % 11 == 0 else i for i in range(ROWS)], pa.int32()),
        "f": [i / 8 for i in range(ROWS)],
        "b": [(True, False, None)[i % 3] for i in range(ROWS)],
    }
)
GROUPS = pa.table({"k": [0, 1, 2, 5], "group": ["a", None, "a group with a long name", "a"]})

QUERIES: dict[str, Callable[[ps.Stream], ps.Stream]] = {
    "all columns": lambda s: s,
    "filter": lambda s: s.filter(ps.col("b")).filter(ps.col("x") % 4 != 0),
    "nothing left": lambda s: s.filter(ps.col("x") < 0),
    "select": lambda s: s.select("s", y=ps.col("x") * 2, z=ps.col("f") > 10.0),
    "with columns": lambda s: s.with_columns(y=ps.col("x") + ps.col("k"), s=ps.col("k")),
    "inner lookup": lambda s: s.lookup(GROUPS, on="k"),
    "left lookup": lambda s: s.lookup(GROUPS, on="k", how="left").filter(ps.col("group").is_not_null()),
    "window": lambda s: s.window(ps.tumbling("10ms")).agg(ps.count(), ps.sum("x"), ps.max("s")),
    "window by numbers": lambda s: s.window(ps.tumbling("100ms"), by="k").agg(ps.count(), ps.min("f")),
    "window by text": lambda s: s.window(ps.tumbling("1s"), by=["s", "b"]).agg(ps.sum("x"), ps.max("t")),
    "behind a window": lambda s: (
        s.window(ps.tumbling("50ms"), by="k").agg(n=ps.count(), m=ps.max("s"))
        .filter(ps.col("n") > 3).with_columns(twice=ps.col("n") * 2).select("k", "m", "twice")
    ),
    "all of it": lambda s: (
        s.filter(ps.col("b").is_not_null()).lookup(GROUPS, on="k", how="left")
        .with_columns(y=ps.col("x") // 2).select("t", "group", "y")
        .window(ps.tumbling("20ms"), by="group").agg(ps.sum("y"), n=ps.count())
    ),
}  # fmt: skip

CONFIGURATIONS = [
    {"memory": memory, "chain": chain, "block_rows": block_rows, "chunk_blocks": chunk_blocks}
    for memory, chain, block_rows, chunk_blocks in itertools.product(
        ["blocks", "queue"], ["auto", "off"], [None, 1, 7], [None, 1, 3]
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_the_same_in_every_configuration(query: str) -> None:
    stream = QUERIES[query](ps.stream(TABLE.schema, time="t", delay="20ms"))
    batches = TABLE.to_batches(max_chunksize=700)
    usual = engine.run_quietly(stream, batches)
    rows = as_bag(engine.rows_of(usual))
    assert bool(rows) == (query != "nothing left")
    for options in CONFIGURATIONS:
        result = engine.run_quietly(stream, batches, **options)
        table = result.to_arrow()
        table.validate(full=True)
        assert as_bag(engine.rows_of(table)) == rows, options
        metrics, expected = engine.assert_nothing_lost(result), usual.metrics()
        for name in ("rows_in", "rows_contributed", "rows_filtered", "rows_late", "late_by"):
            assert metrics[name] == expected[name], (name, options)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """Any way to run a plan."""
    return {
        "memory": draw(st.sampled_from(["blocks", "queue"])),
        "chain": draw(st.sampled_from(["off", "auto"])),
        "block_rows": draw(st.none() | st.integers(1, 50)),
        "chunk_blocks": draw(st.none() | st.integers(1, 20)),
        "budget": draw(st.none() | st.integers(16 * MIB, 2**50)),
    }


@pytest.mark.slow
@given(strategies.window_cases(), configurations(), st.data())
def test_any_plan_in_any_configuration_equals_the_reference(
    case: tuple[Plan, list[Row]], options: dict[str, Any], data: st.DataObject
) -> None:
    plan, rows = case
    expected = plans.run(plan, rows)
    batches = engine.batches_of(plan.source.columns, rows, data.draw(strategies.cuts(len(rows))))
    result = engine.run_quietly(engine.build(plan), batches, **options)
    metrics = engine.assert_nothing_lost(result)
    assert (metrics["rows_late"], metrics["rows_filtered"]) == (expected.rows_late, expected.rows_filtered)
    window = next(step for step in plan.steps if isinstance(step, plans.Window))
    keys = ["window_start", "window_end", *(name for name, _ in window.by)]
    assert_same_rows(expected.rows, engine.rows_of(result), keys)


# The budget.

NUMBERS = ps.stream({"t": "int64", "k": "int64"}, time="t")
BY_KEY = NUMBERS.window(ps.tumbling(10**12), by="k").agg(n=ps.count())


def numbers(rows: int, start: int = 0) -> pa.RecordBatch:
    """Rows with a key of its own each."""
    values = np.arange(start, start + rows, dtype=np.int64)
    return pa.record_batch({"t": values, "k": values})


def endless() -> Iterator[pa.RecordBatch]:
    return (numbers(10_000, start) for start in itertools.count(0, 10_000))


def assert_refused(error: ps.MemoryLimitExceeded, budget: int) -> None:
    assert isinstance(error, MemoryError)
    assert isinstance(error, ps.PenstockError)
    assert error.budget_bytes == budget
    assert error.needed_bytes > 0
    assert error.used_bytes + error.needed_bytes > budget
    assert "raise budget=" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is ps.MemoryLimitExceeded
    assert (str(copy), vars(copy)) == (str(error), vars(error))


@pytest.mark.parametrize("chain", ["auto", "off"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_budget_too_small_to_start_is_refused_at_once(query: str, chain: Any) -> None:
    stream = QUERIES[query](ps.stream(TABLE.schema, time="t", delay="20ms"))
    with pytest.raises(ps.MemoryLimitExceeded, match="cannot start") as caught:
        stream.run(TABLE, budget=1000, chain=chain)
    assert_refused(caught.value, 1000)
    assert (caught.value.operator, caught.value.state_bytes) == (None, None)
    assert len(engine.run_quietly(stream, TABLE)) == len(engine.run_quietly(stream, TABLE, budget="64MiB"))


def test_a_refused_start_leaves_the_data_unread() -> None:
    data = (batch for batch in [numbers(5)])
    with pytest.raises(ps.MemoryLimitExceeded):
        BY_KEY.run(data, budget="1KiB")
    assert len(BY_KEY.run(data)) == 5


def test_a_lookup_table_that_does_not_fit_is_refused_at_the_start() -> None:
    stream = NUMBERS.lookup(pa.table({"k": list(range(100_000)), "g": list(range(100_000))}), on="k")
    with pytest.raises(ps.MemoryLimitExceeded) as caught:
        stream.run([numbers(10)], budget="1MiB")
    assert_refused(caught.value, MIB)
    result = stream.run([numbers(10)], budget="64MiB")
    assert len(result) == 10
    assert result.memory["peak_used_bytes"] > 1_000_000


@pytest.mark.parametrize("options", CONFIGURATIONS, ids=str)
def test_state_that_outgrows_the_budget_ends_the_run(options: dict[str, Any]) -> None:
    """Even of input that never ends; and the operator and its bytes are named."""
    with pytest.raises(ps.MemoryLimitExceeded, match="in window: its state has grown to") as caught:
        BY_KEY.run(endless(), budget="4MiB", **options)
    error = caught.value
    assert_refused(error, 4 * MIB)
    assert error.operator == "window"
    assert error.state_bytes is not None
    assert MIB < error.state_bytes <= error.used_bytes + error.needed_bytes
    assert len(BY_KEY.run([numbers(100)], budget="4MiB", **options)) == 100


def test_state_of_a_reader_that_outgrows_the_budget_ends_the_run() -> None:
    reader = pa.RecordBatchReader.from_batches(numbers(0).schema, endless())
    with pytest.raises(ps.MemoryLimitExceeded):
        BY_KEY.run(reader, budget="4MiB")


def test_state_goes_back_with_its_window() -> None:
    """Many windows, each of them within the budget, all of them together far beyond it."""
    query = NUMBERS.window(ps.tumbling(1000), by="k").agg(n=ps.count())
    rows = 2_000_000
    result = query.run((numbers(10_000, start) for start in range(0, rows, 10_000)), budget="8MiB")
    assert len(result) == rows
    assert result.memory["peak_used_bytes"] <= 8 * MIB


SHORT = ps.stream({"t": "int64", "k": "string", "v": "int64"}, time="t")
SHORT_WINDOWS = SHORT.window(ps.tumbling(10_000), by="k").agg(
    n=ps.count(), most=ps.max("v"), different=ps.count_distinct("v")
)


def keys_that_come_once(rows: int) -> list[pa.RecordBatch]:
    batches = []
    for start in range(0, rows, 100_000):
        values = np.arange(start, start + 100_000)
        names = [f"a key that is rather long, {value}" for value in values.tolist()]
        batches.append(pa.record_batch({"t": values, "k": names, "v": values}))
    return batches


def test_two_workers_need_what_one_needs_and_what_is_on_its_way() -> None:
    """One needs 6 MiB. Lanes hold what is open, what they have closed and what is on its way."""
    batches = keys_that_come_once(1_000_000)
    for workers, budget in ((1, 8), (2, 20), (2, 20), (2, 20)):
        with ps.Engine(workers=workers, budget=f"{budget}MiB") as engine:
            query = engine.submit(SHORT_WINDOWS, source=batches, sink="discard", parallelism=workers)
            assert query.wait(HANG_SECONDS)
            assert query.metrics()["rows_out"] == 1_000_000
            memory = engine.metrics()["memory"]
            assert memory["used_bytes"] == memory["state_bytes"] == 0, memory
            assert memory["peak_used_bytes"] <= budget * MIB, memory


@pytest.mark.parametrize("end", ["end", "stop", "fail"])
def test_nothing_of_lanes_stays_charged(end: str) -> None:
    """Whatever is on its way when a query ends: of lanes that have ended, too, and not been merged yet."""
    rows = ps.stream({"t": "int64", "k": "int64"}, time="t", delay=10**9)
    plan = rows.filter(10 // (ps.col("k") + 1) < 100).window(ps.tumbling(1000), by="k").agg(n=ps.count())
    with ps.Engine(workers=2, budget="64MiB") as engine:
        for round in range(5):
            source = ps.PushSource()
            query = engine.submit(plan, source=source, sink="discard", parallelism=2, strategy="merge")
            for start in range(0, 100_000, 10_000):
                assert source.push(numbers(10_000, start))
            assert soon(lambda one=query: one.metrics()["rows_in"] == 100_000)  # type: ignore[misc]
            assert soon(lambda: engine.metrics()["memory"]["state_bytes"] > MIB)
            if end == "end":
                source.close()
                assert query.wait(HANG_SECONDS)
            elif end == "stop":
                if round % 2:
                    source.close()
                query.stop()
            else:
                source.push(numbers(1, -1))
                with pytest.raises(ps.ComputeError):
                    query.wait(HANG_SECONDS)
            assert soon(lambda: engine.metrics()["memory"]["state_bytes"] == 0), engine.metrics()["memory"]


# What is handed out.


LARGE = """
import ctypes, itertools, os, time
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import penstock as ps

MIB = 1 << 20
batch_rows, batches = 125_000, 100
size = batch_rows * batches * 3 * 8
assert size == 300_000_000
values = np.arange(batch_rows, dtype=np.int64)
batch = pa.record_batch({"t": values, "k": values * 3, "f": values / 4})
stream = ps.stream(batch.schema)
stream.run(batch)

def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

before = resident_bytes()
result = stream.run(itertools.repeat(batch, batches), budget="8MiB", chain=CHAIN)
memory = result.memory
kept = list(pa.RecordBatchReader.from_stream(result))
assert len(result) == batch_rows * batches
del result
assert sum(part.num_rows for part in kept) == batch_rows * batches
assert sum(pc.sum(part["k"]).as_py() for part in kept) == batches * 3 * sum(range(batch_rows))
assert sum(pc.sum(part["f"]).as_py() for part in kept) == batches * sum(range(batch_rows)) / 4
# What the stream starts with, in small blocks, is copied.
assert memory["exported_bytes"] > size * 0.7 and memory["chunks_exported"] > 0, memory
assert memory["used_bytes"] == 0, memory
assert memory["peak_used_bytes"] <= memory["budget_bytes"] == 8 * MIB, memory
held = resident_bytes() - before
assert held > size * 0.9, held
del kept
# What was copied in small pieces and freed is the C library's to keep, unless it is told not to.
ctypes.CDLL(None).malloc_trim(0)
limit = time.monotonic() + 30
while (left := resident_bytes() - before) > size / 10 and time.monotonic() < limit:
    time.sleep(0.05)
assert left <= size / 10, f"{left:,} of {held:,} bytes did not go back"
print("all of it")
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the size of a process is read from /proc")
@pytest.mark.parametrize("chain", ["auto", "off"])
def test_a_large_result_is_the_users_and_goes_back_when_dropped(chain: str) -> None:
    # The C library keeps no large blocks that were freed, by this setting: what is left is held by somebody.
    said = run_script(f"CHAIN = {chain!r}\n{LARGE}", MALLOC_MMAP_THRESHOLD_="65536")
    assert said == "all of it\n"


# Results that nobody reads.

UNREAD = """
import os, time
import numpy as np
import pyarrow as pa
import penstock as ps

MIB, QUERIES = 1 << 20, 10

def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

rows = 4_000 if KIND == "long text" else 50_000
values = np.arange(rows, dtype=np.int64)
columns = {"t": values, "k": values * 3, "b": values % 2 == 0}
if KIND == "wide":
    columns |= {f"c{number}": values for number in range(20)}
if "text" in KIND:
    columns["s"] = pa.array([f"number {value} " * (100 if KIND == "long text" else 3) for value in values])
table = pa.table(columns)
stream = ps.stream(table.schema, time="t")
plan = stream
if KIND == "windows":
    plan = stream.window(ps.tumbling(10), by="k").agg(n=ps.count(), m=ps.max("k"))
dead = 0

def bury(batch):
    global dead
    dead += 1
    while not reading:
        time.sleep(0.01)

reading = False
on_error = "fail"
if KIND == "dead letters of text":
    plan, on_error = stream.with_columns(x=1 // (ps.col("k") * 0)), bury
stream.run(table)
before = resident_bytes()
with ps.Engine(workers=2, budget="32MiB", memory=MEMORY) as engine:
    queries = [
        engine.submit(plan, source=ps.replay(table, rounds=None), on_error=on_error, parallelism=1)
        for _ in range(QUERIES)
    ]
    taken, limit, still = -1, time.monotonic() + 20, 0
    while still < 5 and time.monotonic() < limit:
        time.sleep(0.1)
        now = sum(query.metrics()["rows_in"] for query in queries)
        still, taken = (still + 1, now) if now == taken else (0, now)
    assert still == 5, "nobody reads, and the queries go on"
    memory, held = engine.metrics()["memory"], resident_bytes() - before
    # One batch of each query beyond it, at most.
    assert memory["used_bytes"] <= 48 * MIB, memory
    assert held <= 64 * MIB, (held, memory)
    # Each of them goes on when it is read, whatever the others hold.
    reading = True
    for query in queries:
        results = query.results()
        if KIND == "dead letters of text":
            continue
        read = sum(next(results).num_rows for _ in range(60))
        assert read > 0
    assert resident_bytes() - before <= 80 * MIB, (resident_bytes() - before, engine.metrics()["memory"])
    seen, limit = dead, time.monotonic() + 20
    while KIND == "dead letters of text" and dead < seen + 100 and time.monotonic() < limit:
        time.sleep(0.01)
    assert KIND != "dead letters of text" or dead >= seen + 100
    for query in queries:
        query.stop()
    del results, queries
print("within it")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the size of a process is read from /proc")
@pytest.mark.parametrize("memory", ["blocks", "queue"])
@pytest.mark.parametrize("kind", ["numbers", "wide", "text", "long text", "windows", "dead letters of text"])
def test_results_that_nobody_reads_stay_within_the_budget(kind: str, memory: str) -> None:
    said = run_script(f"KIND, MEMORY = {kind!r}, {memory!r}\n{UNREAD}", MALLOC_MMAP_THRESHOLD_="65536")
    assert said == "within it\n"


@pytest.mark.parametrize("read", [0, 1, 5])
def test_results_are_charged_until_they_are_read_or_dropped(read: int) -> None:
    with ps.Engine(workers=2, budget="32MiB") as engine:

        def used() -> int:
            return int(engine.metrics()["memory"]["used_bytes"])

        def start() -> ps.Query:
            return engine.submit(NUMBERS, source=ps.replay(pa.table(numbers(50_000)), rounds=None))

        query = start()
        results = query.results()
        kept = [next(results) for _ in range(read)]
        assert soon(lambda: used() > 2 * MIB)
        query.stop()
        assert used() > 0, "what waits is not lost, and still there"
        kept += list(results)
        assert used() == 0, engine.metrics()["memory"]
        assert sum(batch.num_rows for batch in kept) > 10_000

        # Those of a query that nobody has are dropped with it; the engine lets go of it with the next one.
        query = start()
        assert soon(lambda: used() > 2 * MIB)
        query.stop()
        del query, results
        assert engine.submit(NUMBERS, source=[], sink="discard").wait(60)
        assert soon(lambda: used() == 0), engine.metrics()["memory"]


# A steady state.

STEADY: dict[str, Callable[[ps.Stream], ps.Stream]] = {
    "window": lambda s: s.filter(ps.col("k") % 10 != 3).window(ps.tumbling(10_000)).agg(n=ps.count()),
    "keys": lambda s: s.with_columns(m=ps.col("k") % 97).window(ps.tumbling(50_000), by="m").agg(ps.sum("k")),
    "few rows": lambda s: s.filter(ps.col("k") % 100_000 == 0),
}


@pytest.mark.parametrize("chain", ["auto", "off"])
@pytest.mark.parametrize("query", STEADY)
def test_a_steady_run_waits_for_no_memory(query: str, chain: Any) -> None:
    stream = STEADY[query](NUMBERS)
    batches = (numbers(20_000, start) for start in range(0, 4_000_000, 20_000))
    result = stream.run(batches, chain=chain)
    assert result.rows_in == 4_000_000
    assert result.memory["inline_allocations"] == 0


def test_the_counters_add_up() -> None:
    result = BY_KEY.run([numbers(10_000)], budget="64MiB", chain="off")
    memory = result.memory
    assert list(memory) == [
        "budget_bytes", "used_bytes", "peak_used_bytes", "pinned_bytes", "exported_bytes", "state_bytes",
        "chunks_live", "chunks_spare", "chunks_pooled", "chunks_exported", "chunks_requested",
        "inline_allocations", "background_allocations", "recycles", "trims", "backpressure_ns",
    ]  # fmt: skip
    assert all(type(value) is int and value >= 0 for value in memory.values())
    assert memory["budget_bytes"] == 64 * MIB
    assert memory["used_bytes"] <= memory["peak_used_bytes"] <= memory["budget_bytes"]
    assert memory["pinned_bytes"] + memory["state_bytes"] <= memory["used_bytes"]
    assert memory["chunks_spare"] <= memory["chunks_live"]
    assert result.metrics()["memory"] == memory
    memory["budget_bytes"] = 0
    assert result.memory["budget_bytes"] == 64 * MIB, "a copy"


# Processes.


FORK = """
import itertools, os, sys, threading, time
import pyarrow as pa
import penstock as ps

table = pa.table({"t": list(range(100_000)), "k": list(range(100_000))})
stream = ps.stream(table.schema, time="t").filter(ps.col("k") % 2 == 0)
query = stream.window(ps.tumbling(1000), by="k").agg(n=ps.count())
options = dict(chain="off")
result = stream.run(table, **options)
assert len(result) == len(query.run(table, **options)) == 50_000
if DURING:
    def work():
        stream.window(ps.tumbling(1000)).agg(n=ps.count()).run(itertools.repeat(table), **options)
    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.2)
child = os.fork()
if child == 0:
    try:
        rows = len(stream.run(table, **options)), len(query.run(table, **options))
        kept = result.to_arrow().num_rows
        del result
        os._exit(0 if (*rows, kept) == (50_000, 50_000, 50_000) else 3)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(4)
limit = time.monotonic() + 30
while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
    if time.monotonic() > limit:
        os.kill(child, 9)
        sys.exit("the child hangs")
    time.sleep(0.01)
assert os.waitstatus_to_exitcode(ended[1]) == 0, ended
assert len(query.run(table, **options)) == 50_000
print("both", flush=True)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("during", [False, True], ids=["after a run", "during a run"])
def test_a_forked_child_runs_as_well(during: bool) -> None:
    assert run_script(f"DURING = {during}\n{FORK}") == "both\n"


REFUSED = """
import resource
import pyarrow as pa
import penstock as ps

table = pa.table({"k": list(range(1000))})
stream = ps.stream(table.schema)
assert len(stream.run(table)) == 1000
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now, resource.RLIM_INFINITY))
try:
    said = f"{len(stream.run(table))} rows"
except (MemoryError, OSError) as error:
    said = f"{type(error).__name__}: {error}"
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert len(stream.run(table)) == 1000
print(said)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is that of Linux")
def test_memory_that_the_system_refuses_is_a_plain_error() -> None:
    said = run_script(REFUSED).strip()
    assert re.match(r"(MemoryError|OSError): .*cannot (start|allocate)", said, re.IGNORECASE), said
