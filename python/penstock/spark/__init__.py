"""Spark beside the engine: PySpark makes the benchmark data and computes what the answer must be.

`session` starts a local Spark, `generate` makes a workload's rows inside its executors, `write_parquet` and
`read_batches` hand them over to the engine in row order, `expected` computes the answer of a query in Spark
alone, and `compare` sets it against the engine's, row by row. `validate` does both for a whole workload.
`write_dataset` keeps the tables of a workload on disk, with checksums, and `read_dataset` finds them again;
`register` makes them a data source of Spark. `run` runs a pipeline inside the executors, and `stream`
does on Structured Streaming.

It needs the extra `spark`: `pip install 'penstock[spark]'`.
"""

try:
    import numpy  # noqa: F401
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"penstock.spark needs the package {error.name!r}: pip install 'penstock[spark]'", name=error.name
    ) from error

from penstock.spark.comparison import ColumnsDifferError, Comparison, compare
from penstock.spark.dataset import DataSet, read_dataset, write_dataset
from penstock.spark.datasource import register
from penstock.spark.errors import SparkJobError, spark_errors
from penstock.spark.expected import expected, expected_ysb
from penstock.spark.generate import generate
from penstock.spark.manifest import DataSetError, Manifest
from penstock.spark.parquet import local_uri, read_batches, write_parquet
from penstock.spark.run import run
from penstock.spark.session import session
from penstock.spark.stream import SparkStream, stream
from penstock.spark.validate import validate

__all__ = [
    "ColumnsDifferError",
    "Comparison",
    "DataSet",
    "DataSetError",
    "Manifest",
    "SparkJobError",
    "SparkStream",
    "compare",
    "expected",
    "expected_ysb",
    "generate",
    "local_uri",
    "read_batches",
    "read_dataset",
    "register",
    "run",
    "session",
    "spark_errors",
    "stream",
    "validate",
    "write_dataset",
    "write_parquet",
]
