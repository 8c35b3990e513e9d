"""Says how many rows came too late, where the user sees it."""

import warnings

from penstock.exceptions import LateRowsWarning

__all__ = ["warn_late"]


def warn_late(late: int, rows: int, distance: str | None, *, query: str | None = None, above: int) -> None:
    """Warns that rows came too late.

    Args:
        late: How many did.
        rows: How many rows there were.
        distance: How far the latest of them lay behind the watermark, as text.
        query: The name of the query, if there are several.
        above: Whose line the warning names, counted from here.

    Example:
        >>> import warnings
        >>> from penstock.lateness import warn_late
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
