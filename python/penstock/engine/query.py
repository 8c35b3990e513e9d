"""Queries: pipelines at work on an engine."""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, final
from weakref import ref

from penstock import _penstock
from penstock.display.notices import warn_late
from penstock.display.overview import html_overview, text_overview
from penstock.engine._upstream import Later
from penstock.engine._waiting import WaitChecks
from penstock.engine.hints import missing_of_query
from penstock.engine.results import Results
from penstock.exceptions import PlanError
from penstock.io.batch import Batch
from penstock.io.items import Items
from penstock.io.protocols import ArrowData
from penstock.io.result import Result
from penstock.io.sources import open_one

if TYPE_CHECKING:
    from penstock.engine.engine import Engine
    from penstock.engine.shared import SharedSource

__all__ = ["Query"]


@final
class Query(WaitChecks):
    """A pipeline at work. Made by `Engine.submit`; iterating over it gives its results.

    Anything that reads the Arrow PyCapsule protocol takes its results, and waits for them:
    `pyarrow.table(query)`, `polars.DataFrame(query)`. So does another query that has it as its source. Either
    reads all of them, so that it can be done only once, unless the query was submitted with `sink="collect"`.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"price": "int64"})
        >>> with ps.Engine(workers=1) as engine:
        ...     query = engine.submit(prices, source=pa.table({"price": [1, 2]}), name="prices")
        ...     for batch in query:
        ...         for row in batch.to_pylist():
        ...             print(row)
        ...     query.wait(), query.status
        {'price': 1}
        {'price': 2}
        (True, 'finished')
    """

    __slots__ = ("__weakref__", "_engine", "_lent", "_native", "_reads")

    _native: _penstock.Query
    # Keeps the engine, which stops when its last reference is dropped.
    _engine: "Engine"

    def __init__(
        self, native: _penstock.Query, engine: "Engine", reads: "Iterable[SharedSource | Query]" = ()
    ) -> None:
        if not isinstance(native, _penstock.Query):
            raise TypeError("a Query is not made directly: use engine.submit(stream, source=...)")
        self._fill(_native=native, _engine=engine, _reads=tuple(ref(source) for source in reads), _lent={})

    if not TYPE_CHECKING:  # a type checker is to know what is not there

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise missing_of_query(self, name)

    @property
    def name(self) -> str:
        """Its name, which no other query or source of the engine has while it runs.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     engine.submit(ps.stream({"price": "int64"}), source=[], name="prices").name
            'prices'
        """
        return self._native.name

    @property
    def status(self) -> str:
        """What it is doing: "running", "finished", "failed" or "stopped".

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=feed)
            ...     query.status
            'running'
            >>> query.status
            'stopped'
        """
        return self._native.status

    @property
    def schema(self) -> _penstock.Schema:
        """The columns of its results, as an Arrow schema with `names` and `types`.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     engine.submit(ps.stream({"price": "int64"}), source=[]).schema.names
            ['price']
        """
        return self._schema(None)

    @property
    def error(self) -> Exception | None:
        """Why it has failed, or None if it has not (yet).

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(ps.stream({"a": "int64"}), source=pa.table({"b": [1]}))
            ...     while query.status == "running":
            ...         pass
            ...     print(type(query.error).__name__)
            SchemaMismatchError
        """
        return self._native.error

    def stop(self, drain: bool = False) -> None:
        """Ends the query, and waits until it has ended. Does nothing if it has ended before.

        Args:
            drain: False discards rows that are in flight. True ends the input at its current position:
                batches that the query has taken in are processed, windows close, and results are emitted,
                which a reader has to take. Taken in are all pushed batches, and all batches read from an
                iterable or a stream, including one that still waits for room; but the rest of the table that
                a batch is a part of is not read. A replay ends in the middle of a batch. Of a shared source,
                the query takes what the source has emitted by now; rows that the source has read and has no
                room for yet go to its other readers. A `PushSource` refuses what is pushed from now on.

        Raises:
            PenstockError: It failed while it was drained; and any exception of your own source or sink.
            EngineError: A sink drains its own query, or a function of a pipeline a query of its own engine,
                which would wait for itself.

        Warns:
            LateRowsWarning: Rows came too late to count, and this was not reported yet. A query warns once.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> source = ps.PushSource()
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=source, sink="collect")
            ...     taken = source.push(pa.table({"price": [1, 2]}))
            ...     query.stop(drain=True)
            ...     query.status, len(query.result())
            ('finished', 2)
        """
        self._stop(drain)
        self._warn_late(above=2)

    def _stop(self, drain: bool) -> None:
        if drain:
            self._native.drain()
        else:
            self._native.stop()

    def _warn_late(self, above: int) -> None:
        """Warns of late rows, once, when it has ended; names the line that many calls above this one."""
        late = self._native.take_late()
        if late is not None:
            warn_late(*late, query=self.name, above=above + 1)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the query has ended. Other threads run meanwhile; Ctrl-C interrupts it.

        A query whose results are not read waits as well, and does not end.

        Args:
            timeout: How many seconds to wait at most; None is for ever.

        Returns:
            Whether it has ended, on its own or because it was stopped.

        Raises:
            PenstockError: It has failed; and any exception of your own source or sink, as itself.
            EngineError: It is its own sink or source that waits, or a function of a pipeline of its engine:
                it would wait for itself.

        Warns:
            LateRowsWarning: Rows came too late to count, and this was not reported yet. A query warns once.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=feed)
            ...     query.wait(timeout=0.01)
            False
        """
        if timeout is None:
            self._check_source()
        has_ended = self._native.wait(timeout)
        if has_ended:
            self._warn_late(above=2)
        return has_ended

    @property
    def outputs(self) -> list[str]:
        """The names of its outputs: "result", if it was submitted as one pipeline.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     engine.submit(ps.stream({"price": "int64"}), source=[]).outputs
            ['result']
        """
        return self._native.outputs

    def _number(self, output: str | None) -> int:
        names = self.outputs
        if output is None and len(names) == 1:
            return 0
        if output not in names:
            given = "say which output" if output is None else f"there is no output {output!r}"
            raise PlanError(f"{given}; there are {names}")
        return names.index(output)

    def _schema(self, output: str | None) -> _penstock.Schema:
        schema = self._native.schema(self._number(output))
        assert schema is not None, "every output has a schema"
        return schema

    def result(self, output: str | None = None) -> Result:
        """Waits until the query has ended, and gives all of its results. Only with `sink="collect"`.

        Args:
            output: The name of the output, if it has several.

        Returns:
            The output rows and the counters, each time the same.

        Raises:
            PenstockError: It has failed; and any exception of your own source, as itself.
            QueryStoppedError: It was stopped.
            PlanError: It was submitted with another sink.

        Warns:
            LateRowsWarning: Rows came too late to count, and this was not reported yet. A query warns once.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> prices = ps.stream({"price": "int64"})
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(prices, source=pa.table({"price": [1, 2]}), sink="collect")
            ...     query.result().rows_out
            2
        """
        self._check_source()
        result = Result(self._native.result(self._number(output)))
        self._warn_late(above=2)
        return result

    def results(self, output: str | None = None) -> Results:
        """Returns the results, batch by batch, for `for` and `async for`. Only without `sink=`.

        They wait to be read, and the query waits with them when there are some: it never runs away from its
        reader. Several readers share them; each batch goes to one. A query that has them as its source reads
        them alone, as long as it runs.

        Args:
            output: The name of the output, if it has several. While one of them is not read, the others may
                have to wait as well.

        Returns:
            An iterator over `Batch`. It ends with the query, and raises what the query failed with. Late rows
            that have not been reported cause a `LateRowsWarning` at its end. It raises `StreamConsumedError`
            while another query reads them; and `EngineError` inside of an iterable or a watermark function of
            the query's only source, when no result can arrive before that continues. In an asynchronous
            source, other tasks than the one that runs it may wait.

        Raises:
            PlanError: The results go to a sink.

        Example:
            >>> import asyncio
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> async def total() -> int:
            ...     with ps.Engine(workers=1) as engine:
            ...         query = engine.submit(ps.stream({"n": "int64"}), source=pa.table({"n": [1, 2]}))
            ...         return sum([batch.num_rows async for batch in query.results()])
            >>> asyncio.run(total())
            2
        """
        number = self._number(output)
        self._native.check_results(number)
        return Results(self, number)

    def replace_lookup(self, table: ArrowData, *, name: str | None = None) -> None:
        """Puts another table in the place of the one that rows are looked up in, while the query runs.

        It counts for all rows that are looked up from now on. No row sees a part of it.

        Args:
            table: The table, with the columns of the old one.
            name: The name of the lookup, as given to `Stream.lookup`, if there are several.

        Raises:
            PlanError: There is no such lookup, the columns are not those of the old table, or a key occurs
                twice.
            MemoryLimitExceeded: It does not fit the memory of the engine.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> shops = pa.table({"shop": [1], "city": ["Graz"]})
            >>> sales, feed = ps.stream({"shop": "int64"}).lookup(shops, on="shop"), ps.PushSource()
            >>> with ps.Engine(workers=1) as engine:
            ...     query = engine.submit(sales, source=feed)
            ...     query.replace_lookup(pa.table({"shop": [1], "city": ["Linz"]}))
            ...     taken = feed.push(pa.table({"shop": [1]}))
            ...     next(query.results()).to_pylist()
            [{'shop': 1, 'city': 'Linz'}]
        """
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name takes a string, not {type(name).__name__}")
        self._native.replace_lookup(open_one(table, "table"), name)

    def explain(self, *, physical: bool = True) -> str:
        """Formats the tasks that the query runs as, in the order in which rows pass them.

        The text says what each task reads, runs and writes, and why an operator is spread over several
        workers or not. It describes what really runs: with the sources that the query shares, and the workers
        that it was given.

        Args:
            physical: Only the physical plan is known to a query: print the stream for the logical one.

        Returns:
            The text.

        Raises:
            ValueError: `physical` is False.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> prices = ps.stream({"price": "int64"})
            >>> with ps.Engine(workers=1, chain="auto", on_exit="drain") as engine:
            ...     query = engine.submit(prices, source=pa.table({"price": [1, 2]}), sink="collect")
            ...     print(query.explain(physical=True))
            0  stream
               reads     stream "stream": price
               writes    log 0: price i64? -> 1
            1  sink
               reads     log 0
        """
        if not physical:
            raise ValueError("a query knows its physical plan only: print the stream for the logical one")
        return self._native.explain_physical()

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the query.

        * `rows_in`, `rows_copied`, `rows_contributed`, `rows_filtered`, `rows_late`, `rows_shed`,
          `rows_rejected`, `rows_out`: Where the rows went. Once the query is finished, `rows_in` plus
          `rows_copied` is the sum of the next five; while it runs, rows on their way count nowhere yet.
        * `late_results`, `rejected_results`: Results of windows or functions that arrived too late for a
          downstream window, and those that a downstream operator rejected. The pipeline produces them itself,
          so they are not part of that sum.
        * `batches_in`: Batches taken in.
        * `late_by`: How far the latest of the late rows was behind the watermark, in units of the time
          column, or None.
        * `blocked_by`: What the query waits for, or None: "reader" if its results are not read, "sink" if
          that function is busy, with several outputs `reader of "name"` and `sink of "name"`, "on_error
          function", "memory", the name of an operator, or another query that holds up their shared source,
          such as `query "slow"`.
        * `seconds`: How long it has been running, or ran.
        * `rows_per_second`: Rows taken in, of late.
        * `backlog_rows`, `slipped_seconds`: Rows of a replay that are due and not taken yet, and how far it
          was slowed down.
        * `idle_sources`, `idles`: Streams that are not waited for, because they have been silent for their
          `idle_after`, and how often streams have become idle.
        * `clock_closings`: How often windows were closed by the clock, see `close_after`.
        * `event_latency`: From the arrival of a row until its results were read, or the function that takes
          them has returned: `count`, `mean_ms`, `p50_ms`, `p95_ms`, `p99_ms`, `p999_ms`, `max_ms`, by markers
          that go with the rows.
        * `output_latency`: The same from the arrival of the watermark that closed a window.
        * `operators`: For each operator `name`, `rows_in`, `rows_out`, `runs` and `seconds`.
        * `tasks`: For each task `name`, `pending_rows` and `signals` that wait for it, `runs`, `seconds`,
          `blocked_seconds` without room for its output, and of late `time_share` (the part of a core),
          `cost_ns` (per row) and `selectivity` (rows out per row in), which are None before they are known.

        Returns:
            A dictionary of plain values.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     source = pa.table({"price": [1, 2]})
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=source, sink="discard")
            ...     query.wait(), query.metrics()["rows_out"]
            (True, 2)
        """
        return self._native.metrics()

    def __iter__(self) -> Iterator[Batch]:
        return self.results()

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self.results()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports the results as an Arrow stream, which waits for them: see `Results` and `result`."""
        number = self._number(None)
        if self._native.is_collected[number]:
            return self.result().__arrow_c_stream__(requested_schema)
        return self.results().__arrow_c_stream__(requested_schema)

    def _as_source(self, argument: str) -> Items:
        number = self._number(None)
        if self._native.is_collected[number]:
            return Items(Later(self), argument)
        return self.results()._as_source(argument)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Query cannot be pickled: it lives on the engine of this process")

    def __repr__(self) -> str:
        return f'penstock.Query "{self.name}": {self.status}\n{text_overview([self])}'

    def _repr_html_(self) -> str:
        return html_overview([self], f'query "{self.name}": {self.status}')
