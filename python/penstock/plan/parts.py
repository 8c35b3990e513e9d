"""Data in parts: a pipeline that goes on where it stopped."""

from dataclasses import dataclass

from penstock.io.result import Result

__all__ = ["Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """What `Stream.run_part` gives back.

    Attributes:
        result: The rows that this part of the data has brought out, and its counters.
        state: What the pipeline knows behind this part: give it to the next one. `None` behind the last.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> part = ps.stream({"price": "int64"}).run_part(pa.table({"price": [1, 2]}))
        >>> part.result.rows_in, type(part.state)
        (2, <class 'bytes'>)
    """

    result: Result
    state: bytes | None
