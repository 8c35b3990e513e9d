"""A checksum of a table that does not depend on how its rows are cut into batches, partitions and files.

It is the sum modulo 2^64 of one 64-bit hash per row, of the row's number and its values. A row that is lost,
doubled, changed or out of its place changes it. Everything goes column by column through numpy; strings go in
words of eight bytes, all rows at once.

Values hash by what they are, not by how they are kept: 32 and 64 bits, views and offsets, and dictionaries
give the same. Times hash by their number of units.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["MODULUS", "add_checksums", "checksum"]

MODULUS = 1 << 64
"""Checksums are below it."""

_Words = npt.NDArray[np.uint64]

# Those of splitmix64: odd, with bits all over.
_STEP = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND = np.uint64(0x94D0_49BB_1331_11EB)
# Stands for a null. A value that is the same number is one in 2^64.
_NULL = np.uint64(0xD6E8_FEB8_6659_FD93)
_NAN = np.array(np.nan).view(np.uint64)


def checksum(batch: pa.RecordBatch, first_row: int) -> int:
    """Computes the checksum of some rows of a table.

    Args:
        batch: The rows.
        first_row: The number of the first one in its table.

    Returns:
        The sum of the hashes of the rows. That of the whole table is the sum over its parts.

    Raises:
        TypeError: A column is neither of numbers, truth values, times, text nor bytes.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.spark.checksum import add_checksums, checksum
        >>> whole = pa.record_batch({"n": [1, 2, None], "who": ["a", "", None]})
        >>> parts = [checksum(whole.slice(0, 1), 0), checksum(whole.slice(1), 1)]
        >>> add_checksums(parts) == checksum(whole, 0)
        True
        >>> checksum(whole, 0) == checksum(whole, 1)
        False
    """
    with np.errstate(over="ignore"):
        hashes = _mixed(np.arange(batch.num_rows, dtype=np.uint64) + np.uint64(first_row))
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            _mix_in(hashes, column, name)
        return int(hashes.sum(dtype=np.uint64))


def add_checksums(parts: Iterable[int]) -> int:
    """Computes the checksum of a table from those of its parts.

    Args:
        parts: The checksums, in any order.

    Returns:
        Their sum modulo 2^64.

    Example:
        >>> from penstock.spark.checksum import add_checksums
        >>> add_checksums([2**64 - 1, 3])
        2
    """
    return sum(parts) % MODULUS


def _mixed(words: _Words) -> _Words:
    """Applies the last steps of splitmix64 in place: every bit of a word affects every bit of the result."""
    words += _STEP
    words ^= words >> np.uint64(30)
    words *= _FIRST
    words ^= words >> np.uint64(27)
    words *= _SECOND
    words ^= words >> np.uint64(31)
    return words


def _mix_in(hashes: _Words, column: pa.Array, name: str) -> None:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if _is_text(kind):
        _mix_in_bytes(hashes, column.cast(pa.large_binary()))
    else:
        hashes ^= _words(column, name)
        _mixed(hashes)


def _is_text(kind: pa.DataType) -> bool:
    return any(
        is_kind(kind)
        for is_kind in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
        )
    )


def _words(column: pa.Array, name: str) -> _Words:
    """Returns one word per value: the bits of the number."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _NULL, dtype=np.uint64)
    if pa.types.is_floating(kind):
        numbers = column.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
        words = np.where(np.isnan(numbers), _NAN, numbers.view(np.uint64))
    elif pa.types.is_uint64(kind):
        words = column.fill_null(0).to_numpy(zero_copy_only=False).copy()
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            column = column.view(pa.int32())
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        words = numbers.view(np.uint64).copy()
    else:
        raise TypeError(f"there is no checksum for the column {name!r} of the type {kind}")
    if column.null_count:
        words[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return words


def _mix_in_bytes(hashes: _Words, column: pa.LargeBinaryArray) -> None:
    """Mixes in the length and the bytes of each value, eight bytes at a time, up to the longest value."""
    _, offset_bytes, data = column.buffers()
    rows = len(column)
    if rows == 0:
        return
    offsets = np.frombuffer(offset_bytes, dtype=np.int64)[column.offset : column.offset + rows + 1]
    lengths = np.diff(offsets)
    starts = offsets[:-1]
    first, last = int(offsets[0]), int(offsets[-1])
    # Every byte can be the first of eight: those after the end are 0.
    padded = np.zeros(last - first + 8, dtype=np.uint8)
    if data is not None:
        padded[:-8] = np.frombuffer(data, dtype=np.uint8)[first:last]
    words = np.ndarray(shape=(len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))

    sizes = lengths.astype(np.uint64)
    if column.null_count:
        null = column.is_null().to_numpy(zero_copy_only=False)
        lengths = np.where(null, 0, lengths)
        sizes[null] = _NULL
    hashes ^= sizes
    _mixed(hashes)

    left, place = lengths, starts - first
    live = np.flatnonzero(left > 0)
    while len(live):
        found = words[place[live]]
        short = np.minimum(left[live], 8).astype(np.uint64)
        # The bytes beyond the end of a value belong to the next one.
        found &= np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (np.uint64(64) - np.uint64(8) * short)
        found ^= hashes[live]
        hashes[live] = _mixed(found)
        left, place = left - 8, place + 8
        live = live[left[live] > 0]
