"""Forwards to `penstock.plan.options`, whose names are public under this path as well."""

from penstock.plan.options import (
    Chain,
    Memory,
    Mode,
    Parallelism,
    Policy,
    Size,
    Spreading,
    Strategy,
    read_options,
    read_spreading,
)

__all__ = [
    "Chain",
    "Memory",
    "Mode",
    "Parallelism",
    "Policy",
    "Size",
    "Spreading",
    "Strategy",
    "read_options",
    "read_spreading",
]
