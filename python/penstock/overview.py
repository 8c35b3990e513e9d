"""Queries as a table, for terminals and notebooks: how they do, and how fast."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.rendering import html_table, text_table

if TYPE_CHECKING:
    from penstock.query import Query

__all__ = ["html_overview", "text_overview"]

_NAMES = ["query", "status", "rows in", "rows/s", "latency"]
_WHAT = ["", "", "so far", "of late", "of half the rows, of 99 in 100"]


def text_overview(queries: "Sequence[Query]") -> str:
    """Queries as a table for a terminal.

    Args:
        queries: The queries.

    Returns:
        The lines, without a newline at the end.

    Example:
        >>> import penstock as ps
        >>> with ps.Engine(workers=1) as engine:
        ...     feed = ps.PushSource()
        ...     query = engine.submit(ps.stream({"n": "int64"}), source=feed, name="numbers")
        ...     print(text_overview([query]))
        query    status   rows in  rows/s  latency
        -------  -------  -------  ------  -------
        numbers  running        0       0
    """
    return text_table(_NAMES, map(_row, queries))


def html_overview(queries: "Sequence[Query]", caption: str) -> str:
    """Queries as a table for a notebook.

    Args:
        queries: The queries.
        caption: What to say above the table.

    Returns:
        An HTML fragment.

    Example:
        >>> html_overview([], "no queries").startswith("<table><caption>no queries</caption>")
        True
    """
    return html_table(_NAMES, _WHAT, map(_row, queries), caption)


def _row(query: "Query") -> list[object]:
    metrics = query.metrics()
    times = metrics["event_latency"]
    latency = f"{times['p50_ms']:.3g} ms, {times['p99_ms']:.3g} ms" if times["count"] else ""
    return [query.name, query.status, metrics["rows_in"], round(metrics["rows_per_second"]), latency]
