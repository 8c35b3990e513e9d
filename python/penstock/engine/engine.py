"""The engine: many queries at a time, on a few threads."""

import atexit
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeAlias, final
from weakref import WeakSet

from penstock import _penstock
from penstock.display.notices import Waiting, quantity, warn_discarded
from penstock.display.overview import html_overview, text_overview
from penstock.engine._roster import Roster
from penstock.engine._sinks import read_sinks
from penstock.engine._submission import (
    as_outputs,
    check_name,
    note_taker,
    open_any_input,
    open_input,
    read_by_engine,
    upstream_of,
)
from penstock.engine.query import Query
from penstock.engine.shared import OnLag, SharedSource
from penstock.exceptions import PlanError
from penstock.expr._frozen import Frozen
from penstock.expr.durations import Duration, normalise_duration
from penstock.io.batch import Batch
from penstock.io.protocols import ArrowData
from penstock.io.push import PushSource
from penstock.io.rejecting import OnError, read_on_error
from penstock.io.replay import Replay
from penstock.io.schemas import SchemaLike
from penstock.io.sources import Opening
from penstock.plan.declaration import stream
from penstock.plan.options import (
    Chain,
    Memory,
    Mode,
    Parallelism,
    Policy,
    Size,
    Strategy,
    read_options,
    read_spreading,
)
from penstock.plan.outputs import Outputs
from penstock.plan.running import by_stream
from penstock.plan.stream import Stream
from penstock.plan.times import ManualClock

__all__ = ["Engine", "OnExit", "Sink", "Source"]

OnExit: TypeAlias = Literal["drain", "stop"]

Source: TypeAlias = ArrowData | PushSource | Replay | SharedSource
Sink: TypeAlias = Literal["collect", "discard"] | Callable[[Batch], object] | None


@final
class Engine(Frozen):
    """Runs many queries at a time, on a few threads and within one budget of memory.

    Leaving its `with` block, or `stop`, ends all of its queries: see `on_exit`. An engine lives in the
    process that made it: in a forked child it raises an `EngineError`.

    Each option can be set by a variable of the environment as well: see `penstock.plan.options`.

    Args:
        workers: Threads that run tasks, from 1 to 64. The default is one for each core.
        policy: Which task runs next: "adaptive" (the default) prefers what leads to results for the least
            time, and lets batches grow while the latency allows it; "fcfs" the oldest rows; "rr" takes turns.
        mode: Who runs tasks: "state" (the default) for the workers, "threads" for a thread of its own for
            each task, left to the system; there to be compared with.
        memory: How rows go from task to task: in "blocks" of columns (the default), or one by one through a
            "queue", which is slow, and there to be compared with.
        chain: Which operators make up a task: "auto" (the default) chains operators that can run without a
            pause, "off" makes each a task of its own.
        budget: The most memory for rows on their way, results that wait to be read, windows and lookup
            tables, of all queries together: a size such as "2GiB", or a whole number of bytes. The default
            is half of the machine's memory. Results that you have read or collected do not count.
        block_rows: Rows per block, from 1 to 65,536. By default a block fits well into the cache.
        chunk_blocks: Blocks per chunk, the piece in which memory is had, from 1 to 65,536.
        clock: A `ManualClock`, for tests. By default it is the time of the system.
        on_exit: What becomes of queries that run when its `with` block is left. "stop" (the default) ends
            them as `stop` does, and warns with the number of rows that are lost: those that waited, and those
            in open windows. "drain" ends their input at its current position, processes what was taken in,
            and waits for that: first the queries and shared sources that others read, then their readers.
            Unread results can be read afterwards. An exception that leaves the block stops them in either
            case.

    Raises:
        PlanError: An option, or its variable, has a value that it cannot have.
        SizeError: The budget is not a size.
        TypeError: An option is of the wrong kind.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"price": "int64"})
        >>> with ps.Engine(workers=2) as engine:
        ...     source = ps.PushSource()
        ...     query = engine.submit(prices.filter(ps.col("price") > 1), source=source)
        ...     taken = source.push(pa.table({"price": [1, 2]}))
        ...     next(query.results()).to_pylist()
        [{'price': 2}]
    """

    __slots__ = ("__weakref__", "_native", "_on_exit", "_options", "_roster")

    _native: _penstock.Engine
    _on_exit: OnExit
    _options: _penstock.EngineOptions
    # Its lock may be held in the parent of a forked process: the native side checks the process first.
    _roster: Roster

    def __init__(
        self,
        *,
        workers: int | None = None,
        policy: Policy | None = None,
        mode: Mode | None = None,
        memory: Memory | None = None,
        chain: Chain | None = None,
        budget: Size | None = None,
        block_rows: int | None = None,
        chunk_blocks: int | None = None,
        clock: ManualClock | None = None,
        on_exit: OnExit = "stop",
    ) -> None:
        _check_on_exit(on_exit)
        if clock is not None and not isinstance(clock, ManualClock):
            raise TypeError(f"clock takes a ManualClock, not {type(clock).__name__}")
        options = read_options(
            workers=workers,
            policy=policy,
            mode=mode,
            memory=memory,
            chain=chain,
            budget=budget,
            block_rows=block_rows,
            chunk_blocks=chunk_blocks,
            clock=clock,
        )
        self._fill(
            _native=_penstock.Engine(options),
            _on_exit=on_exit,
            _options=options,
            _roster=Roster(),
        )
        _engines.add(self)

    def submit(
        self,
        plan: Stream | Outputs,
        *,
        source: Source | Mapping[str, Source],
        sink: Sink | Mapping[str, Sink] = None,
        name: str | None = None,
        on_lag: OnLag = "wait",
        on_error: OnError = "fail",
        parallelism: Parallelism = "auto",
        strategy: Strategy = "auto",
    ) -> Query:
        """Starts a query, beside those that run.

        Args:
            plan: The pipeline, or several with an output each: see `penstock.outputs`.
            source: Where its rows come from: a `PushSource`; a `replay`; a source that queries share, as made
                by `source`; another `Query` or its `results`, which it then reads alone; or any data that
                `Stream.run` takes, read on a thread of its own. What an iterable raises comes out of the
                query as itself. An asynchronous one is cancelled and closed when the query ends, on its own
                thread; the interpreter waits up to 10 s for that when it ends, and what the iterable raises
                then goes to `threading.excepthook`. A pipeline of several streams
                takes a mapping of their names to such sources.
            sink: Where its results go. None leaves them to iteration over the query, which waits while they
                are unread. "collect" keeps them for `Query.result`. "discard" counts them only. A function is
                called with each `Batch`, on a thread of its own; what it raises ends the query, and comes out
                of it as itself. With several outputs, a mapping of their names says where each goes; outputs
                that are not in it are left to their readers.
            name: What it is called. By default a number makes one up.
            on_lag: What happens when the query holds a shared source up. "wait": the source waits, and with
                it all others. "fail": the query fails with a `LaggedError`. "shed": it skips the rows that
                wait for it, and counts them as `rows_shed`. A query that is inside a function of
                `map_batches` does so when that returns.
            on_error: What becomes of a row that an operator has no answer for, or that a source of its own
                cannot take: see `Stream.run`. What a shared source cannot take is that one's: see `source`.
            parallelism: On how many workers one operator may run: see `Stream.run`.
            strategy: How it is spread over them: see there.

        Returns:
            The query, at work.

        Raises:
            EngineStoppedError: The engine has been stopped.
            MemoryLimitExceeded: There is not enough memory for the streams and tables of the query.
            NameTakenError: Another query or source has that name.
            PlanError: The pipeline does not go with its shared source, or an option has a value that it
                cannot have.
            SchemaMismatchError: A batch was pushed that does not have the declared columns.
            SourceEndedError: The shared source has ended.
            StreamConsumedError: The source can be read only once, and was. A query that was refused has not
                read it.
            TypeError: An argument is of the wrong kind.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> prices, found = ps.stream({"price": "int64"}), []
            >>> with ps.Engine(workers=1) as engine:
            ...     sink = lambda batch: found.extend(batch.to_pylist())
            ...     query = engine.submit(prices, source=pa.table({"price": [1, 2]}), sink=sink)
            ...     query.wait(), found
            (True, [{'price': 1}, {'price': 2}])
        """
        outputs = as_outputs(plan)
        check_name(name)
        if not isinstance(on_lag, str):
            raise TypeError(f"on_lag takes a name, not {type(on_lag).__name__} {on_lag!r}")
        takers = read_sinks(outputs.names, sink)
        several = len(outputs.streams) > 1
        spreading, on_bad = read_spreading(parallelism, strategy), read_on_error(on_error)
        given = by_stream(outputs.streams, source, "source")
        with Opening() as opening:
            sources = [
                (
                    stream,
                    open_any_input(opening, one, f"source[{stream!r}]" if several else "source"),
                    upstream_of(one),
                )
                for stream, one in given
            ]
            native = self._native.submit(outputs, sources, takers, name, on_lag, on_bad, spreading)
        query = Query(
            native, self, [read for read in (read_by_engine(one) for _, one in given) if read is not None]
        )
        note_taker(self, query, [opened for _, opened, _ in sources])
        self._roster.add_query(query)
        return query

    def source(
        self,
        stream_or_schema: Stream | SchemaLike,
        data: ArrowData | PushSource | Replay,
        *,
        name: str | None = None,
        hold: bool = False,
        on_error: OnError = "fail",
        max_ahead: Duration | None = None,
    ) -> SharedSource:
        """Starts a source that several queries read: its rows are taken in once.

        Args:
            stream_or_schema: What its rows are: a stream that is only declared,
                `stream(schema, time=..., delay=...)`, or a schema.
            data: Where the rows come from: a `PushSource`, a `replay`, another `Query`, or any data that
                `Stream.run` takes.
            name: What it is called. By default a number makes one up.
            hold: False lets rows come as soon as the first query reads them, True when `SharedSource.start`
                is called: so that several queries see the same rows.
            on_error: What becomes of what the source cannot take: a row whose time is null or too far ahead,
                or a batch that does not have the declared columns, unless it is pushed: `PushSource.push`
                refuses that, and the source does not see it. "fail" (the default) ends the source, and
                with it the queries that read it. "skip" leaves it out, and counts its rows as
                `rows_rejected` of the source; the watermark does not move for them. A function does the same,
                and is called with each `Batch` of such rows: see `Stream.run`. If it raises, the source
                fails; a query that had read the end of the source before that stays finished.
            max_ahead: How far ahead of the watermark a time may be: see `penstock.stream`.

        Returns:
            The source, for `submit`.

        Raises:
            EngineStoppedError: The engine has been stopped.
            MemoryLimitExceeded: There is not enough memory for its rows.
            NameTakenError: Another query or source has that name.
            PlanError: The stream is more than declared, or has a `max_ahead` already.
            SchemaMismatchError: A batch was pushed that does not have the declared columns.
            StreamConsumedError: The data can be read only once, and was.
            TypeError: An argument is of the wrong kind.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> prices = ps.stream({"price": "int64"})
            >>> with ps.Engine(workers=1) as engine:
            ...     source = engine.source(prices, pa.table({"price": [1, 2, 3]}))
            ...     engine.submit(prices, source=source, sink="collect").result().rows_in
            3
        """
        declared = stream_or_schema if isinstance(stream_or_schema, Stream) else stream(stream_or_schema)
        if not declared._plan.is_declaration:
            raise PlanError(
                "a shared source takes a stream that is only declared, stream(schema, time=..., delay=...): "
                "what is to be done with its rows belongs to the queries that read it"
            )
        if isinstance(data, SharedSource):
            raise TypeError("a shared source reads data, not another shared source")
        check_name(name)
        plan = declared._plan
        if max_ahead is not None:
            plan = plan.with_max_ahead(normalise_duration(max_ahead, "max_ahead"))
        on_bad = read_on_error(on_error)
        with Opening() as opening:
            opened = open_input(opening, data, "data")
            native = self._native.share(plan, (opened, upstream_of(data)), name, bool(hold), on_bad)
        read = read_by_engine(data)
        source = SharedSource(native, [read] if isinstance(read, Query) else [])
        note_taker(self, source, [opened])
        self._roster.add_source(source)
        return source

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries that run, in the order in which they were submitted.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=feed)
            ...     engine.queries == (query,)
            True
        """
        self._native.check()
        return tuple(query for query in self._roster.queries() if query.status == "running")

    def query(self, name: str) -> Query:
        """Returns the query of that name: the one that runs, otherwise the last that ended and still exists.

        A query that has ended is known as long as another reference to it exists, and one that failed until
        its error has been read.

        Args:
            name: The name.

        Returns:
            The query.

        Raises:
            KeyError: There is no query of that name.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     query = engine.submit(ps.stream({"price": "int64"}), source=feed, name="prices")
            ...     engine.query("prices") is query
            True
        """
        known = [one for one in self._listed() if isinstance(one, Query)]
        named = [query for query in known if query.name == name]
        if not named:
            raise KeyError(f"there is no query named {name!r}; there are {[query.name for query in known]}")
        return next((query for query in named if query.status == "running"), named[-1])

    def metrics(self) -> dict[str, Any]:
        """Returns engine-wide metrics.

        * `seconds`: Time since it was started.
        * `queries`, `tasks`: Queries and shared sources that run, and the tasks that they are made of.
        * `workers`: For each worker the tasks that it ran (`runs`), `busy_seconds`, `parked_seconds` without
          work, `parks`, and `overhead_seconds`: all other time.
        * `task_threads`: Threads of tasks, with `mode="threads"`.
        * `scheduling_share`: Time spent on deciding what to run, as a part of the time that tasks ran.
        * `epochs`, `planning_seconds`: How often the policy was asked, and what that took of the
          overhead.
        * `memory`: What memory came to; see `Result.memory`.
        * `process`: `cpu_seconds`, `minor_faults`, `major_faults` and `resident_bytes` of the whole process.

        Returns:
            A dictionary of plain values.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=2, mode="state", budget="64MiB") as engine:
            ...     metrics = engine.metrics()
            >>> metrics["queries"], len(metrics["workers"]), metrics["memory"]["budget_bytes"]
            (0, 2, 67108864)
        """
        return self._native.metrics()

    def stop(self) -> None:
        """Ends all queries, as `Query.stop` does, and the threads of the engine. May be called again.

        It waits for functions that are sinks, but not for threads inside of an iterable of yours: they end
        when it yields the next batch.

        Warns:
            QueryFailedWarning: A query or a shared source had failed, and its error was not read.
            LateRowsWarning: Rows of a query came too late to count, and this was not reported yet.

        Example:
            >>> import penstock as ps
            >>> engine = ps.Engine(workers=1)
            >>> feed = ps.PushSource()
            >>> query = engine.submit(ps.stream({"price": "int64"}), source=feed)
            >>> engine.stop()
            >>> query.status
            'stopped'
        """
        self._stop(warn_above=3)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or not self._native.is_here:
            self._stop(warn_above=3)
        elif self._on_exit == "drain":
            try:
                self._drain()
            finally:  # an interrupt ends the wait, and the engine as well
                self._stop(warn_above=3)
        else:
            waiting = self._waiting()
            self._stop(warn_above=3)
            warn_discarded(waiting, above=2)

    def _listed(self) -> list[Query | SharedSource]:
        self._native.check()
        return self._roster.listed()

    def _drain(self) -> None:
        self._native.drain()
        for query in self._roster.queries():
            query._native.settle()

    def _waiting(self) -> list[Waiting]:
        """Returns what each query and shared source would lose if the engine stopped now."""
        queries = [query._native for query in self.queries]
        return [Waiting(*found) for found in self._native.waiting(queries)]

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Engine cannot be pickled: its threads live in this process")

    def __repr__(self) -> str:
        listed = self._listed()
        table = f"\n{text_overview(listed)}" if listed else ""
        return f"penstock.Engine: {self._summary()}{table}"

    def _repr_html_(self) -> str:
        return html_overview(self._listed(), self._summary())

    def _summary(self) -> str:
        options, running = self._options, len(self.queries)
        workers = (
            "a thread for each task" if options.mode == "threads" else quantity(options.workers, "worker")
        )
        queries = "1 query runs" if running == 1 else f"{running:,} queries run"
        return f"{workers}, policy {options.policy}; {queries}"

    def _stop(self, warn_above: int) -> None:
        self._native.stop()
        for source in self._roster.sources():
            source._native.finish()
        for query in self._roster.queries():
            query._stop(drain=False)  # it has ended; its sink, if that is a function, may not have
        self._roster.tell(above=warn_above + 1)


def _check_on_exit(on_exit: object) -> None:
    if not isinstance(on_exit, str):
        raise TypeError(f"on_exit takes a name, not {type(on_exit).__name__} {on_exit!r}")
    if on_exit not in ("drain", "stop"):
        raise PlanError(f'on_exit is "drain" or "stop", not "{on_exit}"')


_engines: WeakSet[Engine] = WeakSet()


@atexit.register
def _leave() -> None:
    """Stops the engines that are left when the interpreter ends, and warns as leaving their blocks would."""
    for engine in list(_engines):
        if not engine._native.is_here or engine._native.is_stopped:
            continue
        with suppress(Exception):  # no caller is left to catch a warning that is an error
            waiting = engine._waiting()
            engine._native.stop()
            engine._roster.tell(above=1)
            warn_discarded(waiting, above=1)
        engine._native.stop()
    _penstock.leave()
