"""A source that rows are pushed into, from any thread."""

import operator
from types import TracebackType
from typing import Self, final

from penstock import _penstock
from penstock._frozen import Frozen
from penstock.exceptions import PlanError
from penstock.protocols import ArrowArray, ArrowStream
from penstock.sources import open_one

__all__ = ["PushSource"]

_MOST_BATCHES = 65_536


@final
class PushSource(Frozen):
    """A source that rows are pushed into, for `Engine.submit` or `Engine.source`, once.

    It may be pushed to by any number of threads, also before the query is submitted. It is closed by `close`,
    by leaving its `with` block, or when nobody holds it any more; then the query closes its windows and comes
    to its end.

    Args:
        capacity: How many batches may wait for the query. When there are so many, `push` waits.

    Raises:
        PlanError: The capacity is not from 1 to 65,536.
        TypeError: The capacity is not a whole number.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> with ps.Engine(workers=1) as engine:
        ...     with ps.PushSource() as source:
        ...         query = engine.submit(ps.stream({"price": "int64"}), source=source, sink="collect")
        ...         for price in (1, 2):
        ...             source.push(pa.table({"price": [price]}))
        ...     query.result().to_pylist()
        True
        True
        [{'price': 1}, {'price': 2}]
    """

    __slots__ = ("_native",)

    _native: _penstock.PushSource

    def __init__(self, capacity: int = 4) -> None:
        if isinstance(capacity, bool) or not hasattr(capacity, "__index__"):
            raise TypeError(f"capacity takes a whole number, not {type(capacity).__name__} {capacity!r}")
        batches = operator.index(capacity)
        if not 1 <= batches <= _MOST_BATCHES:
            raise PlanError(f"capacity is from 1 to {_MOST_BATCHES:,} batches, not {batches}")
        self._fill(_native=_penstock.PushSource(batches))

    def push(self, data: ArrowStream | ArrowArray, timeout: float | None = None) -> bool:
        """Hands rows over to the query, as one batch. Other threads run meanwhile; Ctrl-C interrupts it.

        Args:
            data: The rows: any object that speaks the Arrow PyCapsule protocol. It may be used further, as
                long as its values do not change.
            timeout: How many seconds to wait for room, if as many batches as may wait do so. None waits for
                ever, 0 not at all.

        Returns:
            Whether the rows were taken. If not, there was no room in time, and none of them was.

        Raises:
            QueryEndedError: The query has ended. If it failed, its error is the cause.
            SourceEndedError: The source was closed.
            TypeError: This is not Arrow data.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> source = ps.PushSource(capacity=1)
            >>> source.push(pa.table({"price": [1]})), source.push(pa.table({"price": [2]}), timeout=0)
            (True, False)
        """
        return self._native.push(open_one(data, "data"), timeout)

    def close(self) -> None:
        """Ends the input, behind the rows that were pushed. Does nothing if it was closed before.

        Example:
            >>> import penstock as ps
            >>> source = ps.PushSource()
            >>> source.close()
            >>> source.closed
            True
        """
        self._native.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed.

        Example:
            >>> import penstock as ps
            >>> ps.PushSource().closed
            False
        """
        return self._native.is_closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"penstock.PushSource: {'closed' if self.closed else 'open'}"
