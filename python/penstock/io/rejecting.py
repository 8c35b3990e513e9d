"""What becomes of rows that an operator has no answer for, such as a division by zero."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from penstock import _penstock
from penstock.io.batch import Batch

__all__ = ["OnError", "read_on_error"]

OnError: TypeAlias = Literal["fail", "skip"] | Callable[[Batch], object]


class _Letters:
    """A function that takes rejected rows, as the native side calls it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[Batch], object]) -> None:
        self._function = function

    def __call__(self, batch: _penstock.Batch) -> None:
        self._function(Batch(batch))


def read_on_error(on_error: OnError) -> object:
    """Turns `on_error=` into what the engine reads.

    Args:
        on_error: "fail", "skip", or a function.

    Returns:
        The name, or the function as the engine calls it.

    Raises:
        TypeError: It is something else.

    Example:
        >>> from penstock.io.rejecting import read_on_error
        >>> read_on_error("skip")
        'skip'
    """
    if isinstance(on_error, str):
        return on_error
    if callable(on_error):
        return _Letters(on_error)
    raise TypeError(f'on_error takes "fail", "skip" or a function, not {type(on_error).__name__}')
