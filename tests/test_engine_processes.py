"""Engines beside threads, forks, signals and the end of the interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

import penstock as ps
from reference.live import HANG_SECONDS, SCHEMA, STREAM, batch, soon

pytestmark = pytest.mark.slow


def test_foreign_memory_is_released_on_a_thread_of_its_own() -> None:
    """Not on a worker, which must never want the interpreter."""
    import ctypes

    released: list[str] = []
    libc = ctypes.CDLL(None)
    libc.pthread_self.restype = ctypes.c_void_p
    libc.pthread_getname_np.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]

    class Owner(bytearray):
        def __del__(self) -> None:
            name = ctypes.create_string_buffer(64)
            libc.pthread_getname_np(libc.pthread_self(), name, 64)
            released.append(name.value.decode())

    def made(_: int) -> pa.RecordBatch:
        column = pa.Array.from_buffers(pa.int64(), 100, [None, pa.py_buffer(Owner(8 * 100))])
        return pa.record_batch([column, column], SCHEMA)

    with ps.Engine(workers=2) as engine:
        assert engine.submit(STREAM, source=map(made, range(20)), sink="discard").wait(HANG_SECONDS)
    assert soon(lambda: len(released) == 20)
    # The system cuts names at 15 characters. The other is the thread that iterates, and drops what it got.
    assert set(released) <= {"penstock-releas", "penstock-source"}
    assert "penstock-releas" in released


def run_script(script: str, timeout: float = HANG_SECONDS) -> subprocess.CompletedProcess[str]:
    prelude = """
import itertools, os, signal, sys, threading, time
import pyarrow as pa
import penstock as ps

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
STREAM = ps.stream(SCHEMA, time="t")
BATCH = pa.record_batch([pa.array(range(100), pa.int64())] * 2, SCHEMA)
"""
    command = [sys.executable, "-X", "faulthandler", "-c", prelude + script]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


LEAVING = {
    "a running query": "engine.submit(STREAM, source=ps.replay(BATCH, rounds=None), sink='discard')",
    "an unread query": "engine.submit(STREAM, source=itertools.repeat(BATCH))",
    "a generator": "engine.submit(STREAM, source=(BATCH for _ in itertools.count()), sink='discard')",
    "a generator asleep": "engine.submit(STREAM, source=asleep(), sink='discard')",
    "a function as sink": "engine.submit(STREAM, source=itertools.repeat(BATCH), sink=len)",
    "a function asleep": "engine.submit(STREAM, source=[BATCH], sink=lambda _: time.sleep(3600))",
    "a C stream asleep": "engine.submit(STREAM, source=pa.RecordBatchReader.from_batches(SCHEMA, asleep()))",
    "a thread that pushes": "threading.Thread(target=push, daemon=True).start()",
    "a thread that reads": (
        "threading.Thread(target=list, args=[engine.submit(STREAM, source=itertools.repeat(BATCH))],"
        " daemon=True).start()"
    ),
    "a shared source": (
        "engine.submit(STREAM, source=engine.source(STREAM, itertools.repeat(BATCH)), sink='discard')"
    ),
}


@pytest.mark.parametrize("case", LEAVING)
def test_leaving_the_interpreter_is_clean(case: str) -> None:
    script = f"""
def asleep():
    yield BATCH
    time.sleep(3600)

source = ps.PushSource()

def push():
    engine.submit(STREAM, source=source, sink="discard")
    try:
        while True:
            source.push(BATCH)
    except ps.QueryEndedError:
        pass  # the end of the interpreter stops the engine

import warnings
warnings.filterwarnings("ignore", "leaving the engine has discarded")
engine = ps.Engine(workers=2)
{LEAVING[case]}
time.sleep(0.2)
"""
    done = run_script(script)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_a_clear_error_and_can_start_its_own() -> None:
    script = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
idle = ps.Engine(workers=1)
engine = ps.Engine(workers=2)
push = ps.PushSource()
source = engine.source(STREAM, ps.replay(BATCH, rounds=None))
query = engine.submit(STREAM, source=push)
other = engine.submit(STREAM, source=source, sink="discard")
push.push(BATCH)
calls = [
    lambda: engine.submit(STREAM, source=[]), lambda: engine.source(STREAM, []), engine.metrics, engine.stop,
    lambda: engine.queries, lambda: repr(engine), query.wait, query.stop, lambda: query.stop(drain=True),
    query.metrics, lambda: query.status, lambda: query.name, lambda: query.error, lambda: query.schema,
    lambda: next(iter(query)), query.result, lambda: push.push(BATCH), push.close, lambda: push.closed,
    source.metrics, source.start, source.close, lambda: source.status, lambda: source.name,
]
for number in range(20):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        signal.alarm(15)
        for number, call in enumerate(calls):
            try:
                call()
            except ps.EngineError as error:
                assert "started in another process; start a new one here" in str(error)
            else:
                print("no error from", number, flush=True)
                os._exit(3)
        assert len(STREAM.run(BATCH)) == 100
        try:
            idle.queries
        except ps.EngineError:
            pass
        else:
            os._exit(4)
        with ps.Engine(workers=1) as mine:
            assert len(mine.submit(STREAM, source=[BATCH], sink="collect").result()) == 100
        del engine, query, other, push, source, calls, call
        import gc
        gc.collect()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
assert next(iter(query)).num_rows > 0
engine.stop()
print("fine")
"""
    done = run_script(script, timeout=120)
    assert done.returncode == 0, (done.stdout, done.stderr[-3000:])
    assert done.stdout.split()[-1] == "fine"


@pytest.mark.parametrize(
    "call",
    [
        "query.wait()",
        "next(iter(query))",
        "[source.push(BATCH) for _ in range(999)]",
        "query.stop(drain=True)",
    ],
)
def test_ctrl_c_interrupts_every_call_that_waits(call: str) -> None:
    script = f"""
with ps.Engine(workers=2) as engine:
    source = ps.PushSource()
    query = engine.submit(STREAM.filter(ps.col("k") >= 0), source=source)
    if "next" not in {call!r}:
        while source.push(BATCH, timeout=0.2):
            pass
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        {call}
    except KeyboardInterrupt:
        print("interrupted", query.status)
"""
    done = run_script(script)
    assert done.stdout.split() == ["interrupted", "running"], (done.stdout, done.stderr[-2000:])
    assert done.returncode == 0


def test_other_threads_run_while_a_query_is_waited_for(engine: ps.Engine) -> None:
    source = ps.PushSource()
    query = engine.submit(STREAM, source=source, sink="collect")

    def push() -> None:
        source.push(batch(1))
        source.close()

    threading.Timer(0.05, push).start()
    assert query.wait(HANG_SECONDS)
    assert len(query.result()) == 1
    assert signal.getsignal(signal.SIGINT) is not None
