"""A folder that appears all at once: it is filled under a hidden name and renamed when it is whole.

The process that fills a folder holds a lock on it, which is released when the process ends, however it ends.
So a folder without a lock is the rest of a killed run, and the next attempt at the same place removes it.
"""

import contextlib
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["staged"]

_SUFFIX = ".partial"
# A job that was cancelled may write for another moment.
_REMOVAL_TRIES = 20
_PAUSE_SECONDS = 0.1


@contextlib.contextmanager
def staged(path: str | PathLike[str]) -> Iterator[Path]:
    """Opens a new folder to fill, which is renamed when the block ends, or deleted if the block fails.

    Args:
        path: Where the folder is to be; nothing is there yet.

    Yields:
        The empty folder under its hidden name, beside `path`.

    Raises:
        FileExistsError: There is something at `path` already.

    Example:
        >>> import tempfile
        >>> from penstock.spark.staging import staged
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with staged(f"{folder}/whole") as partial:
        ...         written = (partial / "rows").write_text("1 2 3")
        ...         print(partial.name[:7], Path(folder, "whole").exists())
        ...     [file.name for file in Path(folder).rglob("*")]
        .whole. False
        ['whole', 'rows']
    """
    target = Path(path).absolute()
    _check_free(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    partial, lock = _create(target)
    try:
        yield partial
        # Another process may have been faster.
        _check_free(target)
        try:
            partial.rename(target)
        except OSError:
            _check_free(target)
            raise
    finally:
        _remove(partial)
        if lock is not None:
            os.close(lock)


def _check_free(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise FileExistsError(f"{target} exists already")


def _create(target: Path) -> tuple[Path, int | None]:
    while True:
        partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}{_SUFFIX}")
        partial.mkdir()
        lock = _try_lock(partial)
        # Between the two, another attempt may have taken the new folder for a leftover.
        if sys.platform == "win32" or (lock is not None and partial.exists()):
            return partial, lock
        if lock is not None:
            os.close(lock)


def _remove_leftovers(target: Path) -> None:
    for folder in target.parent.iterdir():
        if folder.name.startswith(f".{target.name}.") and folder.name.endswith(_SUFFIX) and folder.is_dir():
            lock = _try_lock(folder)
            if lock is not None:
                _remove(folder)
                os.close(lock)


def _try_lock(folder: Path) -> int | None:
    """Takes a lock on a folder; returns None if it is taken or the folder is gone."""
    if sys.platform == "win32":
        return None
    try:
        lock = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _remove(folder: Path) -> None:
    for _ in range(_REMOVAL_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE_SECONDS)
