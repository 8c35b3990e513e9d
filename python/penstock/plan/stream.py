"""Pipelines: immutable descriptions of the steps over a stream of rows.

Every method returns a new pipeline and leaves the old one unchanged, so pipelines can share their first
steps. Columns, types and windows are checked as the pipeline is built. Of data, only the tables of
`Stream.lookup` are read then, everything else by `Stream.run`.
"""

import html
from collections.abc import Mapping
from typing import Any, final

from penstock import _penstock
from penstock.io.protocols import ArrowData
from penstock.io.rejecting import OnError
from penstock.io.result import Result
from penstock.plan.columns import ColumnSteps
from penstock.plan.combining import CombiningSteps
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
from penstock.plan.parts import Part
from penstock.plan.running import run_outputs, run_part_of

__all__ = ["Stream"]


@final
class Stream(ColumnSteps, CombiningSteps):
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

    def run(
        self,
        data: ArrowData | Mapping[str, ArrowData],
        *,
        memory: Memory | None = None,
        chain: Chain | None = None,
        budget: Size | None = None,
        block_rows: int | None = None,
        chunk_blocks: int | None = None,
        workers: int | None = None,
        policy: Policy | None = None,
        mode: Mode | None = None,
        on_error: OnError = "fail",
        parallelism: Parallelism = "auto",
        strategy: Strategy = "auto",
    ) -> Result:
        """Runs the pipeline over data, to its end, and waits for the result. Ctrl-C interrupts it.

        It runs on an engine of its own. To run many pipelines at a time, or one over data that never ends,
        there is `Engine`. The options are for measurements and tight places; none of them changes the answer.
        Each can be set for all runs of a process by a variable of the environment: see
        `penstock.plan.options`.

        Args:
            data: The rows: any object that speaks the Arrow PyCapsule protocol (a table, a batch, a reader),
                or an iterable of such objects, which is read as it goes; also an asynchronous one, which is
                read by an event loop of its own, on a thread of its own (`penstock.io.asynchronous`). A
                polars LazyFrame, a pyarrow dataset or scanner, and a `Query` or its results are read as they
                go, too. A list of objects of a dataclass, NamedTuple or pydantic model is a batch of rows
                (with pyarrow). Columns are found by name; others are ignored. A pipeline of several streams
                takes a mapping of their names to such data.
            memory: How rows go from task to task: in "blocks" of columns (the default), or one by one through
                a "queue", which is slow, and there to be compared with.
            chain: Which operators make up a task: "auto" (the default) chains operators that can run without
                a pause, "off" makes each a task of its own.
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
            on_error: What becomes of a row that an operator has no answer for, such as a division by zero:
                "fail" (the default) ends the run with a `ComputeError`; "skip" leaves it out, and counts it
                as `rows_rejected`, or as `rejected_results` where it is a result of a window or of a
                function. A function does the same, and is called with each `Batch` of such rows,
                on a thread of its own: the columns that came to the operator, and "rejected_by" and
                "rejected_because". The same goes for what a stream cannot take: a row whose time is null, or
                further ahead than `max_ahead=`, and a batch that does not have the declared columns; these do
                not move the watermark. A total that overflows always fails the run: no row of it is to blame.
            parallelism: On how many workers one operator may run: "auto" (the default) for as many as there
                are, or a number. `explain` says what comes of it.
            strategy: How such an operator is spread over them. "merge": each worker aggregates the rows that
                it gets, and the partial results are merged when a window closes; for windows directly after a
                source. "exchange": each worker gets the rows of its own keys, which suits many keys. "auto"
                (the default) merges where it can, and else exchanges.

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
        outputs = _penstock.Outputs([("result", self._plan)])
        spreading = read_spreading(parallelism, strategy)
        made = run_outputs(outputs, data, options, on_error=on_error, spreading=spreading, warn_above=3)
        return made["result"]

    def run_part(
        self,
        data: ArrowData | Mapping[str, ArrowData],
        state: bytes | None = None,
        *,
        last: bool = False,
        budget: Size | None = None,
        on_error: OnError = "fail",
    ) -> Part:
        """Runs the pipeline over the next part of its data, and leaves open what is not over yet.

        The results of all parts together are those of one `run` over all of the data, however it is cut:
        windows that event time has closed come out, all others go on in the next part. In between, everything
        that the pipeline knows is in `Part.state`: keep it wherever you like, and go on in another process or
        on another machine. It runs on one worker.

        Args:
            data: The rows of this part, as for `run`. A pipeline of several streams takes a mapping; a stream
                without rows in this part is given as an empty list.
            state: What the part before this one has left, `None` for the first part.
            last: Whether no part follows: everything that is open is closed, as at the end of `run`.
            budget: The most memory that the run may take: see `run`.
            on_error: What becomes of a row that an operator has no answer for: see `run`.

        Returns:
            The result of this part, and the state after it.

        Raises:
            PlanError: The state is damaged, or of another pipeline; or the pipeline goes by the clock
                (`idle_after=`, `close_after=`), which does not advance between parts.
            DataError: The data does not fit the pipeline.
            ComputeError: An expression has no answer for some row. The state before this part is as good as
                it was: correct the data, and run the part again.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> day = ps.stream({"at": "int64"}, time="at").window(ps.tumbling(10)).agg(n=ps.count())
            >>> first = day.run_part(pa.table({"at": [1, 2, 11]}))
            >>> first.result.to_pylist()
            [{'window_start': 0, 'window_end': 10, 'n': 2}]
            >>> day.run_part(pa.table({"at": [12]}), first.state, last=True).result.to_pylist()
            [{'window_start': 10, 'window_end': 20, 'n': 2}]
        """
        if state is not None and not isinstance(state, bytes):
            raise TypeError(f"state is what run_part gave, bytes or None, not {type(state).__name__}")
        outputs = _penstock.Outputs([("result", self._plan)])
        options = read_options(budget=budget, usual_workers=1)
        states = [] if state is None else [state]
        made, after, _ = run_part_of(
            outputs, data, options, states=states, last=last, on_error=on_error, warn_above=3
        )
        return Part(made["result"], after)

    def explain(
        self, workers: int | None = None, strategy: Strategy = "auto", *, physical: bool = False
    ) -> str:
        """Formats the plan as text, one operator per line.

        Args:
            workers: With a number, the text also says how each operator with state would run on so many
                workers, and why.
            strategy: How it would be spread over them: see `Stream.run`.
            physical: Describes the tasks that the plan would run as instead, in the order in which rows pass
                them: what each of them reads, runs and writes. `Query.explain` describes those of a query.

        Returns:
            The text, which is also what `print(stream)` shows.

        Example:
            >>> import penstock as ps
            >>> stream = ps.stream({"price": "int64"}).filter(ps.col("price") > 1)
            >>> "filter" in stream.explain()
            True
            >>> print(stream.explain(physical=True))
            0  filter
               reads     stream "stream": price
               stages    filter
               writes    log 0: price i64? -> 1
            1  sink
               reads     log 0
        """
        outputs = _penstock.Outputs([("result", self._plan)])
        if physical:
            spreading = read_spreading(1 if workers is None else workers, strategy)
            return outputs.explain_physical(read_options(usual_workers=1), spreading)
        if workers is None:
            return self._plan.explain()
        return outputs.explain(read_spreading(workers, strategy))

    def to_json(self) -> str:
        """Serialises the pipeline as JSON, including lookup tables.

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
        return _from_parts, self._plan.to_parts()

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


def _from_parts(text: str, functions: list[tuple[str, Any]]) -> Stream:
    return Stream(_penstock.Plan.from_parts(text, functions))
