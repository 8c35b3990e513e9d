"""I16: what a process had does not work in a forked child, which is a clear error and never a hang.

Each case runs in a process of its own, which forks with an engine at work. A child can have engines of its
own, and the parent goes on as if nothing had happened.
"""

from __future__ import annotations

import json
import os

import pytest

from reference import children

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
]

HANG_SECONDS = 20

# `in_child` runs a function in a forked child, and says how it ended: it has seconds, not for ever.
FORKING = """
def in_child(work, at_once=True):
    reading, writing = os.pipe()
    begin = time.time()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            try:
                said = work()
            except BaseException as error:
                said = [type(error).__name__, isinstance(error, ps.EngineError), str(error)]
            os.write(writing, json.dumps(said).encode())
            status = 0
        finally:
            os._exit(status) if at_once else sys.exit(status)
    os.close(writing)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.time() - begin > 15:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            say(hangs=True)
            sys.exit(0)
        time.sleep(0.005)
    answer = os.read(reading, 65536).decode()
    os.close(reading)
    return {"said": json.loads(answer or "null"), "status": status, "seconds": time.time() - begin}

engine = ps.Engine(workers=2, mode=MODE)
source, pushed = ps.PushSource(capacity=2), 0
query = engine.submit(WINDOWS, source=source)
busy = engine.submit(WINDOWS, source=ps.replay(BATCH, rounds=None, rate=1e5), sink="discard")
kept = engine.submit(STREAM, source=BATCH, sink="collect")
shared_from = ps.PushSource()
shared = engine.source(STREAM, shared_from)
reader = engine.submit(WINDOWS, source=shared, sink="collect")
kept.wait()
"""

GOES_ON = """
# The parent goes on: rows go in, windows close, everything ends.
assert source.push(BATCH) and shared_from.push(BATCH)
source.close()
shared_from.close()
assert sum(batch.num_rows for batch in query) == 7
assert query.wait() and query.status == "finished"
assert reader.result().rows_in == 1000
before = busy.metrics()["rows_in"]
limit = time.time() + 10
while busy.metrics()["rows_in"] <= before and time.time() < limit:
    time.sleep(0.01)
assert busy.metrics()["rows_in"] > before, "the parent's query stands still"
again = engine.submit(WINDOWS, source=BATCH, sink="collect")
assert len(again.result()) == 7
engine.stop()
assert busy.status == "stopped"
say(goes_on=True)
"""

USES = {
    "submit": "engine.submit(WINDOWS, source=BATCH)",
    "source": "engine.source(STREAM, BATCH)",
    "submit to a shared source": "engine.submit(shared.stream, source=shared)",
    "start": "shared.start()",
    "close a shared source": "shared.close()",
    "wait": "query.wait()",
    "wait with a timeout": "query.wait(timeout=0.1)",
    "results": "next(query.results())",
    "stop a query": "query.stop()",
    "drain a query": "query.stop(drain=True)",
    "result": "kept.result()",
    "result of a running query": "reader.result()",
    "metrics of a query": "query.metrics()",
    "metrics of an engine": "engine.metrics()",
    "stop an engine": "engine.stop()",
    "push": "source.push(BATCH)",
    "push until it is full": "[source.push(BATCH) for _ in range(10)]",
}


def run(script: str, mode: str) -> list[dict[str, object]]:
    """What the script and its children said; nobody may hang."""
    said = children.run(f"MODE = {mode!r}\n" + FORKING + script + GOES_ON, HANG_SECONDS * 2)
    lines: list[dict[str, object]] = [json.loads(line) for line in said.splitlines()]
    assert {"hangs": True} not in lines, "a forked child hangs"
    assert lines[-1] == {"goes_on": True}
    return lines[:-1]


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_what_the_parent_had_is_an_error_in_a_child(mode: str) -> None:
    script = "".join(f"say(use={name!r}, **in_child(lambda: {use}))\n" for name, use in USES.items())
    answers = {str(line["use"]): line for line in run(script, mode)}
    assert list(answers) == list(USES)
    wrong = {}
    for name, answer in answers.items():
        said = answer["said"]
        assert answer["status"] == 0, answer
        is_named = isinstance(said, list) and said[:2] == ["EngineError", True]
        if not is_named or "another process" not in str(said):
            wrong[name] = said
    assert not wrong, f"no EngineError that speaks of another process: {wrong}"


@pytest.mark.parametrize("mode", ["state", "threads"])
@pytest.mark.parametrize("at_once", [True, False], ids=["os._exit", "sys.exit"])
def test_a_child_lets_go_of_what_the_parent_had(mode: str, at_once: bool) -> None:
    """Dropping everything in the child does not hang, nor does leaving its interpreter the long way."""
    script = f"""
def let_go():
    import gc
    global engine, query, busy, kept, shared, reader, source, shared_from
    engine = query = busy = kept = shared = reader = source = shared_from = None
    gc.collect()
    return "gone"

say(**in_child(let_go, {at_once}))
say(**in_child(lambda: "left", {at_once}))
"""
    assert [(line["said"], line["status"]) for line in run(script, mode)] == [("gone", 0), ("left", 0)]


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_leaving_the_block_of_a_parent_in_a_child_does_not_hang(mode: str) -> None:
    script = """
def leave():
    with engine:
        pass
    return "left"

answer = in_child(leave)
say(said=answer["said"], status=answer["status"])
"""
    said = run(script, mode)[0]["said"]
    assert said == "left" or (isinstance(said, list) and said[0] == "EngineError"), said


@pytest.mark.parametrize("mode", ["state", "threads"])
def test_a_child_has_engines_of_its_own(mode: str) -> None:
    script = """
def own():
    ran = len(WINDOWS.run(BATCH))
    with ps.Engine(workers=2, mode=MODE) as mine:
        feed = ps.PushSource()
        a = mine.submit(WINDOWS, source=feed, sink="collect")
        b = mine.submit(WINDOWS, source=endless(), sink="discard")
        feed.push(BATCH)
        feed.close()
        found = len(a.result())
        grandchild = in_child(lambda: len(WINDOWS.run(BATCH)))["said"]
    return [ran, found, b.status, grandchild]

for at_once in (True, False):
    answer = in_child(own, at_once)
    say(said=answer["said"], status=answer["status"])
"""
    assert run(script, mode) == [{"said": [7, 7, "stopped", 7], "status": 0}] * 2


def test_a_source_that_was_never_used_works_in_a_child() -> None:
    """A fork between making a source and submitting it: it may work or be refused, and does not hang."""
    script = """
fresh = ps.PushSource()

def use():
    with ps.Engine(workers=1) as mine:
        query = mine.submit(STREAM, source=fresh, sink="collect")
        fresh.push(BATCH, timeout=5)
        fresh.close()
        return len(query.result())

answer = in_child(use)
say(said=answer["said"], status=answer["status"])
"""
    said = run(script, "state")[0]["said"]
    assert said == 1000 or (isinstance(said, list) and said[0] == "EngineError"), said


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_multiprocessing_works_beside_an_engine(context: str, tmp_path: object) -> None:
    """A pool of processes, each with runs of its own, while the parent's engine is at work."""
    script = f"""
import subprocess, textwrap
folder = {str(tmp_path)!r}
with open(os.path.join(folder, "pool_work.py"), "w") as file:
    file.write(textwrap.dedent('''
        import pyarrow as pa, penstock as ps

        def work(number):
            rows = pa.table({{"t": list(range(number * 100)), "k": [number] * (number * 100)}})
            counts = ps.stream(rows.schema, time="t").window(ps.tumbling(10)).agg(n=ps.count())
            with ps.Engine(workers=1) as engine:
                other = len(engine.submit(counts, source=rows, sink="collect").result())
            return len(counts.run(rows)), other
    '''))
sys.path.insert(0, folder)
import multiprocessing, pool_work
with multiprocessing.get_context({context!r}).Pool(2) as pool:
    answers = pool.map_async(pool_work.work, range(1, 5)).get(15)
say(answers=answers)
"""
    assert run(script, "state") == [{"answers": [[10 * n, 10 * n] for n in range(1, 5)]}]
