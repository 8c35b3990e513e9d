"""Scripts in processes of their own, which may be interrupted, forked or left in the middle."""

from __future__ import annotations

import os
import subprocess
import sys

HANG_SECONDS = 30.0

PRELUDE = """
import itertools, json, os, signal, sys, threading, time, warnings
import pyarrow as pa
import penstock as ps

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
STREAM = ps.stream(SCHEMA, time="t")
WINDOWS = STREAM.filter(ps.col("k") >= 0).window(ps.tumbling(1000), by="k").agg(n=ps.count())
BATCH = pa.record_batch(
    [pa.array(range(1000), pa.int64()), pa.array([i % 7 for i in range(1000)], pa.int64())], schema=SCHEMA
)

def say(**what):
    print(json.dumps(what), flush=True)

def endless(pause=0.0):
    while True:
        time.sleep(pause)
        yield BATCH

def asleep():
    yield BATCH
    time.sleep(3600)
    yield BATCH

def threads():
    return len(os.listdir("/proc/self/task"))
"""


def start(script: str) -> subprocess.Popen[str]:
    """A child that runs the script behind the prelude, with the engine's usual options."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in ("PENSTOCK_CHECKS", "PENSTOCK_TRIM") or not name.startswith("PENSTOCK_")
    }
    return subprocess.Popen(
        [
            sys.executable, "-W", "ignore::DeprecationWarning",
            "-W", "ignore:leaving the engine has discarded",
            "-c", PRELUDE + script,
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def finish(child: subprocess.Popen[str], seconds: float = HANG_SECONDS) -> str:
    """What the child said, after it has ended well and without a word on stderr."""
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        raise AssertionError(f"the child hangs: {out[-2000:]} {err[-2000:]}") from None
    assert (child.returncode, err) == (0, ""), f"{child.returncode} {out[-2000:]} {err[-4000:]}"
    return out


def run(script: str, seconds: float = HANG_SECONDS) -> str:
    """What the script says."""
    return finish(start(script), seconds)
