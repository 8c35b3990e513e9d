"""Remembers which single-use sources have been read.

A reader or an iterator at its end silently yields nothing when it is read again. Sources are remembered by
identity, until the object is collected.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from threading import RLock
from typing import Any
from weakref import ReferenceType, ref

from penstock.exceptions import StreamConsumedError

__all__ = ["check_unread", "claim", "is_single", "release", "settle"]

# By id. The callback of a reference removes it before another object can have that id.
_read: dict[int, ReferenceType[Any]] = {}
# The same for those that cannot be weakly referenced, such as the iterators of lists. As long as one is read,
# its reader holds it, in sight of the collector. When it has been read it is kept here until the next one is
# claimed, unless this is its only reference, so that it cannot be read again.
_in_use: dict[int, ReferenceType[Any]] = {}
_kept: dict[int, object] = {}
# Sources are read on threads of their own. A finaliser that runs meanwhile may read one, too.
_lock = RLock()


def _references(kept: dict[int, object]) -> list[tuple[int, int]]:
    """Counts the references to each object, as seen from here, by its id."""
    # Of a copy: a finaliser may claim something meanwhile.
    return [(key, sys.getrefcount(one)) for key, one in list(kept.items())]


# The references to an object that is held only here. Their number depends on the interpreter.
_OUR_REFERENCES = _references({0: object()})[0][1]


def is_single(data: object) -> bool:
    """Tells whether an object can be read only once, unlike tables and lists.

    Args:
        data: Anything.

    Returns:
        Whether it is a reader or an iterator.

    Example:
        >>> from penstock.io._claims import is_single
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
        >>> from penstock.io._claims import check_unread
        >>> check_unread(iter([1]), "data")
    """
    with _lock:
        reference, reader = _read.get(id(data)), _in_use.get(id(data))
        is_read = reference is not None and reference() is data
        if data is _kept.get(id(data)) or is_read or (reader is not None and reader() is not None):
            raise StreamConsumedError(
                f"{argument} is a {type(data).__name__} that was read before: it can be read only once. "
                "Open or make it again, or keep the data in a table or a list."
            )


def claim(data: object, argument: str, reader: object | None = None) -> None:
    """Remembers that something is read, if that can be done only once.

    Args:
        data: Anything.
        argument: How the user knows it, for the error message.
        reader: The object that reads it, and calls `settle` when it has done so.

    Raises:
        StreamConsumedError: It was claimed before.

    Example:
        >>> from penstock.io._claims import claim
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
            if reader is None:
                _kept[key] = data
            else:
                _in_use[key] = ref(reader)


def release(data: object) -> None:
    """Forgets that something was claimed, because it was not read after all.

    Args:
        data: What was claimed.

    Example:
        >>> from penstock.io._claims import claim, release
        >>> numbers = iter([1])
        >>> claim(numbers, "data")
        >>> release(numbers)
        >>> claim(numbers, "data")
    """
    with _lock:
        _read.pop(id(data), None)
        _in_use.pop(id(data), None)
        _kept.pop(id(data), None)


def settle(data: object, is_held: bool) -> None:
    """Keeps remembering what its reader has finished, if it is held elsewhere.

    Args:
        data: What was claimed.
        is_held: Whether it is held elsewhere.

    Example:
        >>> from penstock.io._claims import settle
        >>> settle(iter([1]), False)
    """
    with _lock:
        if _in_use.pop(id(data), None) is not None and is_held:
            _let_go()
            _kept[id(data)] = data


def _forget(key: int, gone: ReferenceType[Any]) -> None:
    if _read.get(key) is gone:
        del _read[key]


def _let_go() -> None:
    """Drops objects that are held only here."""
    for key in [key for key, references in _references(_kept) if references <= _OUR_REFERENCES]:
        _kept.pop(key, None)
