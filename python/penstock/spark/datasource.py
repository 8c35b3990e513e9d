"""Workloads as a data source of Spark: `spark.read.format("penstock")`, and the same for streams.

The options `workload`, `table`, `rows`, `seed` and `partitions` are those of `generate`; every other one is
an option of the workload. A stream takes `rowsPerBatch` as well, and never ends where `rows` does not say how
far. Its offsets are row numbers: a query that starts again reads on with the same rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from penstock.spark.generate import Recipe, row_range
from penstock.spark.types import in_spark_types
from penstock.workloads import catalog

__all__ = ["WorkloadSource", "register"]

# Those that are not options of the workload. Spark does not tell upper from lower case.
_OWN = {"workload", "table", "rows", "seed", "partitions", "rowsperbatch"}
_DEFAULT_PARTITIONS = 2
_DEFAULT_ROWS_PER_BATCH = 100_000


def register(spark: SparkSession) -> None:
    """Registers the format "penstock" with a session.

    Args:
        spark: The session; its executors need penstock installed.

    Example:
        >>> from penstock.spark import register, session
        >>> register(session())
        >>> reader = session().read.format("penstock").option("workload", "ysb").option("rows", 1_000)
        >>> reader.option("partitions", 3).option("out_of_order_ms", 50).load().count()
        1000
    """
    spark.dataSource.register(WorkloadSource)


class WorkloadSource(DataSource):
    """The format "penstock"; Spark makes objects of this class from the options of a reader.

    Example:
        >>> from penstock.spark.datasource import WorkloadSource
        >>> source = WorkloadSource({"workload": "ipq", "table": "logs", "rows": "10"})
        >>> source.name(), source.schema().names
        ('penstock', ['timestamp', 'key', 'value'])
    """

    @classmethod
    def name(cls) -> str:
        """Returns the name that `format` takes.

        Returns:
            The name of the format.

        Example:
            >>> from penstock.spark.datasource import WorkloadSource
            >>> WorkloadSource.name()
            'penstock'
        """
        return "penstock"

    def schema(self) -> StructType:
        """Returns the columns of the table.

        Returns:
            The schema for Spark.

        Example:
            >>> from penstock.spark.datasource import WorkloadSource
            >>> WorkloadSource({"workload": "ysb"}).schema().names[:2]
            ['event_time', 'user_id']
        """
        return self._recipe(rows=0).spark_schema

    def reader(self, schema: StructType) -> "_Reader":
        """Makes a reader that reads the rows once.

        Args:
            schema: The columns that are expected.

        Returns:
            The reader.

        Raises:
            ValueError: An option is wrong, or the columns are not those of the table.

        Example:
            >>> from penstock.spark.datasource import WorkloadSource
            >>> source = WorkloadSource({"workload": "ysb", "rows": "10", "partitions": "3"})
            >>> source.reader(source.schema()).partitions()
            [_Range(start=0, end=3), _Range(start=3, end=6), _Range(start=6, end=10)]
        """
        recipe = self._recipe(self._number("rows"))
        _check_schema(schema, recipe)
        return _Reader(recipe)

    def streamReader(self, schema: StructType) -> "_StreamReader":  # noqa: N802 (Spark's name)
        """Makes a reader that reads the rows batch by batch.

        Args:
            schema: The columns that are expected.

        Returns:
            The reader.

        Raises:
            ValueError: An option is wrong, or the columns are not those of the table.

        Example:
            >>> from penstock.spark.datasource import WorkloadSource
            >>> source = WorkloadSource({"workload": "ysb", "rowsPerBatch": "10"})
            >>> source.streamReader(source.schema()).initialOffset()
            {'row': 0}
        """
        rows = self._number("rows")
        recipe = self._recipe(rows=0)
        if rows is None:
            rows = catalog.workload(recipe.workload).rows_in_all(recipe.seed, recipe.options)
        else:
            self._recipe(rows)
        _check_schema(schema, recipe)
        per_batch = self._number("rowsPerBatch", _DEFAULT_ROWS_PER_BATCH)
        if per_batch is None or per_batch < 1:
            raise ValueError(f"rowsPerBatch must be at least 1, not {per_batch}")
        return _StreamReader(recipe, rows, per_batch)

    def _recipe(self, rows: int | None) -> Recipe:
        given = {name.lower(): str(value) for name, value in self.options.items()}
        if "workload" not in given:
            raise ValueError(f"the option workload is missing: one of {', '.join(catalog.CATALOG)}")
        workload = catalog.workload(given["workload"])
        options = workload.read_options({name: text for name, text in given.items() if name not in _OWN})
        seed = self._number("seed", 7)
        partitions = self._number("partitions", _DEFAULT_PARTITIONS)
        assert seed is not None
        assert partitions is not None
        return Recipe.checked(workload.name, given.get("table"), rows, seed, partitions, options)

    def _number(self, option: str, default: int | None = None) -> int | None:
        given = {name.lower(): value for name, value in self.options.items()}
        text = given.get(option.lower())
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{option} must be a whole number, not {text!r}") from None


@dataclass(frozen=True)
class _Range(InputPartition):
    """Rows `start..end` of the table."""

    start: int
    end: int


def _ranges(recipe: Recipe, start: int, end: int) -> list[InputPartition]:
    ranges = (row_range(end - start, recipe.partitions, part, start) for part in range(recipe.partitions))
    return [_Range(first, last) for first, last in ranges if first < last]


def _read(recipe: Recipe, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    # Where there are no rows at all, Spark asks for one partition of its own.
    if isinstance(partition, _Range):
        yield from map(in_spark_types, recipe.batches(partition.start, partition.end))


def _check_schema(schema: StructType, recipe: Recipe) -> None:
    if schema != recipe.spark_schema:
        wanted, given = recipe.spark_schema.simpleString(), schema.simpleString()
        raise ValueError(f"{recipe.workload} has the columns {wanted}, not {given}")


class _Reader(DataSourceReader):
    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    def partitions(self) -> list[InputPartition]:
        return _ranges(self._recipe, 0, self._recipe.rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._recipe, partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are `{"row": number of the next row}`."""

    def __init__(self, recipe: Recipe, rows: int | None, per_batch: int) -> None:
        self._recipe = recipe
        # Where the data ends; None where it does not.
        self._rows = rows
        self._per_batch = per_batch
        self._is_available_now = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        return ReadMaxRows(self._per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        self._is_available_now = True

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 (Spark's name)
        first = int(start["row"])
        if self._is_available_now and self._rows is None:
            # Of rows without end, one batch is what there is now.
            self._rows = first + self._per_batch
        if isinstance(limit, ReadMaxRows):
            last = first + limit.max_rows
        else:
            last = first + self._per_batch if self._rows is None else self._rows
        return {"row": max(first, last if self._rows is None else min(last, self._rows))}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        return _ranges(self._recipe, int(start["row"]), int(end["row"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._recipe, partition)
