"""Generated data: made while it is read, and made again whenever it is read again."""

from collections.abc import Callable, Mapping
from typing import Any, final

from penstock import _penstock
from penstock.expr._frozen import Frozen

__all__ = ["Generated", "generate_table"]


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

    __slots__ = ("_arguments", "_make", "_schema")

    _arguments: dict[str, Any]
    _make: Callable[..., _penstock.BatchStream]
    _schema: _penstock.Schema

    def __init__(self, make: Callable[..., _penstock.BatchStream], **arguments: Any) -> None:
        # An unread stream costs nothing, and wrong options are reported here rather than at the first read.
        self._fill(_make=make, _arguments=arguments, _schema=make(**arguments).schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports the rows as an Arrow stream; see the Arrow PyCapsule protocol."""
        return self._make(**self._arguments).__arrow_c_stream__(requested_schema)

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
        return _restore, (self._make, self._arguments)

    def __repr__(self) -> str:
        if self._make is _penstock.workload:
            return _described(**self._arguments)
        return _call(self._make.__name__, self._arguments)


def generate_table(
    name: str, table: str, rows: int | None, seed: int, start: int, batch_rows: int, **options: float
) -> Generated:
    """Generates rows `[start, start + rows)` of a table, or all from `start` on if it has an end.

    Args:
        name: The workload.
        table: The table.
        rows: How many rows; None for all that there are.
        seed: Which data set.
        start: The number of the first row.
        batch_rows: Rows per Arrow batch. It has no influence on the rows.
        **options: What else the generator can be told.

    Returns:
        The data, to be read any number of times.

    Raises:
        ValueError: There is no such table, or an option is out of bounds.

    Example:
        >>> from penstock.workloads.generated import generate_table
        >>> generate_table("me", "readings", 10, seed=7, start=0, batch_rows=10, rate=100)
        me.readings(rows=10, seed=7, rate=100)
    """
    return Generated(
        _penstock.workload,
        name=name,
        table=table,
        rows=rows,
        seed=seed,
        start=start,
        batch_rows=batch_rows,
        options=options,
    )


def _described(
    name: str,
    table: str,
    rows: int | None,
    seed: int,
    start: int,
    batch_rows: int,
    options: Mapping[str, Any],
) -> str:
    """Formats the table of a workload with its non-default options. Batches do not affect the rows."""
    usual = {"start": 0, **_penstock.workload_options(name, table)}
    chosen = {"start": start, **options}
    unusual = {option: value for option, value in chosen.items() if value != usual[option]}
    return _call(f"{name}.{table}", {"rows": rows, "seed": seed, **unusual})


def _call(name: str, arguments: Mapping[str, object]) -> str:
    return f"{name}({', '.join(f'{argument}={value!r}' for argument, value in arguments.items())})"


def _restore(make: Callable[..., _penstock.BatchStream], arguments: dict[str, Any]) -> Generated:
    return Generated(make, **arguments)
