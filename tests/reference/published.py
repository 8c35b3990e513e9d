"""Where the published files of the workloads are."""

import os
from pathlib import Path

__all__ = ["find_published"]

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def find_published(path: str) -> Path | None:
    """A published file: below what `PENSTOCK_DATA` names, or else `shared/data` beside the project."""
    file = Path(os.environ.get("PENSTOCK_DATA") or BESIDE, path)
    return file if file.is_file() else None
