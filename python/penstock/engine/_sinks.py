"""Where results go, as the native side is told."""

from collections.abc import Callable, Mapping

from penstock import _penstock
from penstock.exceptions import PlanError
from penstock.io.batch import Batch

__all__ = ["read_sinks"]


class _Call:
    """A function that takes batches, as the native side calls it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[Batch], object]) -> None:
        self._function = function

    def __call__(self, batch: _penstock.Batch) -> None:
        self._function(Batch(batch))


def read_sinks(names: list[str], sink: object) -> list[object]:
    """Reads the argument `sink` of `Engine.submit`.

    Args:
        names: The outputs.
        sink: Where all of them go, or a mapping that says it for each.

    Returns:
        For each output the name of a sink, a function as the native side calls it, or None.

    Raises:
        PlanError: The mapping names an output that is not there.
        TypeError: It is none of these.

    Example:
        >>> from penstock.engine._sinks import read_sinks
        >>> read_sinks(["low", "high"], {"high": "discard"})
        [None, 'discard']
    """
    if isinstance(sink, Mapping):
        unknown = [name for name in sink if name not in names]
        if unknown:
            raise PlanError(f"sink= names the output {unknown[0]!r}, and there are {names}")
        chosen = [sink.get(name) for name in names]
    else:
        chosen = [sink] * len(names)
    for one in chosen:
        if one is not None and not isinstance(one, str) and not callable(one):
            raise TypeError(f'sink takes "collect", "discard" or a function, not {type(one).__name__}')
    return [_Call(one) if callable(one) else one for one in chosen]
