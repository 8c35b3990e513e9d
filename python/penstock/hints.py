"""What to write instead, for what people try because other libraries have it."""

import difflib
import re
from collections.abc import Mapping

__all__ = ["comparison_hint", "missing_attribute", "missing_of_expr", "missing_of_stream"]

_WINDOW = "rows are grouped by window and key: .window(tumbling(...), by=...).agg(count())"
_FILTER = "rows are chosen by .filter(col(...) > 3)"
_COLUMNS = "columns are computed by .with_columns(name=col(...) * 2)"
_RUN = "a pipeline is run by .run(data), or submitted to an Engine"
_SORT = (
    "a stream has no end to sort up to; the first rows of each window come from .window(...).top_k(k, by=...)"
)
_STREAM = {
    "group_by": _WINDOW,
    "groupby": _WINDOW,
    "groupBy": _WINDOW,
    "key_by": _WINDOW,
    "agg": _WINDOW,
    "aggregate": _WINDOW,
    "reduce": _WINDOW,
    "count": _WINDOW,
    "sum": _WINDOW,
    "mean": _WINDOW,
    "min": _WINDOW,
    "max": _WINDOW,
    "where": _FILTER,
    "query": _FILTER,
    "dropna": "rows with nulls are left out by .filter(col(...).is_not_null())",
    "drop_nulls": "rows with nulls are left out by .filter(col(...).is_not_null())",
    "with_column": _COLUMNS,
    "withColumn": _COLUMNS,
    "assign": _COLUMNS,
    "map": ".map_batches(function) calls a function with whole batches",
    "map_rows": ".map_batches(function) calls a function with whole batches",
    "apply": ".map_batches(function) calls a function with whole batches",
    "flat_map": ".map_batches(function) calls a function with whole batches",
    "merge": ".join(other, window=..., on=...) joins streams, .lookup(table, on=...) a table",
    "concat": ".union(other) puts streams together",
    "sort": _SORT,
    "sort_by": _SORT,
    "order_by": _SORT,
    "limit": _SORT,
    "top_k": _SORT,
    "collect": _RUN,
    "execute": _RUN,
    "compute": _RUN,
    "start": _RUN,
    "to_pandas": f"{_RUN}; its result has .to_pandas()",
    "to_polars": f"{_RUN}; its result has .to_polars()",
    "to_arrow": f"{_RUN}; its result has .to_arrow()",
    "head": f"{_RUN}; its result has .head()",
    "columns": "the names of its columns are .schema.names",
    "dtypes": "the types of its columns are .schema.types",
}
_AGGREGATES = {
    "sum": "sum", "count": "count", "mean": "mean", "avg": "mean", "min": "min", "max": "max", "std": "std",
    "var": "var", "first": "first", "last": "last", "n_unique": "count_distinct",
    "nunique": "count_distinct", "count_distinct": "count_distinct",
}  # fmt: skip
_EXPR = {
    "isin": ".is_in([...])",
    "isnull": ".is_null()",
    "isna": ".is_null()",
    "notnull": ".is_not_null()",
    "notna": ".is_not_null()",
    "fillna": ".fill_null(value)",
    "astype": '.cast("int64")',
    "eq": "== value",
    "ne": "!= value",
    "gt": "> value",
    "lt": "< value",
    "contains": ".str.contains(text)",
    "startswith": ".str.starts_with(text)",
    "endswith": ".str.ends_with(text)",
}


def missing_attribute(target: object, name: str, kind: str, hint: str | None) -> AttributeError:
    """Makes the error for an attribute that is not there.

    Args:
        target: Whose attribute it would be.
        name: What was asked for.
        kind: What the thing is called.
        hint: What to write instead; by default the closest name, if there is one.

    Returns:
        The error, to be raised.

    Example:
        >>> from penstock.hints import missing_attribute
        >>> print(missing_attribute([], "apend", "a list", None))
        a list has no 'apend'; did you mean 'append'?
    """
    if hint is None:
        names = [known for known in dir(type(target)) if not known.startswith("_")]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else None
    text = f"{kind} has no {name!r}" + ("" if hint is None else f"; {hint}")
    return AttributeError(text, name=name, obj=target)


def missing_of_stream(stream: object, name: str) -> AttributeError:
    """Makes the error for a method that a `Stream` does not have.

    Args:
        stream: The stream.
        name: What was asked for.

    Returns:
        The error, to be raised.

    Example:
        >>> import penstock as ps
        >>> from penstock.hints import missing_of_stream
        >>> print(missing_of_stream(ps.stream({"price": "int64"}), "where"))
        a Stream has no 'where'; rows are chosen by .filter(col(...) > 3)
    """
    return missing_attribute(stream, name, "a Stream", _STREAM.get(name))


def missing_of_expr(expr: object, name: str) -> AttributeError:
    """Makes the error for a method that an `Expr` does not have.

    Args:
        expr: The expression.
        name: What was asked for.

    Returns:
        The error, to be raised.

    Example:
        >>> import penstock as ps
        >>> from penstock.hints import missing_of_expr
        >>> print(missing_of_expr(ps.col("price"), "isin"))
        an expression has no 'isin'; write .is_in([...])
    """
    hint = None if name not in _EXPR else f"write {_EXPR[name]}"
    if name in _AGGREGATES:
        made = "count()" if name == "count" else f"{_AGGREGATES[name]}(...)"
        hint = (
            "an expression is computed row by row; many rows become one in a window: "
            f".window(tumbling(...), by=...).agg(penstock.{made})"
        )
    for part in ("str", "dt"):
        if hint is None and hasattr(type(getattr(expr, part)), name):
            hint = f"write .{part}.{name}(...)"
    return missing_attribute(expr, name, "an expression", hint)


def comparison_hint(text: str, columns: Mapping[str, object] | list[str]) -> str:
    """Says how a predicate that was written as text is written as an expression.

    Args:
        text: What was written, such as "price > 3".
        columns: The columns of the stream.

    Returns:
        What to write instead.

    Example:
        >>> from penstock.hints import comparison_hint
        >>> comparison_hint("price > 3", ["price"])
        'write col("price") > 3'
    """
    found = re.fullmatch(r"\s*(\w+)\s*(==|!=|<=|>=|=|<|>)\s*(.+?)\s*", text)
    if found is not None and found[1] in columns:
        sign = "==" if found[2] == "=" else found[2]
        return f'write col("{found[1]}") {sign} {found[3]}'
    if text in columns:
        return f'a column is written col("{text}")'
    return 'a predicate is written with col("..."), as in col("price") > 3'
