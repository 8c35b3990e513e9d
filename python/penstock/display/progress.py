"""How far a long job is, shown while it runs."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO

__all__ = ["counted"]

_LINE_SECONDS = 1.0


@contextlib.contextmanager
def counted(what: str, file: TextIO | None = None) -> Iterator[Callable[[int, int], None]]:
    """Shows the progress of a job: with rich in a terminal if it is installed, otherwise in plain lines.

    Args:
        what: What the job does.
        file: Where to, by default the standard error stream.

    Yields:
        A function to be called with the rows that are done and all rows.

    Example:
        >>> import sys
        >>> from penstock.display.progress import counted
        >>> with counted("ysb", sys.stdout) as tell:
        ...     tell(500, 1_000)
        ysb: 500 of 1,000 rows...
    """
    file = sys.stderr if file is None else file
    try:
        from rich.console import Console
    except ImportError:
        console = None
    else:
        console = Console(file=file)
    with _bar(what, console) if console is not None and console.is_terminal else _lines(what, file) as tell:
        yield tell


@contextlib.contextmanager
def _bar(what: str, console: object) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    assert isinstance(console, Console)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}")
    begin = time.monotonic()
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(what, total=None, rows="")

        def tell(done: int, total: int) -> None:
            rows = _said(done, total, time.monotonic() - begin)
            progress.update(task, completed=done, total=total, rows=rows)

        yield tell


@contextlib.contextmanager
def _lines(what: str, file: TextIO) -> Iterator[Callable[[int, int], None]]:
    begin = time.monotonic()
    last = begin - _LINE_SECONDS

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _LINE_SECONDS or done == total:
            last = now
            print(f"{what}: {_said(done, total, now - begin)}", file=file, flush=True)

    yield tell


def _said(done: int, total: int, seconds: float) -> str:
    rate = f", {done / seconds:,.0f} rows/s" if seconds > 0 and done else ""
    return f"{done:,} of {total:,} rows{rate}"
