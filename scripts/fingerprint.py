"""Prints one hash over the content of files and folders: what a stamp file is compared with.

Times are left out on purpose: a fresh clone of the same sources has the same fingerprint.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["fingerprint", "main"]

PASSED_OVER = {"__pycache__", "target", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def files(path: Path) -> Iterator[Path]:
    """All source files at or below a path, in a fixed order."""
    if path.is_dir():
        for child in sorted(path.iterdir()):
            if child.name not in PASSED_OVER:
                yield from files(child)
    elif path.suffix not in {".pyc", ".so", ".pyd"}:
        yield path


def fingerprint(paths: list[Path], also: list[str]) -> str:
    """Hash names and contents of everything below `paths`, and the strings in `also`."""
    digest = hashlib.sha256()
    for path in paths:
        for file in files(path):
            content = file.read_bytes()
            digest.update(f"{file.as_posix()}\0{len(content)}\0".encode())
            digest.update(content)
    for text in also:
        digest.update(f"\0{text}\0".encode())
    return digest.hexdigest()


def main() -> None:
    """Read the command line and print the fingerprint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--if-present", action="store_true", help="pass over paths that do not exist")
    parser.add_argument("--also", action="append", default=[], help="a string that goes into the hash")
    parser.add_argument("--also-interpreter", action="store_true", help="this Python goes into the hash")
    options = parser.parse_args()
    also = list(options.also)
    if options.also_interpreter:
        also += [sys.version, sys.base_prefix]
    paths = [path for path in options.paths if path.exists() or not options.if_present]
    print(fingerprint(paths, also))


if __name__ == "__main__":
    main()
