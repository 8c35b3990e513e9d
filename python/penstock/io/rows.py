"""What `Result` and `Batch` have in common: rows in memory, handed out as Arrow, as frames, or as text."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from penstock import _penstock
from penstock.display.tables import html_table, text_table
from penstock.expr._frozen import Frozen

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Rows"]

_SHOWN_IN_REPR = 5
_SHOWN_IN_HTML = 10


class _Native(Protocol):
    """What the native side of rows has."""

    @property
    def schema(self) -> _penstock.Schema: ...
    def to_pylist(self, limit: int | None = None) -> list[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...


class Rows(Frozen):
    """Rows in memory. Anything that reads the Arrow PyCapsule protocol takes them, without a copy.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> from penstock.io.rows import Rows
        >>> rows = ps.stream({"price": "int64"}).run(pa.table({"price": [1, 2]}))
        >>> isinstance(rows, Rows), pa.table(rows).num_rows
        (True, 2)
    """

    __slots__ = ("_native",)

    _native: _Native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports the rows as an Arrow stream; see the Arrow PyCapsule protocol."""
        return self._native.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> "pyarrow.Table":
        """Returns the rows as a `pyarrow.Table`, without a copy.

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
        """Returns the rows as a `pandas.DataFrame`. Needs pyarrow as well.

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
        """Returns the rows as a `polars.DataFrame`, without a copy.

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
        """Returns the rows as dictionaries of Python values. Needs no other package; meant for few rows.

        Args:
            limit: How many rows at most. None is all of them.

        Returns:
            One dictionary per row. What Python's own types cannot hold comes as a whole number: timestamps
            and times in nanoseconds, dates and timestamps far away, and times of day beyond the day.

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
        return self._native.to_pylist(limit)

    def head(self, n: int = 5) -> str:
        """Formats the first rows as a text table. Needs no other package.

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
        return self._native.schema

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        more = len(self) - _SHOWN_IN_REPR
        tail = f"\n... and {_counted(more, 'row')} more" if more > 0 else ""
        return f"penstock.{type(self).__name__}: {self._summary()}\n{self.head(_SHOWN_IN_REPR)}{tail}"

    def _repr_html_(self) -> str:
        first = f", the first {_SHOWN_IN_HTML} shown" if len(self) > _SHOWN_IN_HTML else ""
        schema = self.schema
        return html_table(schema.names, schema.types, self._rows(_SHOWN_IN_HTML), self._summary() + first)

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"a {kind} cannot be pickled: pickle {kind.lower()}.to_arrow() instead")

    def _summary(self) -> str:
        return f"{_counted(len(self), 'row')} of {_counted(len(self.schema), 'column')}"

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
            "are to_pylist() and head(), and whatever reads the Arrow PyCapsule protocol takes the rows.",
            name=package,
        ) from None
