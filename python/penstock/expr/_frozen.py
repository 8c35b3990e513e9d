"""The base of Penstock's public objects: filled once, when they are made, and never changed after.

Pipelines, expressions and results are shared freely (between threads, as dictionary keys, inside other
pipelines), which is safe only because they never change.
"""

from typing import NoReturn, Self

__all__ = ["Frozen"]


class Frozen:
    """Refuses assignment and deletion; a copy is the object itself. Subclasses fill slots with `_fill`."""

    __slots__ = ()

    def _fill(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} objects are immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} objects are immutable: {name!r} cannot be deleted")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
