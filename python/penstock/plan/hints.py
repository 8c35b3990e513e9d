"""What to write instead of methods that streams do not have, but those of other libraries do."""

from penstock.expr.hints import AGGREGATES, missing_attribute

__all__ = ["missing_of_stream", "missing_of_windowed"]

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


def missing_of_stream(stream: object, name: str) -> AttributeError:
    """Makes the error for a method that a `Stream` does not have.

    Args:
        stream: The stream.
        name: What was asked for.

    Returns:
        The error, to be raised.

    Example:
        >>> import penstock as ps
        >>> from penstock.plan.hints import missing_of_stream
        >>> print(missing_of_stream(ps.stream({"price": "int64"}), "where"))
        a Stream has no 'where'; rows are chosen by .filter(col(...) > 3)
    """
    return missing_attribute(stream, name, "a Stream", _STREAM.get(name))


def missing_of_windowed(windowed: object, name: str, keys: bool = True) -> AttributeError:
    """Makes the error for a method that a `WindowedStream` or a `CoGroupedStream` does not have.

    Args:
        windowed: The stream in windows.
        name: What was asked for.
        keys: Whether it is one stream, whose keys and rows are at hand.

    Returns:
        The error, to be raised.

    Example:
        >>> import penstock as ps
        >>> from penstock.plan.hints import missing_of_windowed
        >>> windowed = ps.stream({"at": "int64"}, time="at").window(ps.tumbling(10))
        >>> print(missing_of_windowed(windowed, "sum"))
        a WindowedStream has no 'sum'; what is computed for each window is said by .agg(sum("..."))
    """
    hint = None
    if name in AGGREGATES:
        made = AGGREGATES[name] + ("()" if name == "count" else '("...")')
        made = made if keys else f'left={{"name": {made}}}'
        hint = f"what is computed for each window is said by .agg({made})"
    elif name in ("group_by", "groupby", "groupBy", "key_by"):
        hint = "the keys of a window are its by=: .window(tumbling(...), by=...)"
    elif keys and name in ("sort", "sort_by", "order_by", "limit", "head"):
        hint = "the first rows of each window come from .top_k(k, by=...)"
    elif not hasattr(type(windowed), name) and (name in _STREAM or name in ("filter", "select", "run")):
        hint = ".agg(...) makes it a stream again"
    return missing_attribute(windowed, name, f"a {type(windowed).__name__}", hint)
