"""What the methods of a pipeline accept: names and values as users write them; mistakes get a hint."""

from collections.abc import Sequence

from penstock.expr.aggregates import Aggregate
from penstock.expr.expression import Expr, as_expr, col

__all__ = [
    "read_aggregate",
    "read_column",
    "read_expr",
    "read_key",
    "read_keys",
    "read_names",
    "read_predicate",
]


def read_expr(method: str, item: object) -> Expr:
    """Reads an expression or a literal."""
    if isinstance(item, list | tuple):
        raise TypeError(f"{method}() takes its columns one by one: put a * before the {type(item).__name__}")
    if isinstance(item, Aggregate):
        raise TypeError(f"{item!r} needs a window: .window(...).agg({item!r})")
    return as_expr(item)


def read_predicate(method: str, item: object) -> Expr:
    """Reads a boolean expression. A plain bool is refused: it would be the same for every row."""
    if isinstance(item, bool):
        raise TypeError(
            f"{method}() got {item}, which is the same for every row: Python decides `x is None` and `not x` "
            "before the pipeline runs; write x.is_null(), x.is_not_null() or ~x; "
            f"or lit({item}) if that is meant"
        )
    return read_expr(method, item)


def read_column(method: str, item: object) -> Expr:
    """Reads an expression, a literal or the name of a column."""
    return col(item) if isinstance(item, str) else read_expr(method, item)


def read_key(item: object) -> Expr:
    """Reads a column name or an expression. A literal is refused: it would be the same key for every row."""
    if not isinstance(item, str | Expr):
        raise TypeError(
            f"by= takes a column name, an expression or a list of these, not {type(item).__name__}"
        )
    return col(item) if isinstance(item, str) else item


def read_keys(by: object) -> list[Expr]:
    """Reads one key, several, or none."""
    if by is None:
        return []
    if isinstance(by, str) or not isinstance(by, Sequence):
        return [read_key(by)]
    return [read_key(item) for item in by]


def read_names(argument: str, names: object) -> list[str]:
    """Reads one column name, several, or none."""
    if names is None:
        return []
    found: list[str] = []
    for name in names if isinstance(names, Sequence) and not isinstance(names, str) else [names]:
        if not isinstance(name, str):
            raise TypeError(f"{argument}= takes a column name or a list of them, not {type(name).__name__}")
        found.append(name)
    return found


def read_aggregate(item: object) -> Aggregate:
    """Reads an aggregate; nothing else is converted into one."""
    if not isinstance(item, Aggregate):
        raise TypeError(
            f"agg() takes aggregates such as count() or sum(column), not {type(item).__name__} {item!r}"
        )
    return item
