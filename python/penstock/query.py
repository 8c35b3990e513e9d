"""Queries: pipelines at work on an engine, and the results as they come out."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, final
from weakref import ReferenceType, ref

from penstock import _penstock
from penstock._frozen import Frozen
from penstock._upstream import Awaited, Later
from penstock.batch import Batch
from penstock.exceptions import EngineError, PlanError, StreamConsumedError
from penstock.hints import missing_of_query
from penstock.lateness import warn_late
from penstock.overview import html_overview, text_overview
from penstock.protocols import ArrowData
from penstock.reading import Taker, is_read_beside, is_read_here
from penstock.result import Result
from penstock.sources import AwaitedItems, Items, open_one

if TYPE_CHECKING:
    from penstock.engine import Engine
    from penstock.shared import SharedSource

__all__ = ["Query", "Results"]

# How long a thread of the event loop's executor waits at a time. One that is cancelled is busy for so long.
_SLICE_SECONDS = 0.05
_ITSELF = (
    "a query cannot wait for itself: this thread runs its source or its watermark function, and the query "
    "waits for what that gives"
)


@final
class Query(Frozen):
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
    # Keeps the engine, which is stopped when nobody holds it any more.
    _engine: "Engine"
    # The shared sources and queries that it reads, which the engine keeps while they run.
    _reads: "tuple[ReferenceType[SharedSource | Query], ...]"
    # Who reads its results alone, by output.
    _lent: dict[int, Taker]

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
            drain: False gives up what is on its way. True ends the input where it stands: batches that the
                query has taken in are processed, windows close, and results leave; somebody has to take
                these. Those are all that were pushed, and those that were read of an iterable or a stream,
                also one that still waits for room; but the rest of a table that it is a part of is not
                read. A replay ends in the middle of a batch. Of a shared source, the query takes what that
                has handed on by now; rows that it has read and has no room for yet go to its other readers.
                A `PushSource` refuses what is pushed from now on.

        Raises:
            PenstockError: It failed while it was drained; and any exception of your own source or sink.
            EngineError: A sink drains its own query, or a function of a pipeline a query of its own engine,
                which would wait for itself.

        Warns:
            LateRowsWarning: Rows came too late to count, and nobody has been told. A query warns once.

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

    def _is_read_here(self) -> bool:
        """Tells whether the query, or one that it reads, waits for what this thread runs."""
        if self._native.is_pulled_here or is_read_here(self):
            return True
        shared = (one for one in (weak() for weak in self._reads) if not isinstance(one, Query))
        return any(map(is_read_here, shared)) or any(query._is_read_here() for query in self._queries())

    def _queries(self) -> "list[Query]":
        """Returns the queries that it reads, itself or by way of a shared source."""
        reads = [one for one in (weak() for weak in self._reads) if one is not None]
        return [query for one in reads for query in ([one] if isinstance(one, Query) else one._queries())]

    def _check_source(self) -> None:
        """Refuses to wait for the end inside of an iterable that the query waits for."""
        if self._is_read_here() and self.status == "running":
            raise EngineError(_ITSELF)

    def _runs_at_rest(self) -> int | None:
        """Returns how often all of its tasks have run, if they make no more results of what they have.

        Tasks of queries that it reads count too.
        """
        runs = [self._native.runs_at_rest(), *(query._runs_at_rest() for query in self._queries())]
        return None if None in runs else sum(filter(None, runs))

    def _check_progress(self, before: int | None) -> int | None:
        """Refuses to wait for a result inside of an iterable that the query waits for, once none comes.

        Args:
            before: What this returned a while ago, or None.
        """
        if not self._is_read_here():
            return None
        runs = self._runs_at_rest()
        if runs is not None and runs == before and self.status == "running":
            raise EngineError(_ITSELF)
        return runs

    def _await_result(self, output: int) -> None:
        """Waits for the next result inside of an iterable that the query waits for."""
        runs = None
        while self._is_read_here() and not self._native.ready(output, _SLICE_SECONDS):
            runs = self._check_progress(runs)

    def _check_reader(self, output: int) -> None:
        """Refuses to take results away from a query that reads them alone."""
        taker = self._lent.get(output)
        reader: Any = None if taker is None else taker()
        if reader is not None and reader.status == "running":
            raise StreamConsumedError(
                f'the results of query "{self.name}" go to "{reader.name}", which reads them alone as long '
                "as it runs"
            )

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the query has ended. Other threads run meanwhile; Ctrl-C interrupts it.

        A query whose results nobody takes waits as well, and does not end.

        Args:
            timeout: How many seconds to wait at most; None is for ever.

        Returns:
            Whether it has ended, on its own or because it was stopped.

        Raises:
            PenstockError: It has failed; and any exception of your own source or sink, as itself.
            EngineError: It is its own sink or source that waits, or a function of a pipeline of its engine:
                it would wait for itself.

        Warns:
            LateRowsWarning: Rows came too late to count, and nobody has been told. A query warns once.

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
            LateRowsWarning: Rows came too late to count, and nobody has been told. A query warns once.

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

    def results(self, output: str | None = None) -> "Results":
        """The results, batch by batch, for `for` and `async for`. Only without `sink=`.

        They wait to be read, and the query waits with them when there are some: it never runs away from its
        reader. Several readers share them; each batch goes to one. A query that has them as its source reads
        them alone, as long as it runs.

        Args:
            output: The name of the output, if it has several. While one of them is not read, the others may
                have to wait as well.

        Returns:
            An iterator over `Batch`. It ends with the query, and raises what the query failed with. Late rows
            that nobody has been told of are a `LateRowsWarning` at its end. It raises `StreamConsumedError`
            while another query reads them; and `EngineError` inside of an iterable or a watermark function of
            the query's only source, when no result comes before that goes on. In an asynchronous source,
            other tasks than the one that runs it may wait.

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

    def metrics(self) -> dict[str, Any]:
        """What the query has come to so far.

        * `rows_in`, `rows_copied`, `rows_contributed`, `rows_filtered`, `rows_late`, `rows_shed`,
          `rows_rejected`, `rows_out`: Where the rows went. Once the query is finished, `rows_in` plus
          `rows_copied` is the sum of the next five; while it runs, rows on their way count nowhere yet.
        * `late_results`, `rejected_results`: Results, of windows or of functions, that came too late for a
          window behind them, and those that an operator behind rejected. The pipeline has made them itself:
          they are no part of that sum.
        * `batches_in`: Batches taken in.
        * `late_by`: How far the latest of the late rows lay behind the watermark, in units of the time
          column, or None.
        * `blocked_by`: What the query waits for, or None: "reader" if nobody takes its results, "sink" if
          that function is busy, with several outputs `reader of "name"` and `sink of "name"`,
          "on_error function", "memory", the name of an operator, or another query that holds up their shared
          source, such as `query "slow"`.
        * `seconds`: How long it has been running, or ran.
        * `rows_per_second`: Rows taken in, of late.
        * `backlog_rows`, `slipped_seconds`: Rows of a replay that are due and not taken yet, and how far it
          was slowed down.
        * `idle_sources`, `idles`: Streams that nobody waits for now, because they have been silent for as
          long as their `idle_after`, and how often that has come about.
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
        """The results as an Arrow stream, which waits for them: see `Results`, and `result` if kept."""
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

    _query: Query
    _output: int

    def __init__(self, query: Query, output: int = 0) -> None:
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
        # Waiting takes nothing, and taking does not wait: whoever is cancelled has not lost a batch.
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
            while not await loop.run_in_executor(None, query.ready, self._output, _SLICE_SECONDS):
                if not is_read_beside():
                    runs = self._query._check_progress(runs)

    def _check_source(self) -> None:
        self._query._check_source()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The results as an Arrow stream, which waits for each batch; see the Arrow PyCapsule protocol."""
        self._query._check_source()
        return self._query._native.stream(self._output, self._query, requested_schema)

    def _as_source(self, argument: str) -> AwaitedItems:
        return Awaited(self, argument)

    def __repr__(self) -> str:
        return f'penstock.Results of query "{self._query.name}": {self._query.status}'
