"""I15: Ctrl-C interrupts whatever waits for the engine, `stop` ends all threads, leaving is clean.

Each case runs in a process of its own. The bounds only catch hangs; latencies are recorded with the test.
"""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Callable

import pytest

from reference import children
from reference.sizes import SMALLER

ROUNDS = 4
TIMES = 20 // SMALLER
INTERRUPT_SECONDS = 2.5
"""Ten times what an idle machine may take."""

# What the main thread does when the signal comes, a moment after it said so.
PLACES = {
    "wait": "say(entered=True); engine.submit(WINDOWS, source=idle, sink='discard').wait()",
    "wait for a busy query": (
        "say(entered=True); "
        "engine.submit(WINDOWS, source=ps.replay(BATCH, rounds=None), sink='discard').wait()"
    ),
    "results": "say(entered=True); list(engine.submit(WINDOWS, source=idle).results())",
    "results of a generator asleep": "say(entered=True); list(engine.submit(WINDOWS, source=asleep()))",
    "push": "say(entered=True); push_for_ever(engine)",
    "result": (
        "say(entered=True); "
        "engine.submit(WINDOWS, source=ps.replay(BATCH, rounds=None, rate=1e4), sink='collect').result()"
    ),
    "drain": "drain_slowly(engine)",
    "the block of the engine": "say(entered=True); busy(engine)",
}

INTERRUPTED = """
def push_for_ever(engine):
    source = ps.PushSource(capacity=1)
    query = engine.submit(STREAM, source=source)
    while True:
        source.push(BATCH)

def drain_slowly(engine):
    source = ps.PushSource(capacity=100)
    query = engine.submit(SLOW, source=source, sink="discard")
    for _ in range(100):
        source.push(BATCH)
    say(entered=True)
    query.stop(drain=True)

def slow(batch):
    time.sleep(0.02)  # a hundred times
    return batch

SLOW = STREAM.map_batches(slow)

def busy(engine):
    query = engine.submit(WINDOWS, source=endless(), sink=lambda batch: None)
    while True:
        pass

with ps.Engine(workers=2) as engine:
    pass
before = threads()
for _ in range({rounds}):
    seen = at = None
    idle = ps.PushSource()
    try:
        with ps.Engine(workers=2) as engine:
            try:
                {place}
            except BaseException as error:
                seen, at = type(error).__name__, time.time()
                raise
    except KeyboardInterrupt:
        pass
    left = time.time()
    limit = left + 5
    while threads() > before + {stuck} and time.time() < limit:
        time.sleep(0.01)
    say(seen=seen, at=at, left=left, before=before, after=threads())
assert ps.stream(SCHEMA).run(BATCH).rows_out == 1000
"""


@pytest.mark.parametrize("place", PLACES)
def test_ctrl_c_interrupts(place: str, record_testsuite_property: Callable[[str, object], None]) -> None:
    rng = random.Random(place)
    # A generator that sleeps cannot be woken: its thread stays, one more in each round.
    stuck = ROUNDS if "asleep" in place else 0
    child = children.start(INTERRUPTED.format(rounds=ROUNDS, place=PLACES[place], stuck=stuck))
    assert child.stdout is not None
    slowest = 0.0
    for _ in range(ROUNDS):
        line = child.stdout.readline()
        if not line:
            children.finish(child)
        assert json.loads(line) == {"entered": True}
        time.sleep(0.03 + rng.random() * 0.1)
        sent = time.time()
        child.send_signal(signal.SIGINT)
        line = child.stdout.readline()
        if not line:
            children.finish(child)
        answer = json.loads(line)
        assert answer["seen"] == "KeyboardInterrupt", answer
        slowest = max(slowest, answer["at"] - sent, answer["left"] - sent)
        assert answer["after"] <= answer["before"] + stuck, f"threads of the engine are left: {answer}"
    children.finish(child)
    record_testsuite_property(f"milliseconds to interrupt {place}", round(slowest * 1000))
    assert slowest < INTERRUPT_SECONDS, f"{slowest} s until the block of the engine was left"


JOINING = """
release = threading.Event()
entered = threading.Event()

def hold(batch):
    entered.set()
    release.wait()
    return batch

with ps.Engine(workers=1) as engine:
    feed = ps.PushSource()
    shared = engine.source(STREAM, feed)
    held = engine.submit(STREAM.map_batches(hold), source=BATCH, sink="discard")
    entered.wait()
    say(entered=True)
    seen = "nothing"
    try:
        engine.submit(STREAM, source=shared, name="given up", sink="discard")
    except KeyboardInterrupt as interrupt:
        seen = type(interrupt).__name__
    at = time.time()
    release.set()
    # The source goes on as if nobody had asked.
    query = engine.submit(STREAM, source=shared, name="given up", sink="collect")
    feed.push(BATCH)
    feed.close()
    say(seen=seen, at=at, rows=query.result().rows_in)
"""


def test_ctrl_c_interrupts_a_submit_that_waits_for_its_shared_source() -> None:
    """The only worker is in a function, so that nobody answers."""
    child = children.start(JOINING)
    said = child.stdout
    assert said is not None
    assert json.loads(said.readline()) == {"entered": True}
    time.sleep(0.1)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    answers: list[dict[str, object]] = []
    reader = threading.Thread(target=lambda: answers.append(json.loads(said.readline() or "{}")))
    reader.start()
    reader.join(children.HANG_SECONDS)
    if reader.is_alive():
        child.kill()
        reader.join()
        pytest.fail("the submit hangs")
    children.finish(child)
    (answer,) = answers
    assert (answer["seen"], answer["rows"]) == ("KeyboardInterrupt", 1000)
    assert isinstance(answer["at"], float)
    assert answer["at"] - sent < INTERRUPT_SECONDS


STOPPED = """
idle = []

def all_kinds(engine):
    idle.append(ps.PushSource())
    shared = engine.source(STREAM, ps.replay(BATCH, rounds=None))
    yield engine.submit(WINDOWS, source=shared, sink="discard")
    yield engine.submit(WINDOWS, source=shared, on_lag="shed")
    yield engine.submit(WINDOWS, source=idle[-1], sink="collect")
    yield engine.submit(STREAM, source=ps.replay(BATCH, rounds=None))
    yield engine.submit(STREAM, source=ps.replay(BATCH, rounds=None, rate=1000.0), sink="collect")
    yield engine.submit(STREAM, source=ps.replay(BATCH, rounds=None), sink=lambda batch: time.sleep(0.001))
    yield engine.submit(STREAM, source=endless(0.001), sink="discard")
    yield engine.submit(STREAM, source=BATCH, sink="collect")
    idle.append(ps.PushSource(capacity=1))
    while idle[-1].push(BATCH, timeout=0):
        pass
    yield engine.submit(STREAM, source=idle[-1])

with ps.Engine(workers=1) as engine:
    assert list(all_kinds(engine))
for i in range({times}):
    before = threads()
    mode, policy = ("state", "threads")[i % 2], ("adaptive", "fcfs", "rr")[i % 3]
    engine = ps.Engine(workers=1 + i % 4, mode=mode, policy=policy)
    queries = list(all_kinds(engine))
    time.sleep(0.01 * (i % 5))
    during = threads()
    begin = time.time()
    engine.stop()
    seconds = time.time() - begin
    # A thread in a generator ends with its next batch, and the system forgets it a moment later.
    limit = time.time() + 2
    while threads() > before and time.time() < limit:
        time.sleep(0.001)
    say(before=before, during=during, after=threads(), seconds=seconds, status=[q.status for q in queries])
    if threads() > before:
        break
    engine.stop()
"""


def test_stop_ends_all_threads(record_testsuite_property: Callable[[str, object], None]) -> None:
    rounds = [json.loads(line) for line in children.run(STOPPED.format(times=TIMES), 120).splitlines()]
    for number, seen in enumerate(rounds):
        assert seen["during"] > seen["before"], seen
        assert seen["after"] <= seen["before"], f"round {number}: {seen}"
        finished = seen["status"].pop(7)  # a table, which may have come to its end
        assert finished in ("finished", "stopped"), f"round {number}: {seen}"
        assert set(seen["status"]) == {"stopped"}, f"round {number}: {seen}"
    assert len(rounds) == TIMES
    slowest = max(seen["seconds"] for seen in rounds)
    record_testsuite_property("milliseconds to stop an engine", round(slowest * 1000))
    assert slowest < 10


LEAVINGS = {
    "an engine that was closed": """
with ps.Engine(workers=2) as engine:
    engine.submit(WINDOWS, source=ps.replay(BATCH, rounds=None), sink="discard")
    time.sleep(0.05)
""",
    "an engine that is open": """
engine = ps.Engine(workers=2)
queries = [engine.submit(WINDOWS, source=ps.replay(BATCH, rounds=None), sink="discard") for _ in range(5)]
idle = ps.PushSource()
queries += [engine.submit(WINDOWS, source=idle)]
time.sleep(0.05)
""",
    "threads of their own": """
engine = ps.Engine(mode="threads")
queries = [engine.submit(WINDOWS, source=ps.replay(BATCH, rounds=None), sink="discard") for _ in range(5)]
time.sleep(0.05)
""",
    "an engine that nobody holds": """
ps.Engine(workers=2).submit(WINDOWS, source=ps.replay(BATCH, rounds=None), sink="discard")
time.sleep(0.02)
""",
    "an iterator that is blocked": """
engine = ps.Engine(workers=2)
query = engine.submit(WINDOWS, source=asleep(), sink="discard")
time.sleep(0.05)
""",
    "an iterator in the middle": """
engine = ps.Engine(workers=2)
query = engine.submit(WINDOWS, source=endless(0.0001), sink="discard")
time.sleep(0.05)
""",
    "a function as sink": """
engine, seen = ps.Engine(workers=2), []
query = engine.submit(STREAM, source=endless(), sink=lambda batch: seen.append(len(batch.to_pylist())))
while not seen:
    time.sleep(0.01)
""",
    "a slow function as sink": """
engine = ps.Engine(workers=2)
query = engine.submit(STREAM, source=ps.replay(BATCH, rounds=None), sink=lambda batch: time.sleep(0.2))
time.sleep(0.05)
""",
    "a thread that reads results": """
engine = ps.Engine(workers=2)
idle = ps.PushSource()
query = engine.submit(STREAM, source=idle)
threading.Thread(target=lambda: list(query), daemon=True).start()
time.sleep(0.05)
""",
    "a thread that pushes": """
engine, source = ps.Engine(workers=2), ps.PushSource(capacity=1)
query = engine.submit(STREAM, source=source)
def push():
    try:
        while True:
            source.push(BATCH)
    except ps.QueryEndedError:
        pass
threading.Thread(target=push, daemon=True).start()
time.sleep(0.05)
""",
    "sys.exit inside the block": """
with ps.Engine(workers=2) as engine:
    engine.submit(WINDOWS, source=asleep(), sink=lambda batch: None)
    sys.exit(0)
""",
}


@pytest.mark.parametrize("leaving", LEAVINGS)
def test_the_interpreter_is_left_in_peace(leaving: str) -> None:
    """Where the threads stand when the interpreter ends is a matter of luck: some at a time."""
    for child in [children.start(LEAVINGS[leaving]) for _ in range(2)]:
        children.finish(child)
