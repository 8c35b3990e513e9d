"""Watches the queries of a case: one that has work which nobody does for five seconds is a finding.

The time counts that the engine had, not the time on the wall: while its threads want to run and the machine
does not let them, nobody is to blame. Where they sleep, or serve others, while a query stands still, it
counts in full.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import penstock as ps
from soak import leftovers

LIMIT_SECONDS = 5.0
SAMPLE_SECONDS = 0.1
BUSY_SHARE = 0.2
"""How much of a second counts in which threads of the process run and no query moves."""
TASKS = Path("/proc/self/task")
COUNTERS = (
    "rows_in", "rows_contributed", "rows_filtered", "rows_late", "rows_shed", "rows_rejected", "rows_out",
    "batches_in", "late_results",
)  # fmt: skip


def threads_at_work() -> int:
    """Threads of this process that run, or would if they were let."""
    mine, found = str(threading.get_native_id()), 0
    for task in TASKS.iterdir() if TASKS.exists() else []:
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # it has ended
            continue
        found += task.name != mine and state in "RD"
    return found


def standing(query: ps.Query | ps.SharedSource) -> tuple[object, ...]:
    """What changes when a query comes on."""
    metrics = query.metrics()
    tasks = [(task["pending_rows"], task["signals"]) for task in metrics.get("tasks", [])]
    return (query.status, *(metrics[name] for name in COUNTERS), *tasks)


class Watch:
    """Looks at what it is told to watch, from a thread of its own, until the case has ended."""

    def __init__(self, report: Any) -> None:
        self.report = report
        self.lock = threading.Lock()
        self.queries: list[ps.Query] = []
        self.engines: list[ps.Engine] = []
        self.case = ""
        self.since: dict[str, float] = {}
        self.last: dict[str, object] = {}
        self.beats = 0
        threading.Thread(target=self.work, name="watch", daemon=True).start()

    def begin(self, case: str) -> None:
        """A case begins. As long as it watches no query, the case itself has to come on."""
        with self.lock:
            self.case, self.queries, self.engines = case, [], []
            self.since, self.last = {}, {}

    def end(self) -> None:
        """The case has ended, and nothing of it is held any more."""
        self.begin("")

    def add(self, engine: ps.Engine, *queries: ps.Query) -> None:
        """Watches an engine and queries of it."""
        with self.lock:
            self.engines.append(engine)
            self.queries.extend(queries)

    def forget(self) -> None:
        """Lets go of the queries: from here on the case itself has to come on."""
        with self.lock:
            self.queries, self.engines = [], []
            self.since, self.last = {}, {}

    def beat(self) -> None:
        """Says that the case itself comes on."""
        self.beats += 1

    def work(self) -> None:
        before = time.monotonic()
        while True:
            time.sleep(SAMPLE_SECONDS)
            now = time.monotonic()
            # A watch that was not let run itself does not know what the others did.
            passed, before = min(now - before, 2 * SAMPLE_SECONDS), now
            with self.lock:
                if self.case:
                    self.look(passed)

    def look(self, passed: float) -> None:
        """One look at everything that is watched."""
        found: dict[str, object] = {"the case": (self.beats, len(self.queries), *leftovers.looks)}
        for number, query in enumerate(self.queries):
            if query.status == "running":
                found[f"query {number} {query.name!r}"] = standing(query)
        moved = {name for name, state in found.items() if self.last.get(name) != state}
        if len(found) > 1:
            # Whoever waits for a query need not come on before it does.
            found.pop("the case")
        self.last = found
        share = 1.0 if (moved or threads_at_work() == 0) else BUSY_SHARE
        for name in found:
            self.since[name] = 0.0 if name in moved else self.since.get(name, 0.0) + passed * share
            if self.since[name] >= LIMIT_SECONDS:
                self.bark(name)

    def bark(self, name: str) -> None:
        """Reports a hang and ends the process: what hangs cannot be gone on with."""
        print(f"-- {self.case}: {name} has not moved for {LIMIT_SECONDS} s", file=sys.stderr)
        for engine in self.engines:
            print(f"engine: {json.dumps(engine.metrics(), default=str)}", file=sys.stderr)
        for query in self.queries:
            shown = json.dumps(query.metrics(), default=str)
            print(f"query {query.name}: {query.status} {shown}", file=sys.stderr)
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        sys.stderr.flush()
        self.report(f"hang: {name} has not moved for {LIMIT_SECONDS} s")
        os._exit(3)
