"""Ways to set up the engine: a pairwise cover of all its options.

The full product is 2,160 configurations. A cover in which every two values of two options meet holds most of
what two options can do to each other. Here each pair meets twice, in different company.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import penstock as ps

OPTIONS: Mapping[str, tuple[str | int | None, ...]] = {
    "policy": ("adaptive", "fcfs", "rr"),
    "mode": ("state", "threads"),
    "memory": ("blocks", "queue"),
    "chain": ("auto", "off"),
    "block_rows": (None, 1, 7, 64, 1000, 4096),
    "workers": (1, 2, 3, 5, 8),
}
MEETINGS = 2
"""How often each pair is in the cover, at least."""
CANDIDATES = 40
"""Configurations that are tried for each place in the cover; the best is taken."""

Configuration = tuple[tuple[str, str | int | None], ...]
Pair = tuple[tuple[str, str | int | None], tuple[str, str | int | None]]


def all_pairs() -> set[Pair]:
    """Every value of every option with every value of every other one."""
    return {
        ((one, a), (other, b))
        for (one, values), (other, others) in itertools.combinations(OPTIONS.items(), 2)
        for a, b in itertools.product(values, others)
    }


def pairs_of(configuration: Configuration) -> Iterable[Pair]:
    """The pairs that meet in a configuration."""
    return itertools.combinations(configuration, 2)


@cache
def cover() -> tuple[Configuration, ...]:
    """Distinct configurations in which each pair meets `MEETINGS` times, always the same ones.

    Greedy: each is built around a pair that is still wanted, filled up at random, and is the best of several.
    """
    rng = random.Random(20)
    wanted = dict.fromkeys(sorted(all_pairs(), key=repr), MEETINGS)
    made: list[Configuration] = []
    while any(wanted.values()):
        most = max(wanted.values())
        core = dict(rng.choice([pair for pair, times in wanted.items() if times == most]))
        found = []
        for _ in range(CANDIDATES):
            values = {name: core.get(name, rng.choice(choices)) for name, choices in OPTIONS.items()}
            found.append(tuple(values.items()))
        best = max(found, key=lambda c: (c not in made, sum(wanted[pair] for pair in pairs_of(c))))
        made.append(best)
        for pair in pairs_of(best):
            wanted[pair] = max(0, wanted[pair] - 1)
    return tuple(made)


def label(configuration: Configuration) -> str:
    """The configuration as the name of a test."""
    values = dict(configuration)
    blocks = "usual blocks" if values["block_rows"] is None else f"blocks of {values['block_rows']}"
    words = [values["policy"], values["mode"], values["memory"], f"chain {values['chain']}", blocks]
    return ", ".join(map(str, [*words, f"{values['workers']} workers"]))


def start(configuration: Configuration, **others: Any) -> ps.Engine:
    """An engine in that configuration."""
    options: dict[str, Any] = {**dict(configuration), **others}
    return ps.Engine(**options)
