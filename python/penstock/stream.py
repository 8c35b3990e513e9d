"""Pipelines: immutable descriptions of what is to be done with a stream of rows.

Every method gives a new pipeline and leaves the old one as it was, so a common beginning can be shared.
Columns, types and windows are checked as the pipeline is built. Of data, only the tables of `Stream.lookup`
are read then, everything else by `Stream.run`.
"""

import html
import operator
import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Literal, TypeAlias, final

from penstock import _penstock
from penstock._arguments import read_aggregate, read_column, read_expr, read_key, read_schema
from penstock._frozen import Frozen
from penstock.aggregates import Aggregate
from penstock.durations import Duration, normalise_duration
from penstock.exceptions import LateRowsWarning, MissingTimeColumnError
from penstock.expr import Expr, Value
from penstock.options import Chain, Memory, Mode, Policy, Size, read_options
from penstock.protocols import ArrowData, ArrowSchema
from penstock.result import Result
from penstock.sources import open_source
from penstock.windows import Window

__all__ = ["Stream", "WindowedStream", "stream"]

_Keys: TypeAlias = str | Expr | Sequence[str | Expr] | None


def stream(
    schema: ArrowSchema | Mapping[str, str], *, time: str | None = None, delay: Duration = 0
) -> "Stream":
    """Begins a pipeline: declares the columns that its data will have.

    Args:
        schema: The columns: an Arrow schema of any library, or a mapping of names to type names, such as
            `{"event_time": "timestamp[ms]", "ad_id": "int64"}`.
        time: The column that holds the time of each row: a timestamp, a date or whole numbers. Only windows
            need it.
        delay: By how much rows may come out of order: "2s", a timedelta, or a whole number in units of the
            time column. The watermark is the largest time so far minus this; a row whose window ends at or
            before the watermark is late, and is left out and counted.

    Returns:
        The pipeline, which so far gives back the rows it gets.

    Raises:
        UnknownColumnError: The schema has no such time column.
        UnsupportedTypeError: A column has a type that the engine does not process.
        DurationError: The delay is not a duration, or not one that goes with the type of the time column.
        MissingTimeColumnError: There is a delay but no time column.
        TypeError: An argument is of the wrong kind.

    Example:
        >>> import penstock as ps
        >>> events = ps.stream({"at": "timestamp[ms]", "ad_id": "int64"}, time="at", delay="2s")
        >>> events.schema.names
        ['at', 'ad_id']
    """
    if time is not None and not isinstance(time, str):
        raise TypeError(f"time must be the name of a column, not {type(time).__name__}")
    size = normalise_duration(delay, "delay")
    if time is None and size != 0:
        raise MissingTimeColumnError(
            f'delay={delay!r} says how late rows may come, but no column says what is late: add time="..."'
        )
    return Stream(_penstock.Plan.stream(read_schema(schema), time, size))


@final
class Stream(Frozen):
    """A pipeline. Begun by `penstock.stream`, continued by its own methods, run by `run` or an `Engine`.

    It is immutable, can be compared, hashed, pickled and stored as JSON, and prints as its plan.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> from penstock import col
        >>> views = (
        ...     ps.stream({"at": "int64", "kind": "string"}, time="at", delay=5)
        ...     .filter(col("kind") == "view")
        ...     .window(ps.tumbling(10), by="kind")
        ...     .agg(views=ps.count())
        ... )
        >>> views.run(pa.table({"at": [1, 4, 3], "kind": ["view", "click", "view"]})).to_pylist()
        [{'window_start': 0, 'window_end': 10, 'kind': 'view', 'views': 2}]
    """

    __slots__ = ("_plan",)

    _plan: _penstock.Plan

    def __init__(self, plan: _penstock.Plan) -> None:
        if not isinstance(plan, _penstock.Plan):
            raise TypeError("a Stream is not made directly: use penstock.stream(schema, time=...)")
        self._fill(_plan=plan)

    @property
    def schema(self) -> _penstock.Schema:
        """The columns at this point of the pipeline, as an Arrow schema with `names` and `types`.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"a": "int64"}).with_columns(half=ps.col("a") / 2).schema.types
            ['int64', 'float64']
        """
        return self._plan.schema

    @property
    def time(self) -> str | None:
        """The time column, or None if there is none (any more).

        Example:
            >>> import penstock as ps
            >>> ps.stream({"at": "int64"}, time="at").time
            'at'
        """
        return self._plan.time

    def filter(self, *predicates: Expr | bool) -> "Stream":
        """Keeps the rows for which all predicates are true; null is not true.

        Args:
            *predicates: Boolean expressions. All of them are computed for every row; to compute one only
                where another is true, call `filter` twice.

        Returns:
            The longer pipeline.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: A predicate is not boolean, or its types do not go together.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> dear = ps.stream({"price": "int64"}).filter(ps.col("price") > 1, ps.col("price") % 2 == 0)
            >>> dear.run(pa.table({"price": [1, 2, 3, None]})).to_pylist()
            [{'price': 2}]
        """
        for predicate in predicates:
            if isinstance(predicate, str):
                raise TypeError(f"filter() takes expressions: a column is written col({predicate!r})")
        if not predicates:
            return self
        whole = reduce(operator.and_, (read_expr("filter", predicate) for predicate in predicates))
        return Stream(self._plan.filter(whole._native))

    def select(self, /, *exprs: Expr | str, **named: Expr | Value) -> "Stream":
        """Makes rows of these columns only.

        Args:
            *exprs: Column names and expressions.
            **named: Expressions with the names they are to have. A string here is the name of a column, too.

        Returns:
            The longer pipeline. It has a time column as long as the old one is among the columns under its
            own name.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: The types of an expression do not go together.
            PlanError: Two columns would have the same name.

        Example:
            >>> import penstock as ps
            >>> prices = ps.stream({"shop": "string", "price": "int64"})
            >>> prices.select("shop", cents=ps.col("price") * 100).schema.names
            ['shop', 'cents']
        """
        chosen = [read_column("select", item) for item in exprs]
        chosen += [read_column("select", item).alias(name) for name, item in named.items()]
        return Stream(self._plan.select([item._native for item in chosen]))

    def with_columns(self, /, *exprs: Expr, **named: Expr | Value) -> "Stream":
        """Adds columns to the rows, or replaces those that have the same name.

        Args:
            *exprs: Expressions; `alias` gives them a name.
            **named: Expressions with the names they are to have.

        Returns:
            The longer pipeline.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: The types of an expression do not go together.
            PlanError: The time column would be replaced, or two new columns would have the same name.

        Example:
            >>> import penstock as ps
            >>> prices = ps.stream({"shop": "string", "price": "int64"})
            >>> prices.with_columns(cents=ps.col("price") * 100).schema.names
            ['shop', 'price', 'cents']
        """
        for item in (*exprs, *named.values()):
            # `select` reads a string as a column, an operator as a literal: here a reader could not tell.
            if isinstance(item, str):
                raise TypeError(f"with_columns() takes no bare strings: write col({item!r}) or lit({item!r})")
        chosen = [read_expr("with_columns", item) for item in exprs]
        chosen += [read_expr("with_columns", item).alias(name) for name, item in named.items()]
        return Stream(self._plan.with_columns([item._native for item in chosen]))

    def lookup(
        self, table: ArrowData, *, on: str | Sequence[str], how: Literal["inner", "left"] = "inner"
    ) -> "Stream":
        """Adds the columns of the matching row of a table.

        Args:
            table: The table, as any kind of Arrow data. It is read now and becomes part of the pipeline. Each
                key may occur in it once.
            on: The key: a column, or several, that the stream and the table both have. Null matches nothing.
            how: What becomes of a row without a match: "inner" drops it, "left" fills in nulls.

        Returns:
            The longer pipeline, with the columns of the table (other than the key) at the end.

        Raises:
            UnknownColumnError: The stream or the table has no such column.
            TypeMismatchError: The key has different types in the two.
            PlanError: A key occurs twice in the table, or a column of the table has a name that is taken.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> shops = pa.table({"shop": [1, 2], "city": ["Graz", "Linz"]})
            >>> sales = ps.stream({"shop": "int64"}).lookup(shops, on="shop")
            >>> sales.run(pa.table({"shop": [2, 3]})).to_pylist()
            [{'shop': 2, 'city': 'Linz'}]
        """
        keys = [on] if isinstance(on, str) or not isinstance(on, Sequence) else list(on)
        for key in keys:
            if not isinstance(key, str):
                raise TypeError(f"on= takes a column name or a list of them, not {type(key).__name__}")
        return Stream(self._plan.lookup(open_source(table, "table"), keys, how))

    def window(self, window: Window, *, by: _Keys = None) -> "WindowedStream":
        """Cuts the stream into windows of time, and within a window by keys.

        Args:
            window: The windows, as made by `penstock.tumbling`.
            by: The key: a column name, an expression, or a list of these. Null is a key like any other.
                Without it, a window is one group.

        Returns:
            The windows, which `WindowedStream.agg` turns into rows.

        Raises:
            MissingTimeColumnError: The stream has no time column.
            UnknownColumnError: The stream has no such column.
            DurationError: The size of the window is not positive, or does not go with the type of the time
                column.

        Example:
            >>> import penstock as ps
            >>> clicks = ps.stream({"at": "timestamp[ms]", "ad": "int64"}, time="at")
            >>> clicks.window(ps.tumbling("10s"), by="ad").agg(clicks=ps.count()).schema.names
            ['window_start', 'window_end', 'ad', 'clicks']
        """
        if not isinstance(window, Window):
            raise TypeError(
                f"window() takes a window such as tumbling({window!r}), not {type(window).__name__}"
            )
        if by is None:
            keys = []
        elif isinstance(by, str) or not isinstance(by, Sequence):
            keys = [read_key(by)]
        else:
            keys = [read_key(item) for item in by]
        self._plan.check_window(window.size, [key._native for key in keys])
        return WindowedStream(self, window, keys)

    def run(
        self,
        data: ArrowData,
        *,
        memory: Memory | None = None,
        chain: Chain | None = None,
        budget: Size | None = None,
        block_rows: int | None = None,
        chunk_blocks: int | None = None,
        workers: int | None = None,
        policy: Policy | None = None,
        mode: Mode | None = None,
    ) -> Result:
        """Runs the pipeline over data, to its end, and waits for the result. Ctrl-C interrupts it.

        It runs on an engine of its own. To run many pipelines at a time, or one over data that never ends,
        there is `Engine`. The options are for measurements and tight places; none of them changes the answer.
        Each can be set for all runs of a process by a variable of the environment: see `penstock.options`.

        Args:
            data: The rows: any object that speaks the Arrow PyCapsule protocol (a table, a batch, a reader),
                or an iterable of such objects, which is read as it goes. Columns are found by name; others
                are ignored.
            memory: How rows go from task to task: in "blocks" of columns (the default), or one by one through
                a "queue", which is slow, and there to be compared with.
            chain: Which operators make up a task: "auto" (the default) puts together what can run without a
                pause, "off" makes each a task of its own.
            budget: The most memory that the run may take for rows on their way and for windows and lookup
                tables: a size such as "256MiB", or a whole number of bytes. The default is half of the
                machine's memory. The rows of the result are yours and do not count.
            block_rows: Rows per block, from 1 to 65,536. By default a block fits well into the cache.
            chunk_blocks: Blocks per chunk, the piece in which memory is had, from 1 to 65,536.
            workers: Threads that run tasks, from 1 to 64. The default is one, since a pipeline is one task
                and its sink unless `chain` is "off".
            policy: Which task runs next: "adaptive" (the default), "fcfs" or "rr"; see `Engine`.
            mode: Who runs tasks: "state" (the default) for the workers, "threads" for a thread of its own
                for each.

        Returns:
            The output rows and the counters.

        Raises:
            DataError: The data does not fit the pipeline; the subclasses say how.
            ComputeError: An expression has no answer for some row.
            MemoryLimitExceeded: The pipeline needs more memory than its budget.
            PlanError: An option, or its variable, has a value that it cannot have; no row has been read.
            SizeError: The budget is not a size.
            TypeError: This is not Arrow data, or an option is of the wrong kind.

        Warns:
            LateRowsWarning: Rows came after their window had closed.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> batches = (pa.record_batch({"price": [n, n + 1]}) for n in (1, 3))
            >>> ps.stream({"price": "int64"}).run(batches, budget="64MiB").rows_in
            4
        """
        options = read_options(
            workers=workers,
            policy=policy,
            mode=mode,
            memory=memory,
            chain=chain,
            budget=budget,
            block_rows=block_rows,
            chunk_blocks=chunk_blocks,
            usual_workers=1,
        )
        output = self._plan.run(open_source(data, "data"), options)
        if output.rows_late:
            warnings.warn(_late_rows(output), LateRowsWarning, stacklevel=2)
        return Result(output)

    def explain(self) -> str:
        """The plan as text, one operator per line.

        Returns:
            The text, which is also what `print(stream)` shows.

        Example:
            >>> import penstock as ps
            >>> "filter" in ps.stream({"price": "int64"}).filter(ps.col("price") > 1).explain()
            True
        """
        return self._plan.explain()

    def to_json(self) -> str:
        """The whole pipeline as JSON, lookup tables included.

        Returns:
            The text, for `Stream.from_json`.

        Example:
            >>> import penstock as ps
            >>> prices = ps.stream({"price": "int64"})
            >>> ps.Stream.from_json(prices.to_json()) == prices
            True
        """
        return self._plan.to_json()

    @staticmethod
    def from_json(text: str) -> "Stream":
        """Makes a pipeline from the output of `to_json`. It is checked like one that is built by hand.

        Args:
            text: The JSON text. It is data, never code: text from outside can do no worse than raise.

        Returns:
            The pipeline.

        Raises:
            PlanError: The text is not a pipeline.

        Example:
            >>> import penstock as ps
            >>> ps.Stream.from_json(ps.stream({"price": "int64"}).to_json()).schema.names
            ['price']
        """
        return Stream(_penstock.Plan.from_json(text))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self._plan == other._plan

    def __hash__(self) -> int:
        return hash(self._plan)

    def __reduce__(self) -> tuple[object, ...]:
        return Stream.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


@final
class WindowedStream(Frozen):
    """A stream cut into windows, waiting to be told what to compute for each. Made by `Stream.window`.

    Example:
        >>> import penstock as ps
        >>> ps.stream({"at": "int64", "ad": "int64"}, time="at").window(ps.tumbling(10), by="ad")
        penstock.WindowedStream: tumbling(10) by [col("ad")]; .agg(...) makes it a stream again
    """

    __slots__ = ("_keys", "_stream", "_window")

    _stream: Stream
    _window: Window
    _keys: tuple[Expr, ...]

    def __init__(self, stream: Stream, window: Window, keys: Sequence[Expr]) -> None:
        self._fill(_stream=stream, _window=window, _keys=tuple(keys))

    def agg(self, /, *aggregates: Aggregate, **named: Aggregate) -> Stream:
        """Makes one row of each window and key.

        Args:
            *aggregates: Aggregates under their own names, such as "count" or "price_sum"; `alias` changes
                them.
            **named: Aggregates with the names they are to have.

        Returns:
            A pipeline with the columns window_start, window_end, the keys and the aggregates. It has no time
            column.

        Raises:
            UnknownColumnError: The stream has no such column.
            TypeMismatchError: An aggregate does not go with the type of its column.
            PlanError: Two columns would have the same name.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> sales = ps.stream({"at": "int64", "price": "int64"}, time="at").window(ps.tumbling(10))
            >>> totals = sales.agg(ps.count(), total=ps.sum("price"))
            >>> totals.run(pa.table({"at": [1, 2], "price": [5, 6]})).to_pylist()
            [{'window_start': 0, 'window_end': 10, 'count': 2, 'total': 11}]
        """
        chosen = [read_aggregate(item) for item in aggregates]
        chosen += [read_aggregate(item).alias(name) for name, item in named.items()]
        keys = [key._native for key in self._keys]
        plan = self._stream._plan.tumbling(self._window.size, keys, [item._native for item in chosen])
        return Stream(plan)

    def __repr__(self) -> str:
        keys = f" by {list(self._keys)!r}" if self._keys else ""
        return f"penstock.WindowedStream: {self._window!r}{keys}; .agg(...) makes it a stream again"


def _late_rows(output: _penstock.Output) -> str:
    rows = (
        "1 row came after its window"
        if output.rows_late == 1
        else f"{output.rows_late:,} rows came after their windows"
    )
    return (
        f"{rows} had closed and did not count, out of {output.rows_in:,}; the latest lay "
        f"{output.late_by_text} behind the watermark. Raise delay= by as much to count all of them."
    )
