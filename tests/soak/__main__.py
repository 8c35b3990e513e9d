"""`python tests/soak`: see `soak.campaign`."""

import os
import sys
from pathlib import Path

os.environ.setdefault("PENSTOCK_CHECKS", "1")  # read when the engine is imported
sys.path[0] = str(Path(__file__).resolve().parents[1])

from soak.campaign import main  # noqa: E402 - found by the path above

if __name__ == "__main__":
    raise SystemExit(main())
