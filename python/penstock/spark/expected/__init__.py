"""Computes with Spark alone what the answer of each query of the workloads must be.

Nothing here uses an operator of the engine: the windows, the joins and the sums are Spark's own. Spark counts
every row, so the answers are those of runs in which no row came too late.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.expected import cm, ipq, lrb, me, nexmark, nyt, sg
from penstock.spark.expected.ysb import expected_ysb
from penstock.workloads import catalog, ysb

__all__ = ["expected", "expected_ysb"]

# The answers that follow from the data alone: each takes the tables of its query by their names.
_ANSWERS: Mapping[str, Mapping[str, Callable[..., DataFrame]]] = MappingProxyType(
    {
        "lrb": {"lrb": lrb.lrb, "lrb1": lrb.lrb1, "lrb2": lrb.lrb2},
        "nyt": {"nyt": nyt.nyt},
        "nexmark": {
            "q0": nexmark.q0,
            "q1": nexmark.q1,
            "q2": nexmark.q2,
            "q3": nexmark.q3,
            "q5": nexmark.q5,
            "q7": nexmark.q7,
            "q8": nexmark.q8,
            "q11": nexmark.q11,
        },
        "cm": {"cm1": cm.cm1, "cm2": cm.cm2},
        "sg": {"sg1": sg.sg1, "sg2": sg.sg2, "sg3": sg.sg3},
        "me": {"me1": me.me1},
        "ipq": {"ipq1": ipq.ipq1, "ipq2": ipq.ipq2, "ipq3": ipq.ipq3, "ipq4": ipq.ipq4},
    }
)


def expected(
    spark: SparkSession, workload: str, query: str, frames: Mapping[str, DataFrame], seed: int = 7
) -> DataFrame:
    """Computes the answer that a query must give over some data.

    Args:
        spark: The session, in UTC.
        workload: Which workload: one of `penstock.workloads.catalog`.
        query: Which of its queries.
        frames: The data by table: the columns that the workload has, with timestamps as `timestamp_ntz`.
        seed: The seed of the data, for what is no part of them: the campaigns of YSB.

    Returns:
        A DataFrame with the columns of the query's plan, in no order.

    Raises:
        ValueError: There is no such workload or query, a table is missing, or the session is not in UTC.

    Example:
        >>> from penstock.spark import expected, generate, session
        >>> spark = session()
        >>> trips = generate(spark, "nyt", rows=1_000)
        >>> expected(spark, "nyt", "nyt", {"trips": trips}).columns
        ['window_start', 'window_end', 'pickup_cell', 'trips', 'mean_distance']
    """
    known = catalog.workload(workload).query(query)
    missing = [table for table in known.tables if table not in frames]
    if missing:
        raise ValueError(f"{query} of {workload} needs the table {missing[0]!r}; there are: {list(frames)}")
    # Spark computes with timestamps in the time zone of the session, also with those that have none.
    zone = spark.conf.get("spark.sql.session.timeZone")
    if zone != "UTC":
        raise ValueError(f"the time zone of the session must be UTC, not {zone}")
    if query == "ysb":
        return expected_ysb(spark, frames["events"], ysb.campaigns(seed, strings=workload == "ysb-strings"))
    return _ANSWERS[workload][query](**{table: frames[table] for table in known.tables})
