"""Expressions, and aggregates over them: what a pipeline computes from the columns of its rows.

`Expr` combines literals (`literals`), operators (`operators`) and functions (`strings`, `temporal`,
`conditional`). This is the lowest package, so it also holds durations, and `Frozen`, the base class of all
public objects.
"""

from penstock.expr.aggregates import (
    Aggregate,
    count,
    count_distinct,
    first,
    last,
    max,
    mean,
    min,
    std,
    sum,
    var,
)
from penstock.expr.conditional import Then, When, coalesce, when
from penstock.expr.durations import Duration
from penstock.expr.expression import Expr, as_expr, col, lit
from penstock.expr.literals import Value

__all__ = [
    "Aggregate",
    "Duration",
    "Expr",
    "Then",
    "Value",
    "When",
    "as_expr",
    "coalesce",
    "col",
    "count",
    "count_distinct",
    "first",
    "last",
    "lit",
    "max",
    "mean",
    "min",
    "std",
    "sum",
    "var",
    "when",
]
