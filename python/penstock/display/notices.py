"""Warnings about queries: rows that came too late or were discarded, and failures that were never read."""

import warnings
from collections.abc import Iterable
from typing import NamedTuple

from penstock.exceptions import LateRowsWarning, QueryFailedWarning, RowsDiscardedWarning

__all__ = ["Waiting", "quantity", "warn_discarded", "warn_failed", "warn_late"]


class Waiting(NamedTuple):
    """What a query or a shared source loses when it is stopped.

    Attributes:
        name: Its name.
        rows: Rows that it has taken in and not processed, or not given out.
        in_windows: Those of them that are in open windows.
        sessions: Open sessions. How many rows are in them is not known.

    Example:
        >>> from penstock.display.notices import Waiting
        >>> Waiting("counts", 5, 3, 0).rows
        5
    """

    name: str
    rows: int
    in_windows: int
    sessions: int


def warn_late(late: int, rows: int, distance: str | None, *, query: str | None = None, above: int) -> None:
    """Warns that rows came too late.

    Args:
        late: How many did.
        rows: How many rows there were.
        distance: How far the latest of them was behind the watermark, as text.
        query: The name of the query, if there are several.
        above: Whose line the warning names, counted from here.

    Example:
        >>> import warnings
        >>> from penstock.display.notices import warn_late
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn_late(1, 10, "3s", above=1)
        >>> str(caught[0].message)[:56]
        '1 row came after its window had closed and did not count'
    """
    which = "" if query is None else f'query "{query}": '
    what = "1 row came after its window" if late == 1 else f"{late:,} rows came after their windows"
    warnings.warn(
        f"{which}{what} had closed and did not count, out of {rows:,}; the latest lay "
        f"{distance} behind the watermark. Raise delay= by as much to count all of them.",
        LateRowsWarning,
        stacklevel=above + 1,
    )


def warn_discarded(waiting: Iterable[Waiting], *, above: int) -> None:
    """Warns of rows that were discarded, if any were.

    Args:
        waiting: What each query and shared source had.
        above: Whose line the warning names, counted from here.

    Example:
        >>> import warnings
        >>> from penstock.display.notices import Waiting, warn_discarded
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn_discarded([Waiting("counts", 5, 3, 0)], above=1)
        >>> str(caught[0].message)[:72]
        'leaving the engine has discarded 5 rows (3 in open windows) of "counts",'
    """
    lost = [one for one in waiting if one.rows or one.sessions]
    if not lost:
        return
    rows, sessions = sum(one.rows for one in lost), sum(one.sessions for one in lost)
    in_windows = sum(one.in_windows for one in lost)
    what = []
    if rows:
        open_ones = f" ({in_windows:,} in open windows)" if in_windows else ""
        what.append(quantity(rows, "row") + open_ones)
    if sessions:
        what.append(quantity(sessions, "open session"))
    names = ", ".join(f'"{one.name}"' for one in sorted(lost))
    warnings.warn(
        f"leaving the engine has discarded {' and '.join(what)} of {names}, which still ran: wait for its "
        'queries inside of the block, or use Engine(on_exit="drain")',
        RowsDiscardedWarning,
        stacklevel=above + 1,
    )


def warn_failed(what: str, name: str, error: str | None, *, above: int) -> None:
    """Warns of a failure that was never read.

    Args:
        what: What has failed: a query or a shared source.
        name: Its name.
        error: Its error, as text.
        above: Whose line the warning names, counted from here.

    Example:
        >>> import warnings
        >>> from penstock.display.notices import warn_failed
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn_failed("query", "prices", "ComputeError: integer division by zero", above=1)
        >>> print(caught[0].message)
        the query "prices" failed, and nobody had looked: ComputeError: integer division by zero
    """
    warnings.warn(
        f'the {what} "{name}" failed, and nobody had looked: {error}',
        QueryFailedWarning,
        stacklevel=above + 1,
    )


def quantity(number: int, noun: str) -> str:
    """Formats a number with its noun.

    Args:
        number: How many.
        noun: Of what, if it is one.

    Returns:
        Both as text.

    Example:
        >>> from penstock.display.notices import quantity
        >>> quantity(1, "row"), quantity(1000, "row")
        ('1 row', '1,000 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
