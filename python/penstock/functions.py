"""Forwards to `penstock.plan.functions`, whose names are public under this path as well."""

from penstock.plan.functions import BatchFunction, MappedFunction

__all__ = ["BatchFunction", "MappedFunction"]
