"""Runs `python -m penstock.cli`."""

import sys

from penstock.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
