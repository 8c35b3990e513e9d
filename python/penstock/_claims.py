"""Remembers what can be read only once, and was.

A reader or an iterator at its end gives nothing when it is asked again, without a word. What is remembered
goes by identity, and is forgotten with the object.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from threading import RLock
from typing import Any
from weakref import ReferenceType, ref

from penstock.exceptions import StreamConsumedError

__all__ = ["check_unread", "claim", "is_single", "release"]

# By id. The callback of a reference removes it before another object can have that id.
_read: dict[int, ReferenceType[Any]] = {}
# The same for those that cannot be weakly referenced, such as the iterators of lists. One that nobody else
# holds cannot come back, and is let go when the next one comes.
_kept: dict[int, object] = {}
# Sources are read on threads of their own. A finaliser that runs meanwhile may read one, too.
_lock = RLock()


def _references(kept: dict[int, object]) -> list[int]:
    """How often each is referred to, as seen from here."""
    return [sys.getrefcount(one) for one in kept.values()]


# References to an object that nobody else holds. How many of them are ours depends on the interpreter.
_OUR_REFERENCES = _references({0: object()})[0]


def is_single(data: object) -> bool:
    """Whether something can be read only once, other than tables and lists.

    Args:
        data: Anything.

    Returns:
        Whether it is a reader or an iterator.

    Example:
        >>> from penstock._claims import is_single
        >>> is_single([1]), is_single(iter([1]))
        (False, True)
    """
    return hasattr(data, "read_next_batch") or isinstance(data, Iterator | AsyncIterator)


def check_unread(data: object, argument: str) -> None:
    """Refuses what was claimed before.

    Args:
        data: A reader or an iterator.
        argument: How the user knows it, for the error message.

    Raises:
        StreamConsumedError: It was claimed before.

    Example:
        >>> from penstock._claims import check_unread
        >>> check_unread(iter([1]), "data")
    """
    with _lock:
        reference = _read.get(id(data))
        if data is _kept.get(id(data)) or (reference is not None and reference() is data):
            raise StreamConsumedError(
                f"{argument} is a {type(data).__name__} that was read before: it can be read only once. "
                "Open or make it again, or keep the data in a table or a list."
            )


def claim(data: object, argument: str) -> None:
    """Remembers that something is read, if that can be done only once.

    Args:
        data: Anything.
        argument: How the user knows it, for the error message.

    Raises:
        StreamConsumedError: It was claimed before.

    Example:
        >>> from penstock._claims import claim
        >>> claim([1], "data")
        >>> claim([1], "data")
    """
    if not is_single(data):
        return
    with _lock:
        check_unread(data, argument)
        key = id(data)
        try:
            _read[key] = ref(data, lambda gone: _forget(key, gone))
        except TypeError:  # there are no weak references to it
            _let_go()
            _kept[key] = data


def release(data: object) -> None:
    """Forgets that something was claimed, because it was not read after all.

    Args:
        data: What was claimed.

    Example:
        >>> from penstock._claims import claim, release
        >>> numbers = iter([1])
        >>> claim(numbers, "data")
        >>> release(numbers)
        >>> claim(numbers, "data")
    """
    with _lock:
        _read.pop(id(data), None)
        _kept.pop(id(data), None)


def _forget(key: int, gone: ReferenceType[Any]) -> None:
    if _read.get(key) is gone:
        del _read[key]


def _let_go() -> None:
    """Lets go of those that nobody else holds."""
    counted = zip(list(_kept), _references(_kept), strict=True)
    for key in [key for key, references in counted if references <= _OUR_REFERENCES]:
        del _kept[key]
