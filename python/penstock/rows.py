"""Forwards to `penstock.io.rows`, whose names are public under this path as well."""

from penstock.io.rows import Rows

__all__ = ["Rows"]
