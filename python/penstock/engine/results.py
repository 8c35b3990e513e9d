"""The results of a query, batch by batch, as they come out."""

import asyncio
from typing import TYPE_CHECKING, final

from penstock.engine._upstream import Awaited
from penstock.engine._waiting import SLICE_SECONDS
from penstock.expr._frozen import Frozen
from penstock.io.batch import Batch
from penstock.io.items import AwaitedItems
from penstock.io.reading import is_read_beside

if TYPE_CHECKING:
    from penstock.engine.query import Query

__all__ = ["Results"]


@final
class Results(Frozen):
    """The results of a query as they come, for `for` and for `async for`. Made by `Query.results`.

    Anything that reads the Arrow PyCapsule protocol takes them, and waits for them:
    `pyarrow.table(query.results())`. So does another query that has them as its source. Either can be done
    once. If the query fails, such a reader gets the words of its error, another query the error itself; both
    also get an error if the query is stopped, since they would take that for the end of all rows.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> with ps.Engine(workers=1) as engine:
        ...     query = engine.submit(ps.stream({"price": "int64"}), source=pa.table({"price": [1]}))
        ...     pa.table(query.results()).num_rows
        1
    """

    __slots__ = ("_output", "_query")

    _query: "Query"
    _output: int

    def __init__(self, query: "Query", output: int = 0) -> None:
        self._fill(_query=query, _output=output)

    def __iter__(self) -> "Results":
        return self

    def __next__(self) -> Batch:
        self._query._check_reader(self._output)
        self._query._await_result(self._output)
        try:
            return Batch(self._query._native.next_batch(self._output))
        except StopIteration:
            self._query._warn_late(above=2)
            raise

    def __aiter__(self) -> "Results":
        return self

    async def __anext__(self) -> Batch:
        # Waiting takes nothing, and taking does not wait: a cancelled reader has not lost a batch.
        query, loop = self._query._native, asyncio.get_running_loop()
        runs = None
        while True:
            self._query._check_reader(self._output)
            try:
                batch = query.take_batch(self._output)
            except StopAsyncIteration:
                self._query._warn_late(above=2)
                raise
            if batch is not None:
                return Batch(batch)
            while not await loop.run_in_executor(None, query.ready, self._output, SLICE_SECONDS):
                if not is_read_beside():
                    runs = self._query._check_progress(runs)

    def _check_source(self) -> None:
        self._query._check_source()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports the results as an Arrow stream, which waits for each batch (Arrow PyCapsule protocol)."""
        self._query._check_source()
        return self._query._native.stream(self._output, self._query, requested_schema)

    def _as_source(self, argument: str) -> AwaitedItems:
        return Awaited(self, argument)

    def __repr__(self) -> str:
        return f'penstock.Results of query "{self._query.name}": {self._query.status}'
