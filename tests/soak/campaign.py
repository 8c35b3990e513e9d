"""Many cases in several processes: what crashes or hangs is put down to its seed, and the rest goes on."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

PER_CHILD = 150
"""Cases per process: new ones start with nothing left over."""
SILENCE_SECONDS = 120.0
"""A process that says nothing for so long has a hang that its own watch has not seen."""


@dataclass
class Report:
    """What the campaign has come to."""

    cases: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[int, str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, seed: int, kind: str, finding: str) -> None:
        """Prints a finding and keeps it."""
        with self.lock:
            self.findings.append((seed, kind, finding))
            print(f"\nFINDING seed {seed} ({kind}): {finding}", flush=True)
            print(f"again with: {command(seed, kind)}", flush=True)


def command(seed: int, kind: str) -> str:
    """What runs a case again, also if it was played instead of the one that the seed is."""
    return f"python tests/soak --seed {seed} --only '{kind}'"


class Child:
    """A process that runs the cases of some seeds."""

    def __init__(self, first: int, count: int, only: str | None) -> None:
        options = ["--first", str(first), "--count", str(count), *(["--only", only] if only else [])]
        environment = {**os.environ, "PENSTOCK_CHECKS": "1", "PYTHONFAULTHANDLER": "1"}
        self.errors: list[str] = []
        self.heard, self.silent = time.monotonic(), False
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent), *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, start_new_session=True,
        )  # fmt: skip
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self) -> None:
        """Keeps what the process complains about."""
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self.errors.append(line)
                del self.errors[:-400]

    def kill(self) -> None:
        """Ends it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()

    def close(self) -> int:
        """Lets go of it when it has ended; how it did."""
        code = self.process.wait()
        self.listener.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def run_child(child: Child, report: Report, until: float, stop_at: int) -> int | None:
    """Follows a process to its end. The seed that it ended at, if it did so in the middle."""
    assert child.process.stdout is not None
    at: int | None = None
    kind, found = "", False
    overseer = threading.Thread(target=oversee, args=(child, until), daemon=True)
    overseer.start()
    for line in child.process.stdout:
        child.heard = time.monotonic()
        said = json.loads(line)
        if "done" in said:
            at = None
        elif "finding" in said:
            found = True
            shown = f"\n{dump(child)}" if "hang" in said["finding"] else ""
            report.add(said["seed"], said["kind"], said["finding"] + shown)
        else:
            at, kind, found = said["seed"], said["kind"], False
            if time.monotonic() > until or len(report.findings) >= stop_at:
                at = None
                child.kill()
                break
            with report.lock:
                report.cases[kind] += 1
    overseer.join()
    code = child.close()
    if at is not None and not found:
        what = "said nothing for too long" if child.silent else f"ended with {code}"
        report.add(at, kind, f"the process {what}\n{dump(child)}")
    return at


def oversee(child: Child, until: float) -> None:
    """Ends a process that says nothing for too long."""
    while child.process.poll() is None:
        time.sleep(0.1)
        now = time.monotonic()
        child.silent = now - child.heard > SILENCE_SECONDS
        if child.silent or now > until + SILENCE_SECONDS:
            child.kill()


def dump(child: Child) -> str:
    """The last that a process complained about."""
    time.sleep(0.2)
    return "".join(child.errors[-120:])


def hunt(first: int, seconds: float, jobs: int, only: str | None, stop_at: int) -> Report:
    """Runs cases from a seed on, for so long, in so many processes."""
    report, until = Report(), time.monotonic() + seconds
    next_seed, lock = first, threading.Lock()

    def work() -> None:
        nonlocal next_seed
        while time.monotonic() < until and len(report.findings) < stop_at:
            with lock:
                start, next_seed = next_seed, next_seed + PER_CHILD
            end = start + PER_CHILD
            while start < end and time.monotonic() < until and len(report.findings) < stop_at:
                ended = run_child(Child(start, end - start, only), report, until, stop_at)
                start = end if ended is None else ended + 1

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report


def draw_first() -> int:
    """A seed that nobody has chosen, at the beginning of a round: the first process plays every scene."""
    return random.SystemRandom().randrange(10**7) * PER_CHILD


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python tests/soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to look for findings (600)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes at a time")
    parser.add_argument("--from", dest="start", type=int, help="the seed to begin with (a random one)")
    parser.add_argument("--seed", type=int, help="run the case of this seed alone, in this process")
    parser.add_argument("--only", help="graphs only ('graph'), or one scene")
    parser.add_argument("--findings", type=int, default=20, help="stop after so many findings (20)")
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=PER_CHILD, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.first is not None:
        from soak import child

        child.work(given.first, given.count, given.only)
        return 0
    if given.seed is not None:
        return replay(given.seed, given.only)
    first = draw_first() if given.start is None else given.start
    print(f"seeds from {first} on, for {given.seconds:.0f} s, {given.jobs} at a time", flush=True)
    report = hunt(first, given.seconds, given.jobs, given.only, given.findings)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(report.cases.items()))
    print(f"{sum(report.cases.values())} cases ({shown}), {len(report.findings)} findings")
    return 1 if report.findings else 0


def replay(seed: int, only: str | None) -> int:
    """Runs one case in this process, and shows it."""
    from soak import cases, child
    from soak.watch import Watch

    kind = child.kind_of(seed, only)
    print(cases.draw(seed) if kind == "graph" else f"seed {seed}: {kind}", flush=True)
    finding = child.run_one(seed, kind, Watch(lambda text: print(f"FINDING: {text}", flush=True)))
    print("no finding" if finding is None else f"FINDING: {finding}")
    return 0 if finding is None else 1
