"""Contenders in turns: what one of them meets, all of them meet."""

import time
from collections.abc import Callable, Mapping
from statistics import median

__all__ = ["best", "compare"]


def best(rounds: int, ways: list[Callable[[], object]]) -> list[float]:
    """The least seconds of each way, all of them in turns.

    Example:
        >>> len(best(2, [list, dict]))
        2
    """
    return [min(seconds) for seconds in _measure(rounds, ways)]


def compare(rows: int, rounds: int, first: str, ways: Mapping[str, Callable[[], object]]) -> None:
    """Prints million rows per second of each way, with their spread, and its time over that of `first`.

    Example:
        >>> compare(1_000, 3, "list", {"list": list, "dict": dict})  # doctest: +SKIP
    """
    seconds = dict(zip(ways, _measure(rounds, list(ways.values())), strict=True))
    for name, each in seconds.items():
        speed = [rows / one / 1e6 for one in sorted(each, reverse=True)]
        ratio = median(one / other for one, other in zip(each, seconds[first], strict=True))
        spread = f"({speed[0]:.1f}..{speed[-1]:.1f})"
        print(f"  {name:34} {median(speed):8.1f} {spread:18} {ratio:6.2f}", flush=True)


def _measure(rounds: int, ways: list[Callable[[], object]]) -> list[list[float]]:
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for each, way in zip(seconds, ways, strict=True):
            begin = time.perf_counter()
            way()
            each.append(time.perf_counter() - begin)
    return seconds
