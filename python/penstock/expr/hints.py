"""What to write instead of attributes that expressions do not have, but those of other libraries do."""

import difflib

__all__ = ["AGGREGATES", "missing_attribute", "missing_of_expr"]

# Aggregates by the names that other libraries give them.
AGGREGATES = {
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
        >>> from penstock.expr.hints import missing_attribute
        >>> print(missing_attribute([], "apend", "a list", None))
        a list has no 'apend'; did you mean 'append'?
    """
    if hint is None:
        names = [known for known in dir(type(target)) if not known.startswith("_")]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else None
    text = f"{kind} has no {name!r}" + ("" if hint is None else f"; {hint}")
    return AttributeError(text, name=name, obj=target)


def missing_of_expr(expr: object, name: str) -> AttributeError:
    """Makes the error for a method that an `Expr` does not have.

    Args:
        expr: The expression.
        name: What was asked for.

    Returns:
        The error, to be raised.

    Example:
        >>> import penstock as ps
        >>> from penstock.expr.hints import missing_of_expr
        >>> print(missing_of_expr(ps.col("price"), "isin"))
        an expression has no 'isin'; write .is_in([...])
    """
    hint = None if name not in _EXPR else f"write {_EXPR[name]}"
    if name in AGGREGATES:
        made = "count()" if name == "count" else f"{AGGREGATES[name]}(...)"
        hint = (
            "an expression is computed row by row; many rows become one in a window: "
            f".window(tumbling(...), by=...).agg(penstock.{made})"
        )
    for part in ("str", "dt"):
        if hint is None and hasattr(type(getattr(expr, part)), name):
            hint = f"write .{part}.{name}(...)"
    return missing_attribute(expr, name, "an expression", hint)
