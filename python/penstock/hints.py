"""What to write instead, for what people try because other libraries have it."""

import difflib

__all__ = [
    "missing_attribute",
    "missing_of_expr",
    "missing_of_query",
    "missing_of_stream",
    "missing_of_windowed",
]

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


_COLLECTED = 'the results of a query that was submitted with sink="collect" are .result()'
_QUERY = {
    "collect": _COLLECTED,
    "to_arrow": f"{_COLLECTED}.to_arrow()",
    "to_pandas": f"{_COLLECTED}.to_pandas()",
    "to_polars": f"{_COLLECTED}.to_polars()",
    "to_pylist": f"{_COLLECTED}.to_pylist()",
    "to_table": f"{_COLLECTED}.to_arrow()",
    "head": f"{_COLLECTED}.head()",
    "fetchall": f"{_COLLECTED}.to_pylist()",
    "rows_in": 'its counters are .metrics()["rows_in"]',
    "rows_out": 'its counters are .metrics()["rows_out"]',
    "cancel": ".stop() ends it, and .stop(drain=True) behind what it has taken in",
    "close": ".stop() ends it, and .stop(drain=True) behind what it has taken in",
    "kill": ".stop() ends it",
    "join": ".wait() waits until it has ended",
    "is_alive": 'whether it runs is .status == "running"',
    "awaitTermination": ".wait() waits until it has ended",
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
        >>> from penstock.hints import missing_of_windowed
        >>> windowed = ps.stream({"at": "int64"}, time="at").window(ps.tumbling(10))
        >>> print(missing_of_windowed(windowed, "sum"))
        a WindowedStream has no 'sum'; what is computed for each window is said by .agg(sum("..."))
    """
    hint = None
    if name in _AGGREGATES:
        made = _AGGREGATES[name] + ("()" if name == "count" else '("...")')
        made = made if keys else f'left={{"name": {made}}}'
        hint = f"what is computed for each window is said by .agg({made})"
    elif name in ("group_by", "groupby", "groupBy", "key_by"):
        hint = "the keys of a window are its by=: .window(tumbling(...), by=...)"
    elif keys and name in ("sort", "sort_by", "order_by", "limit", "head"):
        hint = "the first rows of each window come from .top_k(k, by=...)"
    elif not hasattr(type(windowed), name) and (name in _STREAM or name in ("filter", "select", "run")):
        hint = ".agg(...) makes it a stream again"
    return missing_attribute(windowed, name, f"a {type(windowed).__name__}", hint)


def missing_of_query(query: object, name: str) -> AttributeError:
    """Makes the error for a method that a `Query` does not have.

    Args:
        query: The query.
        name: What was asked for.

    Returns:
        The error, to be raised.

    Example:
        >>> import penstock as ps
        >>> from penstock.hints import missing_of_query
        >>> with ps.Engine(workers=1) as engine:
        ...     print(missing_of_query(engine.submit(ps.stream({"n": "int64"}), source=[]), "join"))
        a Query has no 'join'; .wait() waits until it has ended
    """
    return missing_attribute(query, name, "a Query", _QUERY.get(name))
