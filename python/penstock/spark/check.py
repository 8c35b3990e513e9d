"""Checks a data set the whole way: the files against their manifest, and every query against Spark."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.spark.comparison import Comparison
from penstock.spark.dataset import DataSet
from penstock.spark.errors import spark_errors
from penstock.spark.validate import Place, validate
from penstock.workloads import catalog

__all__ = ["Checked", "check_dataset"]


@dataclass(frozen=True)
class Checked:
    """What the check of a query found.

    Attributes:
        workload: The workload.
        seed: The seed of the data.
        query: The query.
        rows_in: How many rows it read.
        comparison: How its answer differs from Spark's.
        seconds: How long both answers and the comparison took.

    Example:
        >>> from penstock.spark.check import Checked
        >>> from penstock.spark.comparison import Comparison
        >>> checked = Checked("ysb", 7, "ysb", 1_000, Comparison(98, 0, 0, 0), 2.5)
        >>> checked.comparison.ok
        True
    """

    workload: str
    seed: int
    query: str
    rows_in: int
    comparison: Comparison
    seconds: float


def check_dataset(spark: SparkSession, data: DataSet, engine: Place = "local") -> Iterator[Checked]:
    """Verifies a data set, then compares the engine's answer to each query of its workload with Spark's.

    Args:
        spark: The session, in UTC.
        data: The data set.
        engine: Where the engine runs: in this process, or inside the executors.

    Yields:
        What was found, query by query, as it is found.

    Raises:
        DataSetError: The files are not what the manifest says.
        SparkJobError: Spark failed, or an engine in one of its executors.

    Example:
        >>> import tempfile
        >>> from penstock.spark import session, write_dataset
        >>> from penstock.spark.check import check_dataset
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data = write_dataset(session(), "ipq", f"{folder}/ipq", rows=2_000)
        ...     for checked in check_dataset(session(), data):
        ...         print(checked.query, checked.rows_in, checked.comparison.ok)
        ipq1 1000 True
        ipq2 1000 True
        ipq3 1000 True
        ipq4 2000 True
    """
    data.verify()
    made = data.manifest
    workload = catalog.workload(made.workload)
    frames = data.frames(spark)
    for query, asked in workload.queries.items():
        begin = time.perf_counter()
        with spark_errors():
            found = validate(
                spark,
                workload.name,
                frames,
                query=query,
                seed=made.seed,
                delay=workload.delay(made.options),
                batches={table: data.batches(table) for table in asked.tables} if engine == "local" else None,
                engine=engine,
            )
        rows_in = sum(made.tables[table].rows for table in asked.tables)
        seconds = time.perf_counter() - begin
        yield Checked(workload.name, made.seed, query, rows_in, found[query], seconds)
