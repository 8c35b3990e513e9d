"""Answers that are wrong by as little as an answer can be."""

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["off_by_one", "with_a_row_twice", "without_a_row"]


def off_by_one(table: pa.Table) -> pa.Table:
    """One more in the last column of numbers of a row in the middle."""
    index = max(index for index, column in enumerate(table.schema) if _is_number(column.type))
    kind = table.schema.field(index).type
    bump = [1 if row == len(table) // 2 else 0 for row in range(len(table))]
    bumped = pc.add(table.column(index), pa.array(bump).cast(kind)).cast(kind)
    return table.set_column(index, table.column_names[index], bumped)


def without_a_row(table: pa.Table) -> pa.Table:
    """All but the row in the middle."""
    return pa.concat_tables([table.slice(0, len(table) // 2), table.slice(len(table) // 2 + 1)])


def with_a_row_twice(table: pa.Table) -> pa.Table:
    """The row in the middle once more."""
    return pa.concat_tables([table, table.slice(len(table) // 2, 1)])


def _is_number(kind: pa.DataType) -> bool:
    return any(is_it(kind) for is_it in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
