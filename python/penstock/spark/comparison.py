"""Compares two results row by row, and says what is missing, extra or different."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from penstock.spark.types import in_spark_types, spark_schema

__all__ = ["ColumnsDifferError", "Comparison", "as_frame", "compare"]

_EXAMPLES = 5
_FLOATS = {"float", "double"}


class ColumnsDifferError(ValueError):
    """Two results that cannot be compared row by row: they have other columns.

    Example:
        >>> from penstock.spark.comparison import ColumnsDifferError
        >>> issubclass(ColumnsDifferError, ValueError)
        True
    """


@dataclass(frozen=True)
class Comparison:
    """How two results differ. Each row is counted once.

    Attributes:
        equal: Rows that both sides have, with the same values.
        missing: Rows that only the expected side has.
        extra: Rows that only the actual side has; also a second row for a key that should have one.
        different: Keys that both sides have, with other values.
        examples: Up to five rows of each kind of difference, as text.

    Example:
        >>> from penstock.spark.comparison import Comparison
        >>> Comparison(equal=3, missing=0, extra=0, different=0).ok
        True
    """

    equal: int
    missing: int
    extra: int
    different: int
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are on either side; two with the same key count once.

        Example:
            >>> from penstock.spark.comparison import Comparison
            >>> Comparison(equal=3, missing=2, extra=0, different=1).rows
            6
        """
        return self.equal + self.missing + self.extra + self.different

    @property
    def ok(self) -> bool:
        """Whether the two sides are the same.

        Example:
            >>> from penstock.spark.comparison import Comparison
            >>> Comparison(equal=3, missing=0, extra=0, different=1).ok
            False
        """
        return not (self.missing or self.extra or self.different)

    def report(self) -> str:
        """Formats the verdict, then the differences with examples.

        Returns:
            One line when the two sides are the same, more when they are not.

        Example:
            >>> from penstock.spark.comparison import Comparison
            >>> print(Comparison(equal=3, missing=0, extra=0, different=0).report())
            validated: 3 of 3 rows equal
            >>> print(Comparison(2, 1, 0, 0, {"missing": ["campaign_id=7 views=4"]}).report())
            NOT EQUAL: 2 of 3 rows equal
              missing: 1
                campaign_id=7 views=4
        """
        verdict = "validated" if self.ok else "NOT EQUAL"
        lines = [f"{verdict}: {self.equal:,} of {self.rows:,} rows equal"]
        for kind in ("missing", "extra", "different"):
            count = getattr(self, kind)
            if count:
                lines.append(f"  {kind}: {count:,}")
                lines += [f"    {example}" for example in self.examples.get(kind, [])]
        return "\n".join(lines)


def compare(expected: DataFrame, actual: object, keys: Sequence[str], tolerance: float = 0.0) -> Comparison:
    """Compares two results row by row: a full outer join on the keys, then every other column.

    Rows of one key are paired by the order of their values.

    Args:
        expected: What the answer must be.
        actual: What came out: a DataFrame or anything that speaks Arrow. The order of its columns does not
            matter, and neither does the unit of a timestamp.
        keys: The columns that tell one row from another. Nulls are equal to each other.
        tolerance: By how much floats outside the keys may differ, as a share of the larger one: the sum of
            floats depends on the order of the additions. Nulls, NaN and infinities are equal to themselves
            only.

    Returns:
        The counts, with examples of what differs.

    Raises:
        ColumnsDifferError: The two sides do not have the same columns with the same types.
        ValueError: The keys are no columns, or the tolerance is not between 0 and 1.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.spark import compare, session
        >>> expected = session().createDataFrame(pa.table({"key": [1, 2], "n": [10, 20]}))
        >>> comparison = compare(expected, pa.table({"key": [1, 2], "n": [10, 21]}), keys=["key"])
        >>> print(comparison.report())
        NOT EQUAL: 1 of 2 rows equal
          different: 1
            key=2 n=20, found n=21
        >>> third = session().createDataFrame(pa.table({"key": [1], "mean": [1 / 3]}))
        >>> compare(third, pa.table({"key": [1], "mean": [0.3333333333]}), ["key"], tolerance=1e-9).ok
        True
    """
    found = as_frame(expected.sparkSession, actual)
    _check_columns(expected, found, keys)
    if not 0 <= tolerance < 1:
        raise ValueError(f"tolerance must be at least 0 and less than 1, not {tolerance}")
    values = [name for name in expected.columns if name not in keys]
    near = [name for name, kind in expected.dtypes if tolerance and kind in _FLOATS and name in values]
    left, right = (
        frame.alias(side) for side, frame in _numbered(expected, found, keys, near, tolerance).items()
    )
    same_key = _all(F.col(f"expected.{name}").eqNullSafe(F.col(f"found.{name}")) for name in [*keys, "_copy"])
    same_values = _all(
        _is_same(F.col(f"expected.{name}"), F.col(f"found.{name}"), tolerance if name in near else 0.0)
        for name in values
    )
    kind = (
        F.when(F.col("found._copy").isNull(), "missing")
        .when(F.col("expected._copy").isNull(), "extra")
        .when(same_values, "equal")
        .otherwise("different")
    )
    joined = left.join(right, on=same_key, how="full_outer").select(
        kind.alias("kind"),
        *(F.coalesce(f"expected.{name}", f"found.{name}").alias(f"key_{name}") for name in keys),
        *(F.col(f"expected.{name}").alias(f"expected_{name}") for name in values),
        *(F.col(f"found.{name}").alias(f"found_{name}") for name in values),
    )
    joined = joined.cache()
    try:
        counts = {
            row["kind"]: row["n"] for row in joined.groupBy("kind").agg(F.count("*").alias("n")).collect()
        }
        examples = {
            name: [
                _describe(row, name, keys, values)
                for row in joined.where(F.col("kind") == name)
                .orderBy(*(f"key_{key}" for key in keys))
                .limit(_EXAMPLES)
                .collect()
            ]
            for name in ("missing", "extra", "different")
            if counts.get(name)
        }
    finally:
        joined.unpersist()
    return Comparison(
        equal=counts.get("equal", 0),
        missing=counts.get("missing", 0),
        extra=counts.get("extra", 0),
        different=counts.get("different", 0),
        examples=examples,
    )


def as_frame(spark: SparkSession, data: object) -> DataFrame:
    """Returns a DataFrame unchanged, and any Arrow data as a DataFrame.

    Timestamps without a time zone stay without one, and are read in microseconds, the unit of Spark; unsigned
    integers get the next wider type.

    Args:
        spark: The session.
        data: A DataFrame, or anything that speaks the Arrow PyCapsule protocol.

    Returns:
        The DataFrame.

    Example:
        >>> import pyarrow as pa
        >>> from penstock.spark import session
        >>> from penstock.spark.comparison import as_frame
        >>> times = pa.table({"at": pa.array([0], pa.timestamp("ms"))})
        >>> as_frame(session(), times).dtypes
        [('at', 'timestamp_ntz')]
    """
    if isinstance(data, DataFrame):
        return data
    # PySpark deals chunks out to partitions, and where the first one of a partition has no rows it loses the
    # others.
    table = pa.table(data).combine_chunks()
    return spark.createDataFrame(in_spark_types(table), schema=spark_schema(table.schema))


def _check_columns(expected: DataFrame, found: DataFrame, keys: Sequence[str]) -> None:
    wanted, given = dict(expected.dtypes), dict(found.dtypes)
    if wanted != given:
        raise ColumnsDifferError(f"the columns differ: expected {wanted}, found {given}")
    unknown = [key for key in keys if key not in wanted]
    if unknown or not keys:
        raise ValueError(f"keys must be some of {list(wanted)}, not {list(keys)}")


def _is_same(left: Column, right: Column, tolerance: float) -> Column:
    """Tests whether two values are the same; never null."""
    same = left.eqNullSafe(right)
    if not tolerance:
        return same
    left, right = left.cast("double"), right.cast("double")
    largest = F.greatest(F.abs(left), F.abs(right))
    # To Spark, NaN is equal to itself and greater than infinity: below it are the finite numbers only.
    is_near = (largest < math.inf) & (F.abs(left - right) <= largest * tolerance)
    return same | F.coalesce(is_near, F.lit(False))


def _numbered(
    expected: DataFrame, found: DataFrame, keys: Sequence[str], near: Sequence[str], tolerance: float
) -> dict[str, DataFrame]:
    """Numbers the rows of one key, so that a second row for it finds no partner instead of sharing one.

    They are numbered by their values: the exact ones first, then those of the columns `near`. With one such
    column that pairs all rows that can be paired. With several, the first would decide by differences that do
    not count, and so numbers that are near each other on either side count as one.
    """
    columns = expected.columns
    exact = [name for name in columns if name not in near and name not in keys]
    sides = {"expected": expected.select(*columns), "found": found.select(*columns)}
    blurred: list[str] = []
    if len(near) > 1:
        both = reduce(
            DataFrame.unionByName, (frame.withColumn("_side", F.lit(side)) for side, frame in sides.items())
        )
        for name in near:
            ascending = Window.partitionBy(*keys, *exact, *blurred).orderBy(name)
            is_next = ~_is_same(F.col(name), F.lag(name).over(ascending), tolerance)
            both = both.withColumn("_next", is_next.cast("bigint"))
            so_far = ascending.rowsBetween(Window.unboundedPreceding, Window.currentRow)
            both = both.withColumn(f"_near_{name}", F.sum("_next").over(so_far))
            blurred.append(f"_near_{name}")
        sides = {side: both.where(F.col("_side") == side) for side in sides}
    order = [*exact, *blurred, *near] or list(keys)
    copy = F.row_number().over(Window.partitionBy(*keys).orderBy(*order)).alias("_copy")
    return {side: frame.select(*columns, copy) for side, frame in sides.items()}


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(and_, conditions, F.lit(True))


def _describe(row: Row, kind: str, keys: Sequence[str], values: Sequence[str]) -> str:
    def listed(prefix: str, names: Sequence[str]) -> str:
        return " ".join(f"{name}={row[f'{prefix}_{name}']}" for name in names)

    key = listed("key", keys)
    if kind == "different":
        return f"{key} {listed('expected', values)}, found {listed('found', values)}"
    return f"{key} {listed('expected' if kind == 'missing' else 'found', values)}".rstrip()
