"""The result of a query: the output rows, and the counters that account for every input row."""

from typing import Any, final

from penstock import _penstock
from penstock.io.rows import Rows

__all__ = ["Result"]


@final
class Result(Rows):
    """What `Stream.run` and `Query.result` give back: the output rows in memory, and counters.

    Anything that reads the Arrow PyCapsule protocol takes it as it is, any number of times and without a
    copy: `pyarrow.table(result)`, `polars.DataFrame(result)`, and `Stream.run` as well. The order of rows is
    not promised.

    Every input row is accounted for: `rows_in + rows_copied` is the sum of `rows_contributed`,
    `rows_filtered`, `rows_late`, `rows_shed` and `rows_rejected` of `metrics`.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> ps.stream({"price": "int64"}).filter(ps.col("price") > 1).run(pa.table({"price": [1, 2]}))
        penstock.Result: 1 row of 1 column, from 2 rows (1 filtered, 0 late)
        price
        -----
            2
    """

    __slots__ = ()

    _native: _penstock.Output

    def __init__(self, output: _penstock.Output) -> None:
        if not isinstance(output, _penstock.Output):
            raise TypeError("a Result is not made directly: it comes from Stream.run(data)")
        self._fill(_native=output)

    @property
    def rows_in(self) -> int:
        """How many rows were read.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]})).rows_in
            2
        """
        return self._native.rows_in

    @property
    def rows_out(self) -> int:
        """How many rows came out; the same as `len(result)`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]})).rows_out
            2
        """
        return self._native.rows_out

    @property
    def rows_filtered(self) -> int:
        """How many rows a `filter` turned away, or an inner `lookup` found no match for.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> dear = ps.stream({"price": "int64"}).filter(ps.col("price") > 1)
            >>> dear.run(pa.table({"price": [1, 2, None]})).rows_filtered
            2
        """
        return self._native.rows_filtered

    @property
    def rows_copied(self) -> int:
        """How many rows count once more, because several operators or outputs read the same ones.

        Every row is accounted for: `rows_in + rows_copied` equals `rows_contributed` (rows that reached a
        window or the result) plus `rows_filtered`, `rows_late`, `rows_shed` and `rows_rejected`. Rows that
        the pipeline makes itself, such as the results of windows, are no part of this sum; `late_results`
        and `rejected_results` count those of them that were left out.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> prices = ps.stream({"price": "int64"})
            >>> both = ps.outputs(all=prices, dear=prices.filter(ps.col("price") > 1))
            >>> both.run(pa.table({"price": [1, 2]}))["all"].rows_copied
            2
        """
        return self._native.rows_copied

    @property
    def rows_late(self) -> int:
        """How many rows were left out because they came after their window had closed.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> events = ps.stream({"at": "int64"}, time="at", delay=20)
            >>> counts = events.window(ps.tumbling(10)).agg(ps.count())
            >>> counts.run(pa.table({"at": [5, 25, 7]})).rows_late
            0
        """
        return self._native.rows_late

    @property
    def late_results(self) -> int:
        """How many results of windows or functions arrived after a downstream window had closed.

        They are rows of the pipeline's own making, and so no part of `rows_in`.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run([]).late_results
            0
        """
        return self._native.late_results

    @property
    def rows_shed(self) -> int:
        """How many rows were skipped because the query lagged behind a shared source with `on_lag="shed"`.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run([]).rows_shed
            0
        """
        return self._native.rows_shed

    @property
    def rows_rejected(self) -> int:
        """How many rows were left out because an operator rejected them: see `on_error=`.

        These are rows as they came in. Results that an operator rejects are `rejected_results`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> parts = ps.stream({"n": "int64"}).with_columns(part=10 // ps.col("n"))
            >>> parts.run(pa.table({"n": [0, 5]}), on_error="skip").rows_rejected
            1
        """
        return self._native.rows_rejected

    @property
    def rejected_results(self) -> int:
        """How many results of windows or functions a downstream operator rejected: see `on_error=`.

        They are rows of the pipeline's own making, and so no part of `rows_in`. Late rows that go on by
        `split_late` count here as well: as rows that came in, they are late.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> events = ps.stream({"at": "int64", "n": "int64"}, time="at")
            >>> sums = events.window(ps.tumbling(10)).agg(total=ps.sum("n"))
            >>> parts = sums.with_columns(part=10 // ps.col("total"))
            >>> result = parts.run(pa.table({"at": [1, 12], "n": [0, 5]}), on_error="skip")
            >>> result.rejected_results, result.rows_rejected, result.rows_out
            (1, 0, 1)
        """
        return self._native.rejected_results

    @property
    def late_by(self) -> str | None:
        """How far the latest of the late rows was behind the watermark, or None if no row was late.

        A run of the same data with `delay=` raised by this much has no late rows.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> events = ps.stream({"at": "int64"}, time="at", delay=20)
            >>> counts = events.window(ps.tumbling(10)).agg(ps.count())
            >>> print(counts.run(pa.table({"at": [5, 25, 7]})).late_by)
            None
        """
        return self._native.late_by_text

    @property
    def seconds(self) -> float:
        """How long the run took, by the clock.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run([]).seconds >= 0
            True
        """
        return self._native.seconds

    @property
    def memory(self) -> dict[str, int]:
        """Memory counters, taken when the run had ended and its streams were released.

        The queries of an engine share its memory: there it is that of all of them.

        * `budget_bytes`: How much there might be, as `budget=` said.
        * `peak_used_bytes`, `used_bytes`: How much of it was in use at most, and at the end. It is made up of
          chunks of rows on their way from operator to operator, of `pinned_bytes` and of `state_bytes`.
        * `pinned_bytes`: Text of the input that those rows point into instead of copying it, and copies of
          results that wait to be read.
        * `state_bytes`: What windows and lookup tables hold.
        * `exported_bytes`: What the rows of this result take, as far as they are handed out without a copy.
          It is no part of `used_bytes`: keep as many results as you like. It goes back to the system when the
          result, and whatever was made of it without a copy, is gone.
        * `chunks_live`, `chunks_spare`, `chunks_pooled`, `chunks_exported`: Chunks in use, those reserved for
          a stream, those in the common pool, and those that make up `exported_bytes`.
        * `chunks_requested`, `background_allocations`: Chunks that were asked for ahead of need, and those
          that were made ready in the background.
        * `inline_allocations`: Chunks that an operator had to wait for. A run in steady state has none.
        * `recycles`, `trims`: Chunks that were used again, and those that went back to the system.
        * `backpressure_ns`: How long operators waited for memory, in nanoseconds.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> result = ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]}), budget="8MiB")
            >>> result.memory["budget_bytes"], result.memory["inline_allocations"]
            (8388608, 0)
        """
        return self._native.memory

    def metrics(self) -> dict[str, Any]:
        """Returns all counters of the run.

        Returns:
            `rows_in`, `rows_copied`, `rows_contributed`, `rows_filtered`, `rows_late`,
            `late_results`, `rows_shed`, `rows_rejected`, `rejected_results`, `rows_out`, `batches_in`,
            `late_by` (a whole number in units of the time column, or None), `seconds`, `event_latency` and
            `output_latency`: see `Query.metrics`, `operators`: a dictionary for each operator, with `name`,
            `rows_in`, `rows_out`, `runs` and `seconds`, and `memory`: that of `memory`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> dear = ps.stream({"price": "int64"}).filter(ps.col("price") > 1)
            >>> metrics = dear.run(pa.table({"price": [1, 2, 3]})).metrics()
            >>> metrics["rows_in"], metrics["rows_contributed"], metrics["rows_filtered"]
            (3, 2, 1)
        """
        output = self._native
        return {
            "rows_in": output.rows_in,
            "rows_copied": output.rows_copied,
            "rows_contributed": output.rows_contributed,
            "rows_filtered": output.rows_filtered,
            "rows_late": output.rows_late,
            "late_results": output.late_results,
            "rows_shed": output.rows_shed,
            "rows_rejected": output.rows_rejected,
            "rejected_results": output.rejected_results,
            "rows_out": output.rows_out,
            "batches_in": output.batches_in,
            "late_by": output.late_by,
            "seconds": output.seconds,
            "event_latency": output.event_latency,
            "output_latency": output.output_latency,
            "operators": output.operators,
            "memory": output.memory,
        }

    def _summary(self) -> str:
        rows_in = f"{self.rows_in:,} row" + ("" if self.rows_in == 1 else "s")
        lost = f"{self.rows_filtered:,} filtered, {self.rows_late:,} late"
        shed = f", {self.rows_shed:,} shed" if self.rows_shed else ""
        shed += f", {self.rows_rejected:,} rejected" if self.rows_rejected else ""
        shed += f", {self.rejected_results:,} results rejected" if self.rejected_results else ""
        return f"{super()._summary()}, from {rows_in} ({lost}{shed})"
