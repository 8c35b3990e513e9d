"""The scenes: random lives of engines, each with something that must hold whatever else happens."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable

from soak import (
    asking,
    calling,
    chaining,
    clocks,
    draining,
    dropping,
    failing,
    holding,
    joining,
    lagging,
    leftovers,
    nesting,
    refusing,
    starving,
)
from soak.watch import Watch

Scene = Callable[[random.Random, Watch], None]

SCENES: dict[str, tuple[int, Scene]] = {
    "beside replays": (2, starving.beside_replays),
    "alike": (1, starving.alike),
    "many small": (1, starving.many_small),
    "drained while fed": (2, draining.drained_while_fed),
    "closed while fed": (1, draining.closed_while_fed),
    "drained while given": (2, draining.drained_while_given),
    "chained": (3, chaining.chained),
    "refused": (3, refusing.refused),
    "joined later": (2, joining.joined_later),
    "lagging": (2, lagging.lagging),
    "idle while shedding": (1, lagging.idle_while_shedding),
    "by the clock": (2, clocks.by_the_clock),
    "asked once": (2, asking.asked_once),
    "failure freed": (3, failing.failure_freed),
    "results unread": (1, holding.results_unread),
    "lanes within budget": (1, holding.lanes_within_budget),
    "state is charged": (1, holding.state_is_charged),
    "pipeline in a function": (2, nesting.pipeline_in_a_function),
    "pushed by its own function": (1, nesting.pushed_by_its_own_function),
    "dropped engine": (4, dropping.dropped_engine),
    "functions that call": (2, calling.functions_that_call),
    "submitted beside": (2, calling.submitted_beside),
}
"""Each with how often it is played in a round."""
ROUND = 150
"""Seeds in which every scene is played: the rest are graphs."""


@functools.cache
def played(number: int) -> tuple[str, ...]:
    """The kinds of the cases of a round, in an order of its own."""
    kinds = [name for name, (times, _) in SCENES.items() for _ in range(times)]
    kinds += ["graph"] * (ROUND - len(kinds))
    random.Random(f"round {number}").shuffle(kinds)
    return tuple(kinds)


def choose(seed: int) -> str:
    """The kind of case of a seed: a graph, or the name of a scene."""
    number, place = divmod(seed, ROUND)
    return played(number)[place]


def run(name: str, seed: int, watch: Watch) -> None:
    """Plays a scene; raises what it finds, also afterwards."""
    before = leftovers.threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SCENES[name][1](random.Random(f"{name} {seed}"), watch)
    watch.forget()
    leftovers.check_threads(before)
