"""The scenes: random lives of engines, each with something that must hold whatever else happens."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable

from soak import asking, calling, draining, holding, leftovers, nesting, starving
from soak.watch import Watch

Scene = Callable[[random.Random, Watch], None]

SCENES: dict[str, tuple[int, Scene]] = {
    "beside replays": (2, starving.beside_replays),
    "alike": (1, starving.alike),
    "many small": (2, starving.many_small),
    "drained while fed": (3, draining.drained_while_fed),
    "closed while fed": (2, draining.closed_while_fed),
    "asked once": (3, asking.asked_once),
    "failure freed": (4, holding.failure_freed),
    "results unread": (1, holding.results_unread),
    "lanes within budget": (1, holding.lanes_within_budget),
    "pipeline in a function": (3, nesting.pipeline_in_a_function),
    "pushed by its own function": (2, nesting.pushed_by_its_own_function),
    "dropped engine": (4, nesting.dropped_engine),
    "functions that call": (4, calling.functions_that_call),
    "submitted beside": (3, calling.submitted_beside),
}
"""Each with its weight."""


def choose(seed: int, share: float) -> str:
    """The kind of case of a seed: a graph, or the name of a scene."""
    rng = random.Random(f"kind {seed}")
    if rng.random() >= share:
        return "graph"
    return rng.choices(list(SCENES), [weight for weight, _ in SCENES.values()])[0]


def run(name: str, seed: int, watch: Watch) -> None:
    """Plays a scene; raises what it finds, also afterwards."""
    before = leftovers.threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SCENES[name][1](random.Random(f"{name} {seed}"), watch)
    watch.forget()
    leftovers.check_threads(before)
