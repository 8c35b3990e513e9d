"""What to write instead of methods that queries do not have, but those of other libraries do."""

from penstock.expr.hints import missing_attribute

__all__ = ["missing_of_query"]

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


def missing_of_query(query: object, name: str) -> AttributeError:
    """Makes the error for a method that a `Query` does not have.

    Args:
        query: The query.
        name: What was asked for.

    Returns:
        The error, to be raised.

    Example:
        >>> import penstock as ps
        >>> from penstock.engine.hints import missing_of_query
        >>> with ps.Engine(workers=1) as engine:
        ...     print(missing_of_query(engine.submit(ps.stream({"n": "int64"}), source=[]), "join"))
        a Query has no 'join'; .wait() waits until it has ended
    """
    return missing_attribute(query, name, "a Query", _QUERY.get(name))
