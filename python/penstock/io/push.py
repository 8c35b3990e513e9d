"""A source that rows are pushed into, from any thread."""

import operator
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, final

from penstock import _penstock
from penstock.exceptions import PlanError
from penstock.expr._frozen import Frozen
from penstock.io.protocols import ArrowArray, ArrowStream
from penstock.io.records import is_record, records_to_arrow
from penstock.io.schemas import SchemaLike, read_schema
from penstock.io.sources import open_one

__all__ = ["PushSource"]

_MOST_BATCHES = 65_536


@final
class PushSource(Frozen):
    """A source that rows are pushed into, for `Engine.submit` or `Engine.source`, once.

    It may be pushed to by any number of threads, also before the query is submitted. It is closed by `close`,
    by leaving its `with` block, or when its last reference is dropped; then the query closes its windows and
    finishes.

    Args:
        capacity: How many batches may wait for the query. When there are so many, `push` waits.
        schema: The columns of rows that are pushed as Python objects, as for `stream`. By default their class
            says so; with a schema they may be dictionaries as well.

    Raises:
        PlanError: The capacity is not from 1 to 65,536.
        TypeError: The capacity is not a whole number, or this is no schema.

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

    __slots__ = ("_native", "_schema")

    _native: _penstock.PushSource
    _schema: _penstock.Schema | None

    def __init__(self, capacity: int = 4, schema: SchemaLike | None = None) -> None:
        if isinstance(capacity, bool) or not hasattr(capacity, "__index__"):
            raise TypeError(f"capacity takes a whole number, not {type(capacity).__name__} {capacity!r}")
        batches = operator.index(capacity)
        if not 1 <= batches <= _MOST_BATCHES:
            raise PlanError(f"capacity is from 1 to {_MOST_BATCHES:,} batches, not {batches}")
        columns = None if schema is None else read_schema(schema)
        self._fill(_native=_penstock.PushSource(batches), _schema=columns)

    def push(self, data: ArrowStream | ArrowArray | Sequence[Any], timeout: float | None = None) -> bool:
        """Hands rows over to the query, as one batch. Other threads run meanwhile; Ctrl-C interrupts it.

        Args:
            data: The rows: any object that speaks the Arrow PyCapsule protocol. It may be used further, as
                long as its values do not change. Or a list of Python objects, one for each row: those of a
                dataclass, a NamedTuple or a pydantic model, and dictionaries if the source has a schema.
                That needs pyarrow.
            timeout: How many seconds to wait for room, if as many batches as may wait do so. None waits for
                ever, 0 not at all.

        Returns:
            Whether the rows were taken. If not, there was no room in time, and none of them was.

        Raises:
            QueryEndedError: The query has ended, or is about to since it is drained. If it failed, its error
                is the cause.
            EngineError: A watermark function pushes to its own source; or a function of a pipeline waits for
                room on its own engine, which may never come.
            SchemaMismatchError: The rows do not have the columns that the query declares. None of them was
                taken, and the source stays open. Rows that are pushed before the query exists are checked
                when it is submitted.
            SourceEndedError: The source was closed.
            TypeError: These are no rows, or a value is not of the type of its column.

        Example:
            >>> from dataclasses import dataclass
            >>> import penstock as ps
            >>> @dataclass
            ... class Trade:
            ...     symbol: str
            ...     price: float
            >>> source = ps.PushSource()
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(ps.stream(Trade), source=source, sink="collect")
            ...     taken = source.push([Trade("PEN", 1.5), Trade("STK", 2.5)])
            ...     source.close()
            ...     query.result().to_pylist()
            [{'symbol': 'PEN', 'price': 1.5}, {'symbol': 'STK', 'price': 2.5}]

            Without room, it waits, or says so:

            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> source = ps.PushSource(capacity=1)
            >>> source.push(pa.table({"price": [1]})), source.push(pa.table({"price": [2]}), timeout=0)
            (True, False)
        """
        if self._schema is not None and isinstance(data, list | tuple) and not is_record(data):
            for number, item in enumerate(data):
                if not isinstance(item, Mapping) and not is_record(item):
                    raise TypeError(f"item {number} of data is {type(item).__name__}, which is no row")
            return self._native.push(records_to_arrow(data, "data", self._schema), timeout)
        return self._native.push(open_one(data, "data"), timeout)

    def close(self) -> None:
        """Ends the input after the rows that were pushed. Does nothing if it is closed already.

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
