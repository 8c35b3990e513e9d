"""Data in memory that is replayed at a fixed rate, any number of times: for tests and measurements."""

import math
import operator
from typing import final

from penstock import _penstock
from penstock.exceptions import PlanError
from penstock.expr._frozen import Frozen
from penstock.io.protocols import ArrowData
from penstock.io.sources import open_source

__all__ = ["Replay", "replay"]


@final
class Replay(Frozen):
    """Data to be replayed. Made by `replay`; may be the source of any number of queries.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> ps.replay(pa.table({"price": [1, 2]}), rate=1_000, rounds=3)
        penstock.Replay: 2 rows, 3 times, at 1,000 rows per second
    """

    __slots__ = ("_native", "_rate", "_rounds")

    _native: _penstock.Replay
    _rate: float | None
    _rounds: int | None

    def __init__(self, native: _penstock.Replay, rate: float | None, rounds: int | None) -> None:
        if not isinstance(native, _penstock.Replay):
            raise TypeError("a Replay is not made directly: use penstock.replay(data, rate=...)")
        self._fill(_native=native, _rate=rate, _rounds=rounds)

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        times = (
            "for ever" if self._rounds is None else "once" if self._rounds == 1 else f"{self._rounds:,} times"
        )
        pace = "as fast as it is taken" if self._rate is None else f"at {self._rate:,.12g} rows per second"
        rows = "1 row" if len(self) == 1 else f"{len(self):,} rows"
        return f"penstock.Replay: {rows}, {times}, {pace}"


def replay(data: ArrowData, rate: float | None = None, rounds: int | None = 1) -> Replay:
    """Makes a source of data that is read into memory now, and replayed when a query asks for it.

    Rows become due one by one, at the rate, whether the query keeps up or not: the latency of a row counts
    from when it was due. A query that falls behind by more than a second slows the source down; by how much
    is `slipped_seconds` of `Query.metrics`. In each further round the times of the rows are later by the
    length of a round.

    Args:
        data: The rows, as any kind of Arrow data.
        rate: Rows per second; None is as fast as the query takes them.
        rounds: How often the data is replayed; None is for ever.

    Returns:
        The source, for `Engine.submit` and `Engine.source`.

    Raises:
        PlanError: The rate is not above zero, or the number of rounds is less than one.
        TypeError: An argument is of the wrong kind.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> source = ps.replay(pa.table({"at": [1, 2]}), rounds=2)
        >>> with ps.Engine(workers=1) as engine:
        ...     query = engine.submit(ps.stream({"at": "int64"}), source=source, sink="collect")
        ...     len(query.result())
        4
    """
    if rate is not None:
        if isinstance(rate, bool) or not isinstance(rate, int | float):
            raise TypeError(f"rate takes a number of rows per second, not {type(rate).__name__} {rate!r}")
        if not (math.isfinite(rate) and rate > 0):
            raise PlanError(f"rate is a number of rows per second above zero, not {rate}")
    if rounds is not None:
        if isinstance(rounds, bool) or not hasattr(rounds, "__index__"):
            raise TypeError(
                f"rounds takes a whole number, or None for ever, not {type(rounds).__name__} {rounds!r}"
            )
        rounds = operator.index(rounds)
        if not 1 <= rounds < 2**63:
            raise PlanError(f"rounds is a whole number from 1, or None for ever, not {rounds}")
    pace = None if rate is None else float(rate)
    return Replay(_penstock.Replay(open_source(data, "data"), pace, rounds), pace, rounds)
