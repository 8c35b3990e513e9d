"""Queries and shared sources as a table, for terminals and notebooks: how they do, and how fast."""

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.display.tables import html_table, text_table

__all__ = ["html_overview", "text_overview"]

_NAMES = [
    "name",
    "kind",
    "status",
    "rows in",
    "rows/s",
    "latency",
    "late",
    "shed",
    "rejected",
    "blocked by",
    "error",
]
# Why something has failed is often said at the end.
_UNCUT = ["error"]
_WHAT = [
    "",
    "",
    "",
    "so far",
    "of late",
    "of half the rows, of 99 in 100",
    "rows",
    "rows",
    "rows",
    "now",
    "",
]


class _Native(Protocol):
    @property
    def error_text(self) -> str | None: ...


class _Listed(Protocol):
    """One line of a table: a query or a shared source, by the part of them that tables show."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def _native(self) -> _Native: ...
    def metrics(self) -> dict[str, Any]: ...


def text_overview(listed: Sequence[_Listed]) -> str:
    """Formats queries and shared sources as a table for a terminal.

    Args:
        listed: The queries and sources.

    Returns:
        The lines, without a newline at the end.

    Example:
        >>> import penstock as ps
        >>> from penstock.display.overview import text_overview
        >>> with ps.Engine(workers=1) as engine:
        ...     feed = ps.PushSource()
        ...     query = engine.submit(ps.stream({"n": "int64"}), source=feed, name="numbers")
        ...     print(text_overview([query]))
        name     kind   status   rows in  rows/s  latency  late  shed  rejected  blocked by  error
        -------  -----  -------  -------  ------  -------  ----  ----  --------  ----------  -----
        numbers  query  running        0       0              0     0         0
    """
    return text_table(_NAMES, map(_row, listed), uncut=_UNCUT)


def html_overview(listed: Sequence[_Listed], caption: str) -> str:
    """Formats queries and shared sources as a table for a notebook.

    Args:
        listed: The queries and sources.
        caption: What to say above the table.

    Returns:
        An HTML fragment.

    Example:
        >>> from penstock.display.overview import html_overview
        >>> html_overview([], "no queries").startswith("<table><caption>no queries</caption>")
        True
    """
    return html_table(_NAMES, _WHAT, map(_row, listed), caption, uncut=_UNCUT)


def _row(one: _Listed) -> list[object]:
    metrics = one.metrics()
    times = metrics["event_latency"]
    return [
        one.name,
        "source" if type(one).__name__ == "SharedSource" else "query",
        one.status,
        metrics["rows_in"],
        round(metrics["rows_per_second"]),
        f"{times['p50_ms']:.3g} ms, {times['p99_ms']:.3g} ms" if times["count"] else "",
        metrics["rows_late"] + metrics["late_results"],
        metrics["rows_shed"],
        metrics["rows_rejected"] + metrics["rejected_results"],
        metrics["blocked_by"] or "",
        one._native.error_text or "",
    ]
