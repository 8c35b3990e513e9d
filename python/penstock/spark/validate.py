"""Sets the engine's answers to a workload's queries against those that Spark computes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.expr.durations import Duration
from penstock.io.protocols import ArrowData
from penstock.spark.comparison import Comparison, compare
from penstock.spark.expected import expected
from penstock.spark.run import run
from penstock.workloads import catalog

__all__ = ["Place", "tolerance_of", "validate"]

Place: TypeAlias = Literal["local", "executors"]
"""Where the engine runs: in this process, or inside the executors of Spark."""

_T = TypeVar("_T")

# Sums of floats: each of n additions may be off by one part in 2^53, which for a million is 1e-10 at worst.
# Everything else is made of whole numbers, and compared exactly.
_ROUNDED = {"lrb", "nyt", "cm1", "cm2", "sg1", "sg2", "sg3"}
_TOLERANCE = 1e-9


def validate(
    spark: SparkSession,
    workload: str,
    frames: Mapping[str, DataFrame],
    *,
    query: str | None = None,
    seed: int = 7,
    result: object | None = None,
    delay: Duration | None = None,
    batches: Mapping[str, ArrowData] | None = None,
    engine: Place = "local",
) -> dict[str, Comparison]:
    """Compares the engine's answers with Spark's, for all queries of a workload or for one.

    Args:
        spark: The session, in UTC.
        workload: Which workload: one of `penstock.workloads.catalog`.
        frames: The data by table, for Spark.
        query: Which query; None is for all of them.
        seed: The seed of the data.
        result: What the engine gave as its answer: a DataFrame or anything that speaks Arrow. By default the
            query is run here.
        delay: By how much rows may come out of order, if by more than the query usually waits for. Spark
            counts rows that the engine drops as late. In the executors rows are put in the order of their
            time first, and none is late.
        batches: The data by table once more, for the engine: Arrow data that can be read several times, with
            the rows in the order in which they come. By default the frames are read back, in the order of
            their partitions.
        engine: Where the engine runs: "local" is in this process, "executors" is by `penstock.spark.run`
            inside the executors, over the frames.

    Returns:
        A comparison for each query.

    Raises:
        ValueError: There is no such workload or query, a table is missing, or there is a result but no query
            to go with it. The executors read the frames: they take no batches, and run nothing if there is a
            result.

    Example:
        >>> from penstock.spark import generate, session, validate
        >>> spark = session()
        >>> events = generate(spark, "ysb", rows=10_000, partitions=2)
        >>> print(validate(spark, "ysb", {"events": events})["ysb"].report())
        validated: 100 of 100 rows equal
    """
    known = catalog.workload(workload)
    if query is None and result is not None and len(known.queries) > 1:
        raise ValueError(f"{workload} has several queries: name the one of the result")
    _check_engine(engine, result, batches)
    chosen = known.queries if query is None else {query: known.query(query)}
    rows = _Rows(known, frames, batches or {})
    comparisons = {}
    for name, each in chosen.items():
        answer = expected(spark, workload, name, frames, seed)
        found = result
        if found is None:
            plan = each.build(seed, delay)
            if engine == "local":
                found = plan.run(_given(each.tables, rows.of))
            else:
                found = run(plan, _given(each.tables, frames.__getitem__))
        comparisons[name] = compare(answer, found, each.keys, tolerance=tolerance_of(name))
    return comparisons


def tolerance_of(query: str) -> float:
    """Returns how much the floats of a query's answer may differ from Spark's: 0 where they are exact.

    Args:
        query: The name of the query.

    Returns:
        The tolerance for `compare`.

    Example:
        >>> from penstock.spark.validate import tolerance_of
        >>> tolerance_of("me1"), tolerance_of("sg1")
        (0.0, 1e-09)
    """
    return _TOLERANCE if query in _ROUNDED else 0.0


def _check_engine(engine: str, result: object | None, batches: Mapping[str, ArrowData] | None) -> None:
    if engine not in get_args(Place):
        raise ValueError(f'engine must be "local" or "executors", not {engine!r}')
    if engine == "local":
        return
    if result is not None:
        raise ValueError('there is a result: engine="executors" has nothing to run, leave one of them out')
    if batches is not None:
        raise ValueError('engine="executors" reads the frames: leave batches out')


def _given(tables: Sequence[str], rows: Callable[[str], _T]) -> _T | dict[str, _T]:
    """Returns the input of a plan over these tables: streams have names only where there are several."""
    found = {table: rows(table) for table in tables}
    return found if len(found) > 1 else found[tables[0]]


class _Rows:
    """The rows of each table for the engine; frames are read back once, however many queries there are."""

    def __init__(
        self,
        workload: catalog.Workload,
        frames: Mapping[str, DataFrame],
        batches: Mapping[str, ArrowData],
    ) -> None:
        self._workload = workload
        self._frames = frames
        self._batches = dict(batches)

    def of(self, table: str) -> ArrowData:
        if table not in self._batches:
            # Spark keeps times in microseconds; those of the workload are coarser, so this is exact.
            schema = pa.schema(self._workload.generator(table)(0).schema)
            self._batches[table] = pa.table(self._frames[table].select(*schema.names)).cast(schema)
        return self._batches[table]
