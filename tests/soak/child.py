"""Runs cases one after the other, and says on standard output which one it is at."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import sys
import traceback

from soak import leftovers, lives, scenes
from soak.watch import Watch

FOUND = 3
"""How a process ends that has found something."""
TRIMMED_SEEDS = 8
"""One seed in so many has the ring that asks idle tasks for memory: it wakes tasks that were forgotten."""


def say(**what: object) -> None:
    """One line for whoever has started this process."""
    sys.stdout.write(json.dumps(what, default=str) + "\n")
    sys.stdout.flush()


def kind_of(seed: int, only: str | None = None) -> str:
    """What kind of case a seed is: a graph, or one of the scenes."""
    return only or scenes.choose(seed)


def run_one(seed: int, kind: str, watch: Watch) -> str | None:
    """Runs the case of a seed. What it has found, or None."""
    os.environ["PENSTOCK_TRIM"] = "on" if seed % TRIMMED_SEEDS == 0 else "off"
    watch.begin(f"seed {seed} ({kind})")
    try:
        if kind == "graph":
            lives.run(seed, watch)
        else:
            scenes.run(kind, seed, watch)
    except leftovers.Finding as finding:
        return f"{finding}{trace_of(finding.__cause__)}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}{trace_of(error)}"
    finally:
        watch.end()
    return None


def trace_of(error: BaseException | None) -> str:
    return "" if error is None else "\n" + "".join(traceback.format_exception(error))


def work(first: int, count: int, only: str | None) -> None:
    """Runs the cases of so many seeds. A finding ends the process, after it was said."""
    faulthandler.enable()
    gc.collect()
    gc.freeze()  # modules stay: what is looked through after each case is the case
    at = [first]
    watch = Watch(lambda text: say(seed=at[0], kind=kind_of(at[0], only), finding=text))
    for seed in range(first, first + count):
        at[0] = seed
        kind = kind_of(seed, only)
        say(seed=seed, kind=kind)
        finding = run_one(seed, kind, watch)
        if finding is not None:
            say(seed=seed, kind=kind, finding=finding)
            os._exit(FOUND)  # what is left of this case would disturb those behind it
    say(done=True)
