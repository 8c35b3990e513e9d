"""Options of a run. The defaults are right for nearly all uses.

None of the options changes the answer. Each option of `Engine` and of `Stream.run` can also be set for a
whole process, by a variable of the environment. An argument wins over its variable, and an empty variable
counts as not set.

| option | variable | what it is |
| --- | --- | --- |
| `workers` | `PENSTOCK_WORKERS` | threads that run tasks, from 1 to 64 |
| `policy` | `PENSTOCK_POLICY` | which task runs next: "adaptive", "fcfs" or "rr" |
| `mode` | `PENSTOCK_MODE` | who runs tasks: "state" for the workers, "threads" for a thread of its own each |
| `memory` | `PENSTOCK_MEMORY` | how rows go from task to task: "blocks" or "queue" |
| `chain` | `PENSTOCK_CHAIN` | which operators make up a task: "auto" or "off" |
| `budget` | `PENSTOCK_BUDGET` | the most memory that an engine may take: bytes, or a size such as "256MiB" |
| `block_rows` | `PENSTOCK_BLOCK_ROWS` | rows per block |
| `chunk_blocks` | `PENSTOCK_CHUNK_BLOCKS` | blocks per chunk |
| `parallelism` | `PENSTOCK_PARALLELISM` | workers that one operator may take: "auto" or a number |
| `strategy` | `PENSTOCK_STRATEGY` | how it is spread over them: "auto", "merge" or "exchange" |
| | `PENSTOCK_PLATFORM` | where memory comes from: "native", or "portable" for the standard allocator |
| | `PENSTOCK_CHECKS` | "on" or "off": whether the engine checks the laws of its watermarks |

`PENSTOCK_CHECKS` is read once, when `penstock` is imported. A query that breaks a law fails. Checks take
time, and are meant for tests.

Names and sizes are the engine's affair (its errors are `PlanError` and `SizeError`); here only the Python
types are sorted out, and what the environment says.
"""

import operator
import os
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from penstock import _penstock
from penstock.exceptions import PlanError
from penstock.plan.times import ManualClock

__all__ = [
    "Chain",
    "Memory",
    "Mode",
    "Parallelism",
    "Policy",
    "Size",
    "Spreading",
    "Strategy",
    "read_options",
    "read_spreading",
]

_MOST_WORKERS = 64

Parallelism: TypeAlias = int | Literal["auto"]
Strategy: TypeAlias = Literal["auto", "merge", "exchange"]
Policy: TypeAlias = Literal["adaptive", "fcfs", "rr"]
Mode: TypeAlias = Literal["state", "threads"]
Memory: TypeAlias = Literal["blocks", "queue"]
Chain: TypeAlias = Literal["auto", "off"]
Size: TypeAlias = str | int

_T = TypeVar("_T")
# What the user knows a setting by, for error messages, and its value.
_Setting: TypeAlias = tuple[str, _T] | None
Spreading: TypeAlias = tuple[int | None, tuple[str, str] | None]


def read_options(
    *,
    workers: int | None = None,
    policy: Policy | None = None,
    mode: Mode | None = None,
    memory: Memory | None = None,
    chain: Chain | None = None,
    budget: Size | None = None,
    block_rows: int | None = None,
    chunk_blocks: int | None = None,
    usual_workers: int | None = None,
    clock: ManualClock | None = None,
) -> _penstock.EngineOptions:
    """Makes what the engine reads of the options of `Engine` and `Stream.run` and of the environment.

    Args:
        workers: Threads that run tasks.
        policy: Which task runs next.
        mode: Who runs tasks.
        memory: How rows go from task to task.
        chain: Which operators make up a task.
        budget: The most memory that an engine may take.
        block_rows: Rows per block.
        chunk_blocks: Blocks per chunk.
        usual_workers: How many workers there are by default; None is one for each core.
        clock: What time it is, if not that of the system.

    Returns:
        The options, checked.

    Raises:
        PlanError: A value is not one of those there are.
        SizeError: The budget is not a size.
        TypeError: An argument is of the wrong kind.

    Example:
        >>> import penstock as ps
        >>> from penstock.plan.options import read_options
        >>> try:
        ...     read_options(memory="block")
        ... except ps.PlanError as error:
        ...     print(error)
        memory is "blocks" or "queue", not "block"; did you mean "blocks"?
    """
    _look_at_checks()
    usual = None if usual_workers is None else ("workers", usual_workers)
    return _penstock.EngineOptions(
        workers=_setting("workers", workers, _count, _digits) or usual,
        policy=_setting("policy", policy, _name),
        mode=_setting("mode", mode, _name),
        memory=_setting("memory", memory, _name),
        chain=_setting("chain", chain, _name),
        budget=_setting("budget", budget, _size),
        block_rows=_setting("block_rows", block_rows, _count, _digits),
        chunk_blocks=_setting("chunk_blocks", chunk_blocks, _count, _digits),
        platform=_setting("platform", None, _name),
        clock=None if clock is None else clock._native,
    )


def read_spreading(parallelism: Parallelism, strategy: Strategy = "auto") -> Spreading:
    """Turns `parallelism=` and `strategy=` into what the engine reads; for "auto" the variables count.

    Args:
        parallelism: "auto", or a number of workers.
        strategy: "auto", "merge" or "exchange".

    Returns:
        The number, or None for as many as there are, and the strategy, with the name of the setting.

    Raises:
        PlanError: The number is out of range, or a name is another.
        TypeError: It is something else.

    Example:
        >>> from penstock.plan.options import read_spreading
        >>> read_spreading(2, "merge")
        (2, ('strategy', 'merge'))
    """
    chosen = _setting("strategy", None if strategy == "auto" else strategy, _name)
    return _parallelism(parallelism), chosen


def _parallelism(parallelism: Parallelism) -> int | None:
    option, value = "parallelism", parallelism
    if value == "auto":
        option, text = "PENSTOCK_PARALLELISM", os.environ.get("PENSTOCK_PARALLELISM", "").strip()
        if text in ("", "auto"):
            return None
        value = _digits(option, text)
    if isinstance(value, str):
        raise PlanError(f'{option} is "auto" or a number of workers, not "{value}"')
    workers = _count(option, value)
    if not 1 <= workers <= _MOST_WORKERS:
        raise PlanError(f"{option} is from 1 to {_MOST_WORKERS} workers, not {workers}")
    return workers


def _setting(
    option: str,
    argument: object,
    read: Callable[[str, object], _T],
    read_text: Callable[[str, str], _T] | None = None,
) -> _Setting[_T]:
    """Returns the argument, or the value of its variable, with the name of the one it came from."""
    if argument is not None:
        return option, read(option, argument)
    variable = f"PENSTOCK_{option.upper()}"
    text = os.environ.get(variable, "").strip()
    return (variable, (read_text or read)(variable, text)) if text else None


def _look_at_checks() -> None:
    """Checks `PENSTOCK_CHECKS`: the engine reads it once by itself and cannot report a wrong value."""
    setting = _setting("checks", None, _name)
    if setting is not None and setting[1] not in ("on", "1", "off", "0"):
        raise PlanError(f'{setting[0]} is "on" or "off", not "{setting[1]}"')


def _name(option: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{option} takes a name, not {type(value).__name__} {value!r}")
    return value


def _size(option: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        return str(operator.index(value))
    raise TypeError(
        f'{option} takes a size such as "256MiB", or a whole number of bytes, not {type(value).__name__} '
        f"{value!r}"
    )


def _count(option: str, value: object) -> int:
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        return operator.index(value)
    raise TypeError(f"{option} takes a whole number, not {type(value).__name__} {value!r}")


def _digits(variable: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise PlanError(f'{variable} is a whole number, not "{text}"') from None
