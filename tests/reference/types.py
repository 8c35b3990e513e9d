"""The types of the reference, and how Arrow spells them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

Value = bool | int | float | Decimal | str | bytes | None
"""What a cell holds. Temporal cells hold integers in the unit of their column."""

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
I64_MIN, I64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Type:
    """A column type; the fields that a kind has no use for keep their defaults."""

    kind: str
    bits: int = 64
    signed: bool = True
    unit: str = ""
    zone: str | None = None
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.kind == "int":
            return f"{'int' if self.signed else 'uint'}{self.bits}"
        if self.kind in ("float", "date"):
            return f"{self.kind}{self.bits}"
        if self.kind == "time":
            return f"time{self.bits}[{self.unit}]"
        if self.kind == "timestamp" and self.zone:
            return f"timestamp[{self.unit}, tz={self.zone}]"
        if self.kind in ("timestamp", "duration"):
            return f"{self.kind}[{self.unit}]"
        if self.kind == "decimal":
            return f"decimal128({self.precision}, {self.scale})"
        return self.kind

    @property
    def low(self) -> int:
        """The least integer the column can hold."""
        return -(2 ** (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The greatest integer the column can hold."""
        return int(2 ** (self.bits - 1 if self.signed else self.bits)) - 1

    def arrow(self) -> pa.DataType:
        """The Arrow type."""
        if self.kind == "bool":
            return pa.bool_()
        if self.kind == "decimal":
            return pa.decimal128(self.precision, self.scale)
        if self.kind == "timestamp":
            return pa.timestamp(self.unit, self.zone)
        if self.kind == "duration":
            return pa.duration(self.unit)
        if self.kind == "time":
            return pa.time32(self.unit) if self.bits == 32 else pa.time64(self.unit)
        return getattr(pa, str(self))()

    def is_temporal(self) -> bool:
        """Whether cells are integers that count units of time."""
        return self.kind in ("timestamp", "date", "time", "duration")

    def is_number(self) -> bool:
        """Whether cells are numbers."""
        return self.kind in ("int", "float", "decimal")

    def ticks_per_day(self) -> int:
        """How many units of this temporal type make a day."""
        return 1 if self.unit == "d" else 86_400 * PER_SECOND[self.unit]


def timestamp(unit: str, zone: str | None = None) -> Type:
    """A timestamp type."""
    return Type("timestamp", unit=unit, zone=zone)


def duration(unit: str) -> Type:
    """A duration type."""
    return Type("duration", unit=unit)


def decimal(precision: int, scale: int) -> Type:
    """A decimal128 type."""
    return Type("decimal", 128, precision=precision, scale=scale)


INT8, INT16, INT32, INT64 = (Type("int", bits) for bits in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (Type("int", bits, signed=False) for bits in (8, 16, 32, 64))
FLOAT32, FLOAT64 = Type("float", 32), Type("float", 64)
BOOL, STRING, BINARY = Type("bool"), Type("string"), Type("binary")
DATE32, DATE64 = Type("date", 32, unit="d"), Type("date", 64, unit="ms")
TIME32_S, TIME32_MS = Type("time", 32, unit="s"), Type("time", 32, unit="ms")
TIME64_US, TIME64_NS = Type("time", 64, unit="us"), Type("time", 64, unit="ns")
INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
