"""Rows as a table, for terminals and notebooks, without the help of any other package."""

import html
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal

__all__ = ["cell", "html_table", "text_table"]

_WIDEST = 40


def cell(value: object, widest: int | None = _WIDEST) -> str:
    r"""Formats one value as short text on one line.

    Args:
        value: A value of a row.
        widest: How many characters it may have; None is any number.

    Returns:
        Its text. What cannot be printed is escaped, and what is long is cut.

    Example:
        >>> from penstock.display.tables import cell
        >>> cell(None), cell(2.5), cell("two\nlines")
        ('null', '2.5', 'two\\nlines')
    """
    text = "null" if value is None else str(value)
    if not text.isprintable():
        text = repr(text)[1:-1]
    return text if widest is None or len(text) <= widest else text[: widest - 3] + "..."


def text_table(names: Sequence[str], rows: Iterable[Sequence[object]], *, uncut: Collection[str] = ()) -> str:
    """Formats a table for a terminal: numbers flush right, everything else flush left.

    Args:
        names: The names of the columns.
        rows: The values, row by row.
        uncut: The columns whose values are shown in full, however long they are.

    Returns:
        The lines, without a newline at the end.

    Example:
        >>> from penstock.display.tables import text_table
        >>> print(text_table(["key", "n"], [["a", 1], ["bc", 20]]))
        key   n
        ---  --
        a     1
        bc   20
    """
    kept = list(rows)
    columns = []
    for position, name in enumerate(names):
        values = [row[position] for row in kept]
        widest = None if name in uncut else _WIDEST
        texts = [cell(name), *(cell(value, widest) for value in values)]
        width = max(map(len, texts))
        numeric = any(map(_is_number, values)) and all(value is None or _is_number(value) for value in values)
        columns.append([text.rjust(width) if numeric else text.ljust(width) for text in texts])
        columns[-1].insert(1, "-" * width)
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def html_table(
    names: Sequence[str],
    types: Sequence[str],
    rows: Iterable[Sequence[object]],
    caption: str,
    *,
    uncut: Collection[str] = (),
) -> str:
    """Formats a table for a notebook. All text is escaped, since rows come from outside.

    Args:
        names: The names of the columns.
        types: The types of the columns, shown below the names.
        rows: The values, row by row.
        caption: What to say above the table.
        uncut: The columns whose values are shown in full, however long they are.

    Returns:
        An HTML fragment.

    Example:
        >>> from penstock.display.tables import html_table
        >>> fragment = html_table(["key"], ["string"], [["<b>"]], "1 row")
        >>> fragment[fragment.index("<tbody>") :]
        '<tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    heads = "".join(
        f"<th>{html.escape(cell(name))}<br><small>{html.escape(kind)}</small></th>"
        for name, kind in zip(names, types, strict=True)
    )
    widest = [None if name in uncut else _WIDEST for name in names]
    lines = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(cell(*pair))}</td>" for pair in zip(row, widest, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
