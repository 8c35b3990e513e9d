"""Spark beside the engine: PySpark makes the benchmark data and computes what the answer must be.

`session` starts a local Spark, `generate` makes a workload's rows inside its executors, `write_parquet` and
`read_batches` hand them over to the engine in row order, `expected_ysb` computes the answer in Spark SQL, and
`compare` sets it against the engine's, row by row.

It needs the extra `spark`: `pip install 'penstock[spark]'`.
"""

try:
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"penstock.spark needs the package {error.name!r}: pip install 'penstock[spark]'", name=error.name
    ) from error

from penstock.spark.comparison import Comparison, compare
from penstock.spark.generate import generate
from penstock.spark.parquet import local_uri, read_batches, write_parquet
from penstock.spark.session import session
from penstock.spark.validate import expected_ysb

__all__ = [
    "Comparison",
    "compare",
    "expected_ysb",
    "generate",
    "local_uri",
    "read_batches",
    "session",
    "write_parquet",
]
