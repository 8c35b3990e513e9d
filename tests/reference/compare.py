"""Whether the engine and the reference gave the same answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reference.aggregates import Approximate, sort_key
from reference.types import Value

TOLERANCE = 1e-9
"""How far a float sum may be off, relative to the sum of magnitudes."""


def same(expected: Value, actual: Value) -> bool:
    """Equal values: integers and decimals exactly, NaN equal to NaN, float totals within the tolerance."""
    if isinstance(expected, float) and isinstance(actual, float):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        if isinstance(expected, Approximate) and math.isfinite(expected) and math.isfinite(actual):
            return abs(expected - actual) <= TOLERANCE * expected.magnitude
        return expected == actual
    return type(expected) is type(actual) and expected == actual


def identity(row: Mapping[str, Value], names: Iterable[str]) -> tuple[object, ...]:
    """The given columns of a row as something that can be counted."""
    return tuple((value is None, sort_key(value)) for value in (row[name] for name in names))


def assert_same_rows(
    expected: Sequence[Mapping[str, Value]], actual: Sequence[Mapping[str, Value]], keys: Sequence[str]
) -> None:
    """Both hold the same rows in some order, where `keys` tell rows apart."""
    wanted = Counter(identity(row, keys) for row in expected)
    found = Counter(identity(row, keys) for row in actual)
    assert max(wanted.values(), default=0) <= 1, "the reference rows are not told apart by the keys"
    assert found == wanted, f"missing {wanted - found}, unexpected {found - wanted}"
    by_key = {identity(row, keys): row for row in actual}
    for row in expected:
        other = by_key[identity(row, keys)]
        assert list(other) == list(row), "columns differ"
        different = {name: (row[name], other[name]) for name in row if not same(row[name], other[name])}
        assert not different, f"expected and actual differ in {different}, in row {dict(row)}"


def as_bag(rows: Sequence[Mapping[str, Value]]) -> Counter[tuple[object, ...]]:
    """Rows as a bag, for exact comparisons between two answers of the engine."""
    return Counter(identity(row, list(row)) for row in rows)
