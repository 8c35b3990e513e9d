"""Forwards to `penstock.io.rejecting`, whose names are public under this path as well."""

from penstock.io.rejecting import OnError, read_on_error

__all__ = ["OnError", "read_on_error"]
