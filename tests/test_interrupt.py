"""Ctrl-C: a KeyboardInterrupt soon after, all threads gone, the interpreter intact.

Each case runs in a process of its own, which gets a SIGINT while it is inside `run`. The bounds here only
catch hangs; the latency is recorded with the test.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from reference.sizes import SMALLER

HANG_SECONDS = 10.0

PRELUDE = """
import itertools, json, os, sys, threading, time
import pyarrow as pa
import penstock as ps

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
KEPT = ps.stream(SCHEMA, time="t").filter(ps.col("k") >= 0)
QUERY = KEPT.window(ps.tumbling(1000), by="k").agg(n=ps.count())
BATCH = pa.record_batch(
    [pa.array(range(1000), pa.int64()), pa.array([i % 7 for i in range(1000)], pa.int64())], schema=SCHEMA
)

def ready():
    print("running", flush=True)

def endless():
    for i in itertools.count():
        if i == 50:
            ready()
        yield BATCH

def asleep():
    yield BATCH
    ready()
    time.sleep(3600)
    yield BATCH

def busy():
    yield BATCH
    ready()
    while True:
        pass

def threads():
    tasks = "/proc/self/task"
    return len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()
"""

CASES = {
    "an endless generator": "endless()",
    "a generator asleep": "asleep()",
    "a generator that computes for ever": "busy()",
    "an endless C stream": "pa.RecordBatchReader.from_batches(SCHEMA, endless())",
    "a C stream asleep": "pa.RecordBatchReader.from_batches(SCHEMA, asleep())",
    "an endless list of tables": "(pa.Table.from_batches([batch]) for batch in endless())",
}

INTERRUPTED = """
before = threads()
seen = None
try:
    QUERY.run({source})
except BaseException as error:
    seen = type(error).__name__
at = time.time()
again = len(QUERY.run(BATCH))
# The thread that gives foreign memory back stays for a moment.
limit = time.monotonic() + 5
while threads() > before + {stuck} and time.monotonic() < limit:
    time.sleep(0.01)
print(json.dumps(dict(seen=seen, at=at, before=before, after=threads(), again=again)), flush=True)
"""


def start(script: str) -> subprocess.Popen[str]:
    """A child that has said that it is inside `run`."""
    child = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    if line.strip() != "running":
        child.kill()
        raise AssertionError(f"the child did not start: {line} {child.communicate()[1][-2000:]}")
    return child


def finish(child: subprocess.Popen[str]) -> str:
    """What the child said before it ended on its own."""
    try:
        out, err = child.communicate(timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        raise AssertionError(f"the child hangs: {out} {err[-2000:]}") from None
    assert child.returncode == 0, f"{child.returncode} {out} {err[-2000:]}"
    assert "Traceback" not in err, err[-2000:]
    assert "panicked" not in err, err[-2000:]
    return out


@pytest.mark.parametrize("case", CASES)
def test_ctrl_c_interrupts(case: str, record_testsuite_property: Callable[[str, object], None]) -> None:
    # Foreign code that sleeps cannot be woken: its own thread stays until it returns.
    stuck = 1 if case == "a C stream asleep" else 0
    child = start(INTERRUPTED.format(source=CASES[case], stuck=stuck))
    time.sleep(0.05)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    answer: dict[str, Any] = json.loads(finish(child))
    record_testsuite_property(f"milliseconds to interrupt {case}", round((answer["at"] - sent) * 1000))
    assert answer["seen"] == "KeyboardInterrupt"
    assert answer["after"] <= answer["before"] + stuck, "threads of the engine are left"
    assert answer["again"] == 7, "the same pipeline runs again"


def test_an_uncaught_interrupt_ends_the_interpreter() -> None:
    child = start("QUERY.run(endless())")
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=HANG_SECONDS)
    assert child.returncode in (-signal.SIGINT, 130, 1), (child.returncode, err[-2000:])
    assert "KeyboardInterrupt" in err
    assert "panicked" not in err


@pytest.mark.slow
def test_leaving_while_another_thread_runs_is_clean() -> None:
    script = """
def work():
    QUERY.run(endless())

threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
"""
    # Where the thread stands when the interpreter ends is a matter of luck.
    for child in [start(script) for _ in range(10)]:
        finish(child)


def test_leaving_while_another_thread_waits_for_a_source_is_clean() -> None:
    script = """
threading.Thread(target=lambda: QUERY.run(asleep()), daemon=True).start()
time.sleep(0.5)
"""
    finish(start(script))


def test_a_handler_of_the_users_own_is_called() -> None:
    """A SIGUSR1 during a run reaches its Python handler, and what the handler raises comes out of `run`."""
    script = """
import signal

class Stop(Exception):
    pass

def handler(number, frame):
    raise Stop

signal.signal(signal.SIGUSR1, handler)
try:
    QUERY.run(endless())
except Stop:
    print("stopped")
"""
    child = start(script)
    child.send_signal(signal.SIGUSR1)
    assert finish(child).strip() == "stopped"


def test_other_threads_make_progress_during_a_run() -> None:
    """The interpreter is released while the engine works, so a Python thread can count meanwhile.

    The run is one call into the engine. With a switch interval far longer than the run, the counting thread
    gets the interpreter only if the engine gives it away.
    """
    rows = 2_000_000 // SMALLER
    values = pa.array(range(rows), pa.int64())
    table = pa.table({"t": values, "k": values})
    query = ps.stream(table.schema, time="t").window(ps.tumbling(1000), by="k").agg(n=ps.count())
    ticks, stop, counting = [0], threading.Event(), threading.Event()

    def tick() -> None:
        counting.set()
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=tick)
    interval = sys.getswitchinterval()
    thread.start()
    try:
        assert counting.wait(HANG_SECONDS)
        sys.setswitchinterval(HANG_SECONDS)
        before = ticks[0]
        result = query.run(table)
        during = ticks[0] - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join(HANG_SECONDS)
    assert len(result) == rows
    assert during > 100, "the other thread stood still"


def test_a_source_in_the_same_process_can_wait_for_another_thread() -> None:
    """A generator that waits for another Python thread gets its answer: nobody holds the interpreter."""
    asked, answered = threading.Event(), threading.Event()

    def answer() -> None:
        assert asked.wait(HANG_SECONDS)
        answered.set()

    def waiting() -> Any:
        yield pa.table({"t": [1], "k": [1]})
        asked.set()
        assert answered.wait(HANG_SECONDS)
        yield pa.table({"t": [2], "k": [1]})

    helper = threading.Thread(target=answer)
    helper.start()
    stream = ps.stream({"t": "int64", "k": "int64"})
    assert len(stream.run(waiting())) == 2
    helper.join(HANG_SECONDS)


DRAINED = """
before = threads()
feed, seen, refused, calls = ps.PushSource(capacity=100), None, False, []

def sink(batch):
    calls.append(batch)
    ready()
    time.sleep(0.5)

try:
    with ps.Engine(workers=1, on_exit="drain") as engine:
        query = engine.submit(KEPT, source=feed, sink=sink)
        for _ in range(100):
            feed.push(BATCH)
except BaseException as error:
    seen = type(error).__name__
try:
    engine.submit(KEPT, source=[])
except ps.EngineStoppedError:
    refused = True
limit = time.monotonic() + 5
while threads() > before and time.monotonic() < limit:
    time.sleep(0.01)
print(json.dumps(dict(seen=seen, calls=len(calls), refused=refused, left=threads() - before)), flush=True)
"""


def test_ctrl_c_while_an_engine_is_drained_stops_it() -> None:
    child = start(DRAINED)
    time.sleep(0.7)  # until the block is left
    child.send_signal(signal.SIGINT)
    said = json.loads(finish(child).splitlines()[-1])
    assert said.pop("calls") < 10
    assert said == {"seen": "KeyboardInterrupt", "refused": True, "left": 0}


READERS = {
    "a replay of a query": "ps.replay(query)",
    "a replay of results": "ps.replay(query.results())",
    "a run over a query": "KEPT.run(query)",
    "a table": "pa.table(query)",
    "a reader": "pa.RecordBatchReader.from_stream(query).read_all()",
    "polars": "__import__('polars').DataFrame(query)",
    "a lookup table": "KEPT.lookup(query, on='k')",
    "results": "list(query.results())",
    "an end": "query.wait()",
}

WAITS = """
engine, feed = ps.Engine(workers=1), ps.PushSource()
query = engine.submit(ps.stream(SCHEMA), source=feed)
seen = None
ready()
try:
    try:
        {waits}
    except Exception as error:
        # A library that knows no interrupts passes on words; the interrupt itself comes right behind them.
        seen = str(error)
        time.sleep(5)
except KeyboardInterrupt:
    print("interrupted", "unprintable" in (seen or ""))
engine.stop()
"""


@pytest.mark.parametrize("case", READERS)
def test_ctrl_c_interrupts_who_waits_for_a_query(case: str) -> None:
    child = start("import polars\n" + WAITS.format(waits=READERS[case]))
    time.sleep(0.3)  # until it waits; an interrupt before that is none the worse
    child.send_signal(signal.SIGINT)
    assert finish(child) == "interrupted False\n"
