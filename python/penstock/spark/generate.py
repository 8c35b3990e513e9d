"""Makes a workload's rows on Spark, with the Rust generators inside the executors.

Row ids are cut into one contiguous range per partition, in order. A row is a function of the seed, the
options and its id, so the data set is the same however it is partitioned, and partition order is row order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.spark.checksum import add_checksums, checksum
from penstock.spark.types import in_spark_types, spark_schema
from penstock.workloads import catalog

__all__ = ["CountsByPartition", "PartitionCounts", "Recipe", "generate", "plan_tables", "row_range"]

PartitionCounts = dict[int, tuple[int, int]]
"""The rows and the checksum of each partition that is done."""


def generate(
    spark: SparkSession,
    workload: str = "ysb",
    rows: int | None = 1_000_000,
    seed: int = 7,
    partitions: int | None = None,
    table: str | None = None,
    **options: catalog.Option,
) -> DataFrame:
    """Generates the first `rows` rows of a table of a workload as a Spark DataFrame.

    Args:
        spark: The session; its executors need penstock installed.
        workload: Which workload, one of `penstock.workloads.catalog.CATALOG`.
        rows: How many rows; None is all, where the data has an end.
        seed: The seed of the data set.
        partitions: How many partitions, by default as many as Spark runs side by side. The rows are the same
            for any number.
        table: Which table, where the workload has several.
        options: What else the generator of the workload takes, e.g. `out_of_order_ms=50`.

    Returns:
        A DataFrame whose partitions, one after the other, hold the rows in row order.

    Raises:
        TypeError: An option that the workload does not have, or of the wrong type.
        ValueError: An unknown workload or table, or an option out of bounds: before any job starts.

    Example:
        >>> from penstock.spark import generate, session
        >>> frame = generate(session(), "ysb", rows=1_000, partitions=3)
        >>> frame.columns
        ['event_time', 'user_id', 'page_id', 'ad_id', 'ad_type', 'event_type', 'ip']
        >>> frame.count()
        1000
        >>> generate(session(), "nexmark", rows=46, table="bid").select("auction").dtypes
        [('auction', 'bigint')]
    """
    if partitions is None:
        partitions = spark.sparkContext.defaultParallelism
    return Recipe.checked(workload, table, rows, seed, partitions, options).frame(spark)


def row_range(rows: int, partitions: int, partition: int, start: int = 0) -> tuple[int, int]:
    """Returns the half-open range of row ids of a partition.

    Args:
        rows: How many rows there are in all partitions.
        partitions: How many partitions.
        partition: Which one.
        start: The id of the first row.

    Returns:
        A half-open range.

    Example:
        >>> from penstock.spark.generate import row_range
        >>> [row_range(10, 3, partition) for partition in range(3)]
        [(0, 3), (3, 6), (6, 10)]
    """
    return start + rows * partition // partitions, start + rows * (partition + 1) // partitions


def plan_tables(
    workload: str,
    rows: int | None,
    seed: int,
    partitions: int,
    options: Mapping[str, catalog.Option],
) -> "dict[str, Recipe]":
    """Returns the recipes of all tables of a workload.

    Args:
        workload: The name of the workload.
        rows: How many rows in all tables together; None is all, where there is an end.
        seed: The seed.
        partitions: How many partitions each table is cut into.
        options: The options of the generators.

    Returns:
        A recipe for each table.

    Raises:
        TypeError: An option that there is not, or of the wrong type.
        ValueError: A name that there is not, or a number out of bounds.

    Example:
        >>> from penstock.spark.generate import plan_tables
        >>> planned = plan_tables("nexmark", 50, seed=7, partitions=2, options={})
        >>> {table: recipe.rows for table, recipe in planned.items()}
        {'person': 1, 'auction': 3, 'bid': 46}
    """
    found = catalog.workload(workload)
    found.check_options(options)
    known = _known_rows(found, rows, seed, options)
    return {
        table: Recipe.checked(workload, table, found.rows_of(table, known), seed, partitions, options)
        for table in found.tables
    }


@dataclass(frozen=True)
class Recipe:
    """What a table is made from. It is small, and goes to the executors as it is.

    Attributes:
        workload: The name of the workload.
        table: The name of the table.
        rows: How many rows.
        seed: The seed.
        partitions: How many partitions they are cut into.
        options: The options of the generator.

    Example:
        >>> from penstock.spark.generate import Recipe
        >>> recipe = Recipe.checked("ysb", None, rows=10, seed=7, partitions=3, options={})
        >>> recipe.table, [batch.num_rows for batch in recipe.batches(2, 4)]
        ('events', [2])
    """

    workload: str
    table: str
    rows: int
    seed: int
    partitions: int
    options: Mapping[str, catalog.Option]

    @classmethod
    def checked(
        cls,
        workload: str,
        table: str | None,
        rows: int | None,
        seed: int,
        partitions: int,
        options: Mapping[str, catalog.Option],
    ) -> "Recipe":
        """Makes a recipe and checks it as far as that is possible without generating a row.

        Args:
            workload: The name of the workload.
            table: The name of the table; None where there is only one.
            rows: How many rows; None is all, where there is an end.
            seed: The seed.
            partitions: How many partitions.
            options: The options of the generator.

        Returns:
            The recipe.

        Raises:
            TypeError: An option that there is not, or of the wrong type.
            ValueError: A name that there is not, or a number out of bounds.

        Example:
            >>> from penstock.spark.generate import Recipe
            >>> Recipe.checked("ysb", "event", 10, 7, 1, {})
            Traceback (most recent call last):
            ValueError: ysb has no table 'event' (did you mean 'events'?); there are: events
        """
        found = catalog.workload(workload)
        make = found.generator(table)
        found.check_options(options)
        if partitions < 1:
            raise ValueError(f"partitions must be at least 1, not {partitions}")
        rows = _known_rows(found, rows, seed, options)
        # Makes no row yet, but checks every argument, here rather than in an executor.
        make(rows, seed=seed, **options)
        return cls(workload, table or next(iter(found.tables)), rows, seed, partitions, dict(options))

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the types of the workload.

        Example:
            >>> from penstock.spark.generate import Recipe
            >>> Recipe.checked("lrb", None, 10, 7, 1, {"minutes": 5}).schema.field("vid").type
            DataType(int32)
        """
        make = catalog.workload(self.workload).generator(self.table)
        return pa.schema(make(0, seed=self.seed, **self.options).schema)

    @property
    def spark_schema(self) -> StructType:
        """The columns, in the types of Spark.

        Example:
            >>> from penstock.spark.generate import Recipe
            >>> Recipe.checked("ipq", "logs", 10, 7, 1, {}).spark_schema.simpleString()
            'struct<timestamp:timestamp_ntz,key:bigint,value:bigint>'
        """
        return spark_schema(self.schema)

    def batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Generates some of the rows, in the types of the workload.

        Args:
            start: The number of the first row.
            end: The number after the last one.

        Returns:
            Arrow batches, made as they are asked for.

        Example:
            >>> from penstock.spark.generate import Recipe
            >>> recipe = Recipe.checked("ysb", None, 10, 7, 1, {})
            >>> [batch.num_rows for batch in recipe.batches(4, 10)]
            [6]
        """
        make = catalog.workload(self.workload).generator(self.table)
        rows = make(end - start, seed=self.seed, start=start, **self.options)
        return iter(pa.RecordBatchReader.from_stream(rows))

    def frame(self, spark: SparkSession, counts: "Accumulator[PartitionCounts] | None" = None) -> DataFrame:
        """Returns the rows as a DataFrame.

        Args:
            spark: The session.
            counts: Is told the rows and the checksum of each partition when all of it was read.

        Returns:
            A DataFrame whose partitions, one after the other, hold the rows in row order.

        Example:
            >>> from penstock.spark import session
            >>> from penstock.spark.generate import Recipe
            >>> Recipe.checked("ysb", None, 10, 7, 1, {}).frame(session()).count()
            10
        """
        schema = self.spark_schema
        numbers = spark.range(0, self.partitions, 1, self.partitions)
        return (
            numbers.select(F.col("id").alias("partition"))
            .mapInArrow(_partition_filler(self, counts), schema)
            .select(*(F.col(field.name).cast(field.dataType).alias(field.name) for field in schema))
        )


class CountsByPartition(AccumulatorParam[PartitionCounts]):
    """Merges the counts of partitions. A partition that runs twice reports the same twice, and counts once.

    Example:
        >>> from penstock.spark.generate import CountsByPartition
        >>> CountsByPartition().addInPlace({0: (10, 77)}, {0: (10, 77), 1: (5, 33)})
        {0: (10, 77), 1: (5, 33)}
    """

    def zero(self, value: PartitionCounts) -> PartitionCounts:
        """Returns the value before any partition is done.

        Args:
            value: Any counts.

        Returns:
            No counts.

        Example:
            >>> from penstock.spark.generate import CountsByPartition
            >>> CountsByPartition().zero({0: (10, 77)})
            {}
        """
        return {}

    def addInPlace(  # noqa: N802 (Spark's name)
        self, value1: PartitionCounts, value2: PartitionCounts
    ) -> PartitionCounts:
        """Merges the counts of two sides.

        Args:
            value1: Some counts.
            value2: Some more.

        Returns:
            All of them.

        Example:
            >>> from penstock.spark.generate import CountsByPartition
            >>> CountsByPartition().addInPlace({}, {1: (5, 33)})
            {1: (5, 33)}
        """
        value1.update(value2)
        return value1


def _known_rows(
    workload: catalog.Workload, rows: int | None, seed: int, options: Mapping[str, catalog.Option]
) -> int:
    if rows is None:
        rows = workload.rows_in_all(seed, options)
    if rows is None:
        raise ValueError(f"{workload.name} has no end: rows must say how many")
    if rows < 0:
        raise ValueError(f"rows must be at least 0, not {rows}")
    return rows


def _partition_filler(
    recipe: Recipe, counts: "Accumulator[PartitionCounts] | None" = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Makes the function that the executors run: partition numbers in, the rows of those partitions out."""

    def fill(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for partition in batch.column("partition").to_pylist():
                start, end = row_range(recipe.rows, recipe.partitions, partition)
                row, sums = start, []
                for made in recipe.batches(start, end):
                    if counts is not None:
                        sums.append(checksum(made, row))
                    row += made.num_rows
                    yield in_spark_types(made)
                if counts is not None:
                    counts.add({partition: (row - start, add_checksums(sums))})

    return fill
