"""Generated data: made while it is read, and made again whenever it is read again."""

from collections.abc import Callable
from typing import Any, final

from penstock import _penstock
from penstock._frozen import Frozen

__all__ = ["Generated"]


@final
class Generated(Frozen):
    """A generated data set, for `Stream.run` and for anything else that reads the Arrow PyCapsule protocol.

    It holds the recipe, not the rows: it is small, can be read any number of times, and can be sent to other
    processes.

    Example:
        >>> import penstock as ps
        >>> events = ps.workloads.ysb.generate(1000)
        >>> ps.stream(events.schema).run(events).rows_in
        1000
        >>> ps.stream(events.schema).run(events).rows_in
        1000
    """

    __slots__ = ("_make", "_options", "_schema")

    _make: Callable[..., _penstock.BatchStream]
    _options: dict[str, Any]
    _schema: _penstock.Schema

    def __init__(self, make: Callable[..., _penstock.BatchStream], **options: Any) -> None:
        # A stream that nobody reads costs nothing, and wrong options come to light here rather than at the
        # first read.
        self._fill(_make=make, _options=options, _schema=make(**options).schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream; see the Arrow PyCapsule protocol."""
        return self._make(**self._options).__arrow_c_stream__(requested_schema)

    @property
    def schema(self) -> _penstock.Schema:
        """The columns, as an Arrow schema with `names` and `types`.

        Example:
            >>> import penstock as ps
            >>> ps.workloads.ysb.campaigns().schema.names
            ['ad_id', 'campaign_id']
        """
        return self._schema

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self._make, self._options)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{self._make.__name__}({options})"


def _restore(make: Callable[..., _penstock.BatchStream], options: dict[str, Any]) -> Generated:
    return Generated(make, **options)
