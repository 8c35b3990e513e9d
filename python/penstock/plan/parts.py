"""Data in parts: the result of a part, and the state from which the next part continues."""

from dataclasses import dataclass

from penstock.io.result import Result

__all__ = ["Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """What `Stream.run_part` gives back.

    Attributes:
        result: The rows that this part of the data produced, and its counters.
        state: The state of the pipeline after this part, for the next one. `None` after the last.

    Example:
        >>> import pyarrow as pa
        >>> import penstock as ps
        >>> part = ps.stream({"price": "int64"}).run_part(pa.table({"price": [1, 2]}))
        >>> part.result.rows_in, type(part.state)
        (2, <class 'bytes'>)
    """

    result: Result
    state: bytes | None
