"""One batch of results, as a query hands them out."""

from typing import final

from penstock import _penstock
from penstock.io.rows import Rows

__all__ = ["Batch"]


@final
class Batch(Rows):
    """A few rows of the results of a query. Comes from iterating over a `Query`, or goes to its sink.

    Anything that reads the Arrow PyCapsule protocol takes it as it is, without a copy:
    `pyarrow.record_batch(batch)`, `polars.DataFrame(batch)`, and a source of another query as well. It is
    yours to keep: what it holds is no part of the engine's budget.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> with ps.Engine(workers=1) as engine:
        ...     for batch in engine.submit(ps.stream({"price": "int64"}), source=pa.table({"price": [1]})):
        ...         print(batch)
        penstock.Batch: 1 row of 1 column
        price
        -----
            1
    """

    __slots__ = ()

    _native: _penstock.Batch

    def __init__(self, batch: _penstock.Batch) -> None:
        if not isinstance(batch, _penstock.Batch):
            raise TypeError("a Batch is not made directly: it comes from the results of a Query")
        self._fill(_native=batch)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Exports the rows as an Arrow array of structs; see the Arrow PyCapsule protocol."""
        return self._native.__arrow_c_array__(requested_schema)

    @property
    def num_rows(self) -> int:
        """How many rows there are; the same as `len(batch)`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=pa.table({"price": [1]}))
            ...     [batch.num_rows for batch in query]
            [1]
        """
        return len(self)
