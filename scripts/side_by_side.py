"""Runs commands of the shell three at a time, in the order given, as soon as what they need has passed.

    side_by_side.py TITLE COMMAND [TITLE COMMAND]...

A title may name another one that has to pass first: "Python tests < Package". The others leave the processor
to those that are waited for. When a command has ended, its title is printed with the seconds that it took and
the last line of its output, or all of it if it failed. The exit code is 1 if any command failed or was not
run.

There are two cores, and few commands keep one of them busy: the Python tests take a third of one, since they
mostly wait for an engine. Descriptors are inherited: see C1 of cargo-settings.sh.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

__all__ = ["Job", "main", "run"]

AT_A_TIME = 3
ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Job:
    """A command, and how far it is."""

    title: str
    command: str
    needs: str | None = None
    is_waited_for: bool = False
    process: subprocess.Popen[bytes] | None = None
    output: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    began: float = 0.0

    def start(self) -> None:
        """Starts the command; its output is kept."""
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*([] if self.is_waited_for else ["nice"]), "bash", "-euo", "pipefail", "-c", self.command],
            cwd=ROOT, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def report(self, code: int) -> None:
        """Prints how it ended."""
        took = f"{time.monotonic() - self.began:.0f} s"
        self.output.seek(0)
        text = self.output.read().decode(errors="replace").rstrip("\n")
        if code == 0:
            print(f"-- {self.title}: {took}\n{text.rpartition(chr(10))[2]}", flush=True)
        else:
            print(f"{text}\n-- {self.title}: FAILED after {took}", flush=True)


def read_jobs(arguments: list[str]) -> list[Job]:
    """Reads the command line."""
    if not arguments or len(arguments) % 2:
        raise SystemExit("side_by_side.py: TITLE COMMAND, and as many more of them as there are")
    jobs: list[Job] = []
    for name, command in zip(arguments[::2], arguments[1::2], strict=True):
        title, _, needs = name.partition(" < ")
        needed = [job for job in jobs if job.title == needs]
        if needs and not needed:
            raise SystemExit(f"side_by_side.py: {title!r} needs {needs!r}, which no job before it is")
        for job in needed:
            job.is_waited_for = True
        jobs.append(Job(title, command, needs or None))
    return jobs


def run(jobs: list[Job], at_a_time: int) -> bool:
    """Runs all of them; returns whether all passed."""
    running: dict[int, Job] = {}
    try:
        return follow(list(jobs), running, at_a_time)
    finally:  # interrupted: nothing goes on unseen
        for job in running.values():
            assert job.process is not None
            job.process.terminate()


def follow(waiting: list[Job], running: dict[int, Job], at_a_time: int) -> bool:
    """Starts what waits and reports what ends, until nothing is left; returns whether all passed."""
    codes: dict[str, int] = {}
    passed = True
    while waiting or running:
        for job in list(waiting):
            code = 0 if job.needs is None else codes.get(job.needs)
            if code is not None and code != 0:
                waiting.remove(job)
                codes[job.title], passed = code, False
                print(f"-- {job.title}: FAILED, it was not run without: {job.needs}", flush=True)
            elif code == 0 and len(running) < at_a_time:
                waiting.remove(job)
                job.start()
                assert job.process is not None
                running[job.process.pid] = job
        if running:
            pid, status = os.wait()
            if pid in running:
                ended = running.pop(pid)
                assert ended.process is not None
                ended.process.returncode = codes[ended.title] = os.waitstatus_to_exitcode(status)
                ended.report(codes[ended.title])
                passed = passed and codes[ended.title] == 0
    return passed


def main() -> None:
    """Run what the command line says."""
    sys.exit(0 if run(read_jobs(sys.argv[1:]), AT_A_TIME) else 1)


if __name__ == "__main__":
    main()
