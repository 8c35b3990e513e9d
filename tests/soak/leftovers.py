"""What a case may not leave behind: threads of an engine that is gone, and objects that nobody holds."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import Counter
from pathlib import Path

TASKS = Path("/proc/self/task")
PATIENCE_SECONDS = 5.0
looks = [0]
"""How often somebody has looked whether something is gone: the watch sees that the case goes on."""


class Finding(AssertionError):  # noqa: N818 - it is no error of the campaign
    """Something that must not be."""


def threads() -> Counter[str]:
    """The threads of the process by name, without those of tests."""
    found: Counter[str] = Counter()
    for task in TASKS.iterdir() if TASKS.exists() else []:
        try:
            name = (task / "comm").read_text().strip()
        except OSError:  # it has ended
            continue
        if name.startswith(("penstock", "ps-")):
            found[name] += 1
    # Those that Python has started have its name to the system.
    found.update(one.name for one in threading.enumerate() if one.name.startswith("penstock"))
    return found


def check_threads(before: Counter[str]) -> None:
    """There are no threads that were not there before, after a while at most."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        more = threads() - before
        if not more:
            return
        looks[0] += 1
        gc.collect()
        if time.monotonic() > deadline:
            raise Finding(f"threads are left behind: {dict(more)}")
        time.sleep(0.005)


class Held:
    """Something of the user's own, which nobody may hold for longer than the user does."""

    def __init__(self, size: int = 0) -> None:
        self.ballast = bytes(size)


def check_gone(held: list[weakref.ref[Held]], what: str) -> None:
    """Nobody holds them any more, after a while at most."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        gc.collect()
        alive = [one() for one in held if one() is not None]
        if not alive:
            return
        looks[0] += 1
        if time.monotonic() > deadline:
            holders = [type(holder).__name__ for holder in gc.get_referrers(alive[0])]
            raise Finding(f"{len(alive)} of {len(held)} {what} are still held, one of them by {holders}")
        del alive
        time.sleep(0.005)


def resident_bytes() -> int:
    """What the process has in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
