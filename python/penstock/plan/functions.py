"""Functions of your own over the rows of a stream."""

from collections.abc import Callable
from typing import TypeAlias

from penstock import _penstock
from penstock.io.batch import Batch
from penstock.io.protocols import ArrowArray, ArrowStream
from penstock.io.sources import open_one

__all__ = ["BatchFunction", "MappedFunction"]

BatchFunction: TypeAlias = Callable[[Batch], ArrowStream | ArrowArray]


class MappedFunction:
    """A function over batches, as the engine calls it. Made by `Stream.map_batches`.

    Args:
        function: The function.
        declares_all: Whether a column that it adds is a mistake, and not left out.

    Example:
        >>> import penstock as ps
        >>> from penstock.plan.functions import MappedFunction
        >>> MappedFunction(lambda batch: batch).function.__name__
        '<lambda>'
    """

    __slots__ = ("declares_all", "function")

    def __init__(self, function: BatchFunction, declares_all: bool = False) -> None:
        self.function = function
        self.declares_all = declares_all

    def __call__(self, batch: _penstock.Batch) -> ArrowStream | ArrowArray:
        """Calls the function, and checks what comes back."""
        return open_one(self.function(Batch(batch)), "what the function gives back")

    def __reduce__(self) -> tuple[object, ...]:
        return MappedFunction, (self.function, self.declares_all)
