"""A source that several queries read, each at its own pace, from one copy of the rows."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final
from weakref import ReferenceType, ref

from penstock import _penstock
from penstock.display.overview import html_overview, text_overview
from penstock.expr._frozen import Frozen
from penstock.plan.stream import Stream

if TYPE_CHECKING:
    from penstock.engine.query import Query

__all__ = ["OnLag", "SharedSource"]

OnLag: TypeAlias = Literal["wait", "fail", "shed"]


@final
class SharedSource(Frozen):
    """A source that queries share. Made by `Engine.source`.

    Its rows are read once, whatever the number of queries. A query starts at the rows that come next. The
    source waits for its slowest query, unless that was submitted with `on_lag="fail"` or `"shed"`.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> prices = ps.stream({"price": "int64"})
        >>> with ps.Engine(workers=1) as engine:
        ...     source = engine.source(prices, pa.table({"price": [1, 2, 3]}), hold=True)
        ...     dear = engine.submit(source.stream.filter(ps.col("price") > 1), source=source, sink="collect")
        ...     all_of_them = engine.submit(source.stream, source=source, sink="collect")
        ...     source.start()
        ...     len(dear.result()), len(all_of_them.result())
        (2, 3)
    """

    __slots__ = ("__weakref__", "_native", "_reads")

    _native: _penstock.SharedSource
    # The query whose results it reads, which the engine keeps while it runs.
    _reads: "tuple[ReferenceType[Query], ...]"

    def __init__(self, native: _penstock.SharedSource, reads: "Iterable[Query]" = ()) -> None:
        if not isinstance(native, _penstock.SharedSource):
            raise TypeError("a SharedSource is not made directly: use engine.source(stream, data)")
        self._fill(_native=native, _reads=tuple(ref(query) for query in reads))

    def _queries(self) -> "list[Query]":
        """Returns the query whose results it reads, if there is one."""
        return [query for query in (weak() for weak in self._reads) if query is not None]

    @property
    def name(self) -> str:
        """Its name, which no other query or source of the engine has while it runs.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     engine.source({"price": "int64"}, feed, name="prices").name
            'prices'
        """
        return self._native.name

    @property
    def stream(self) -> Stream:
        """The pipeline that does nothing but read it; the beginning of those that do more.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     engine.source({"price": "int64"}, feed).stream.schema.names
            ['price']
        """
        return Stream(self._native.plan)

    @property
    def status(self) -> str:
        """What it is doing: "running", "finished", "failed" or "stopped".

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     engine.source({"price": "int64"}, feed).status
            'running'
        """
        return self._native.status

    @property
    def error(self) -> Exception | None:
        """Why it has failed, or None if it has not.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     print(engine.source({"price": "int64"}, feed).error)
            None
        """
        return self._native.error

    def start(self) -> None:
        """Lets rows come, if it was made with `hold=True`. Does nothing if they come already.

        Example:
            >>> import pyarrow as pa
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     source = engine.source({"price": "int64"}, pa.table({"price": [1]}), hold=True)
            ...     query = engine.submit(source.stream, source=source, sink="collect")
            ...     source.start()
            ...     query.result().rows_in
            1
        """
        self._native.start()

    def close(self) -> None:
        """Ends the source at its current position: its queries close their windows and finish.

        Batches that were pushed, or given by an iterable, are processed; a `PushSource` refuses what is
        pushed from now on. A replay ends in the middle of a batch.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     source = engine.source({"price": "int64"}, feed)
            ...     query = engine.submit(source.stream, source=source)
            ...     source.close()
            ...     query.wait(), query.status
            (True, 'finished')
        """
        self._native.close()

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the source.

        Returns:
            The same as `Query.metrics`. `blocked_by` is the query that the source waits for, if it does.

        Example:
            >>> import penstock as ps
            >>> with ps.Engine(workers=1) as engine:
            ...     feed = ps.PushSource()
            ...     engine.source({"price": "int64"}, feed).metrics()["rows_in"]
            0
        """
        return self._native.metrics()

    def __repr__(self) -> str:
        return f'penstock.SharedSource "{self.name}": {self.status}\n{text_overview([self])}'

    def _repr_html_(self) -> str:
        return html_overview([self], f'shared source "{self.name}": {self.status}')
