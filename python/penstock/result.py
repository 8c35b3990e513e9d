"""The result of a run: the output rows, and the account of what became of the input rows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, final

from penstock import _penstock
from penstock._frozen import Frozen
from penstock.rendering import html_table, text_table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Result"]

_SHOWN_IN_REPR = 5
_SHOWN_IN_HTML = 10


@final
class Result(Frozen):
    """What `Stream.run` gives back: the output rows in memory, and counters.

    Anything that reads the Arrow PyCapsule protocol takes it as it is, any number of times and without a
    copy: `pyarrow.table(result)`, `polars.DataFrame(result)`, and `Stream.run` as well. The order of rows is
        not promised.

    Every input row is accounted for: `rows_in` is the sum of the rows that contributed to the output,
    `rows_filtered` and `rows_late`.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> ps.stream({"price": "int64"}).filter(ps.col("price") > 1).run(pa.table({"price": [1, 2]}))
        penstock.Result: 1 row of 1 column, from 2 rows (1 filtered, 0 late)
        price
        -----
            2
    """

    __slots__ = ("_output",)

    _output: _penstock.Output

    def __init__(self, output: _penstock.Output) -> None:
        if not isinstance(output, _penstock.Output):
            raise TypeError("a Result is not made directly: it comes from Stream.run(data)")
        self._fill(_output=output)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream; see the Arrow PyCapsule protocol."""
        return self._output.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> "pyarrow.Table":
        """The rows as a `pyarrow.Table`, without a copy.

        Returns:
            The table.

        Raises:
            ModuleNotFoundError: pyarrow is not installed.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]})).to_arrow().num_rows
            2
        """
        return _needed("pyarrow", "to_arrow").table(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a `pandas.DataFrame`. Needs pyarrow as well.

        Returns:
            The frame.

        Raises:
            ModuleNotFoundError: pandas or pyarrow is not installed.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]})).to_pandas().shape
            (2, 1)
        """
        _needed("pandas", "to_pandas")
        frame: pandas.DataFrame = _needed("pyarrow", "to_pandas").table(self).to_pandas()
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a `polars.DataFrame`, without a copy.

        Returns:
            The frame.

        Raises:
            ModuleNotFoundError: polars is not installed.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]})).to_polars().shape
            (2, 1)
        """
        frame: polars.DataFrame = _needed("polars", "to_polars").DataFrame(self)
        return frame

    def to_pylist(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The rows as dictionaries of Python values. Needs no other package; meant for small results.

        Args:
            limit: How many rows at most. None is all of them.

        Returns:
            One dictionary per row. Timestamps and times in nanoseconds, which Python's own types cannot hold,
            are whole numbers.

        Raises:
            ValueError: The limit is negative.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]})).to_pylist(limit=1)
            [{'price': 1}]
        """
        if limit is not None and limit < 0:
            raise ValueError(f"limit must not be negative, but is {limit}")
        return self._output.to_pylist(limit)

    def head(self, n: int = 5) -> str:
        """The first rows as a table of text. Needs no other package.

        Args:
            n: How many rows at most.

        Returns:
            The table, to be printed.

        Raises:
            ValueError: n is negative.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> print(ps.stream({"price": "int64"}).run(pa.table({"price": [1, 20]})).head())
            price
            -----
                1
               20
        """
        return text_table(self.schema.names, self._rows(n))

    @property
    def schema(self) -> _penstock.Schema:
        """The columns of the rows, as an Arrow schema with `names` and `types`.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run([]).schema.names
            ['price']
        """
        return self._output.schema

    @property
    def rows_in(self) -> int:
        """How many rows were read.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]})).rows_in
            2
        """
        return self._output.rows_in

    @property
    def rows_out(self) -> int:
        """How many rows came out; the same as `len(result)`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]})).rows_out
            2
        """
        return self._output.rows_out

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
        return self._output.rows_filtered

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
        return self._output.rows_late

    @property
    def late_by(self) -> str | None:
        """How far the latest of the late rows lay behind the watermark, or None if no row was late.

        A run of the same data with `delay=` raised by this much has no late rows.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> events = ps.stream({"at": "int64"}, time="at", delay=20)
            >>> counts = events.window(ps.tumbling(10)).agg(ps.count())
            >>> print(counts.run(pa.table({"at": [5, 25, 7]})).late_by)
            None
        """
        return self._output.late_by_text

    @property
    def seconds(self) -> float:
        """How long the run took, by the clock.

        Example:
            >>> import penstock as ps
            >>> ps.stream({"price": "int64"}).run([]).seconds >= 0
            True
        """
        return self._output.seconds

    @property
    def memory(self) -> dict[str, int]:
        """What memory came to, as it stood when the run had ended and its streams were gone.

        * `budget_bytes`: How much there might be, as `budget=` said.
        * `peak_used_bytes`, `used_bytes`: How much of it was in use at most, and at the end. It is made up of
          chunks of rows on their way from operator to operator, of `pinned_bytes` and of `state_bytes`.
        * `pinned_bytes`: Text of the input that those rows point into instead of copying it.
        * `state_bytes`: What windows and lookup tables hold.
        * `exported_bytes`: What the rows of this result take, as far as they are handed out without a copy.
          It is no part of `used_bytes`: keep as many results as you like. It goes back to the system when the
          result, and whatever was made of it without a copy, is gone.
        * `chunks_live`, `chunks_spare`, `chunks_pooled`, `chunks_exported`: Chunks in use, those of them that
          wait for their turn, those that wait for anybody, and those behind `exported_bytes`.
        * `chunks_requested`, `background_allocations`: Chunks that were asked for ahead of need, and those
          that were made ready in the background.
        * `inline_allocations`: Chunks that an operator had to wait for. A run that goes on steadily has none.
        * `recycles`, `trims`: Chunks that were used again, and those that went back to the system.
        * `backpressure_ns`: How long operators waited for memory, in nanoseconds.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> result = ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]}), budget="8MiB")
            >>> result.memory["budget_bytes"], result.memory["inline_allocations"]
            (8388608, 0)
        """
        return self._output.memory

    def metrics(self) -> dict[str, Any]:
        """All counters of the run.

        Returns:
            `rows_in`, `rows_contributed`, `rows_filtered`, `rows_late`, `rows_out`, `batches_in`, `late_by`
            (a whole number in units of the time column, or None), `seconds`, `operators`: a dictionary for
            each operator, with `name`, `rows_in`, `rows_out` and `seconds`, and `memory`: that of `memory`.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> dear = ps.stream({"price": "int64"}).filter(ps.col("price") > 1)
            >>> metrics = dear.run(pa.table({"price": [1, 2, 3]})).metrics()
            >>> metrics["rows_in"], metrics["rows_contributed"], metrics["rows_filtered"]
            (3, 2, 1)
        """
        output = self._output
        return {
            "rows_in": output.rows_in,
            "rows_contributed": output.rows_contributed,
            "rows_filtered": output.rows_filtered,
            "rows_late": output.rows_late,
            "rows_out": output.rows_out,
            "batches_in": output.batches_in,
            "late_by": output.late_by,
            "seconds": output.seconds,
            "operators": output.operators,
            "memory": output.memory,
        }

    def __len__(self) -> int:
        return self._output.rows_out

    def __repr__(self) -> str:
        more = len(self) - _SHOWN_IN_REPR
        tail = f"\n... and {_counted(more, 'row')} more" if more > 0 else ""
        return f"penstock.Result: {self._summary()}\n{self.head(_SHOWN_IN_REPR)}{tail}"

    def _repr_html_(self) -> str:
        first = f", the first {_SHOWN_IN_HTML} shown" if len(self) > _SHOWN_IN_HTML else ""
        schema = self.schema
        return html_table(schema.names, schema.types, self._rows(_SHOWN_IN_HTML), self._summary() + first)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Result cannot be pickled: pickle result.to_arrow() instead")

    def _summary(self) -> str:
        return (
            f"{_counted(len(self), 'row')} of {_counted(len(self.schema), 'column')}, "
            f"from {_counted(self.rows_in, 'row')} ({self.rows_filtered:,} filtered, {self.rows_late:,} late)"
        )

    def _rows(self, limit: int) -> list[list[object]]:
        return [list(row.values()) for row in self.to_pylist(limit)]


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _needed(package: str, method: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        # An installed package that fails on an import of its own is another story, told by its own error.
        if error.name != package:
            raise
        raise ModuleNotFoundError(
            f"{method}() needs {package}, which is not installed: pip install {package}. Without it there "
            "are to_pylist() and head(), and whatever reads the Arrow PyCapsule protocol takes the result.",
            name=package,
        ) from None
