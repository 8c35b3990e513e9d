"""Every query of every workload: the engine gives the answer of Spark, and a broken one is caught."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.spark import Comparison, compare, expected
from penstock.spark.comparison import as_frame
from penstock.spark.validate import tolerance_of
from penstock.workloads import catalog
from spark.spoiling import off_by_one, with_a_row_twice, without_a_row

SEED = 7
# Rows and options: some windows of each kind, rows out of order, and times before 0 where there can be some.
DATA: Mapping[str, tuple[int | None, Mapping[str, int | float]]] = {
    "ysb": (5_000, {"rate": 200, "out_of_order_ms": 500}),
    "ysb-strings": (5_000, {"rate": 200, "out_of_order_ms": 500}),
    "lrb": (None, {"minutes": 30, "cars_per_second": 40, "queries_every": 10, "out_of_order_s": 1}),
    "nyt": (5_000, {"rate": 500, "out_of_order_ms": 500}),
    "nexmark": (5_000, {"rate": 50, "first_event_time_ms": -12_345, "out_of_order_ms": 500}),
    "cm": (3_000, {"rate": 100, "fail_share": 0.1, "out_of_order_ms": 500}),
    "sg": (2_000, {"rate": 100, "houses": 1, "out_of_order_ms": 500}),
    "me": (2_000, {"rate": 100, "out_of_order_ms": 500}),
    "ipq": (4_000, {"keys": 50, "out_of_order_ms": 500}),
}
# Of the traffic, some segments around accidents in the last minutes: tolls, and tolls that are waived.
LRB_SEGMENTS = [*range(35, 42), *range(55, 59), *range(73, 78)]
LRB_FROM = 22 * 60

QUERIES = [(name, query) for name, workload in catalog.CATALOG.items() for query in workload.queries]


@dataclass(frozen=True)
class Answered:
    """A query with both answers to it."""

    query: catalog.Query
    expected: DataFrame
    found: pa.Table
    rows_late: int

    def compare(self, found: pa.Table) -> Comparison:
        return compare(self.expected, found, self.query.keys, tolerance=tolerance_of(self.query.name))


class Answers:
    """All that was answered so far: the tests of a query share its data and answers."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.tables: dict[str, dict[str, pa.Table]] = {}
        self.answered: dict[tuple[str, str], Answered] = {}

    def of(self, name: str, query: str) -> Answered:
        if (name, query) not in self.answered:
            self.answered[name, query] = self._answer(name, query)
        return self.answered[name, query]

    def _answer(self, name: str, query: str) -> Answered:
        if name not in self.tables:
            self.tables[name] = make(name)
        tables = self.tables[name]
        asked = catalog.workload(name).query(query)
        data = {table: tables[table] for table in asked.tables}
        result = asked.build(SEED, None).run(data if len(data) > 1 else data[asked.tables[0]])
        frames = {table: as_frame(self.spark, rows) for table, rows in data.items()}
        # Computed once, and kept as rows.
        right = as_frame(self.spark, expected(self.spark, name, query, frames, SEED).toArrow())
        return Answered(asked, right, pa.table(result), result.rows_late)


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> Answers:
    return Answers(spark)


def make(name: str) -> dict[str, pa.Table]:
    workload = catalog.workload(name)
    rows, options = DATA[name]
    if rows is None:
        rows = workload.rows_in_all(SEED, options)
        assert rows is not None
    tables = {
        table: pa.table(generate(workload.rows_of(table, rows), seed=SEED, **options))
        for table, generate in workload.tables.items()
    }
    if name == "lrb":
        near_accidents = pc.is_in(pc.field("seg"), pa.array(LRB_SEGMENTS, pa.int32()))
        tables["reports"] = tables["reports"].filter(near_accidents & (pc.field("time") >= LRB_FROM))
    return tables


@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_the_engine_gives_the_answer(answers: Answers, name: str, query: str) -> None:
    answered = answers.of(name, query)
    assert answered.rows_late == 0
    assert len(answered.found) > 0
    comparison = answered.compare(answered.found)
    assert comparison.ok, comparison.report()
    assert comparison.equal == len(answered.found)


@pytest.mark.parametrize(("name", "query"), QUERIES)
@pytest.mark.parametrize("spoil", [off_by_one, without_a_row, with_a_row_twice])
def test_a_broken_answer_is_caught(
    answers: Answers, name: str, query: str, spoil: Callable[[pa.Table], pa.Table]
) -> None:
    answered = answers.of(name, query)
    rows = len(answered.found)
    comparison = answered.compare(spoil(answered.found))
    assert not comparison.ok
    if spoil is off_by_one:
        # In a key it makes another row, which has one too many if that row was there before.
        assert comparison.equal in (rows - 1, rows - 2)
        assert comparison.different + comparison.missing >= 1
    else:
        missing = int(spoil is without_a_row)
        found = (comparison.equal, comparison.missing, comparison.extra, comparison.different)
        assert found == (rows - missing, missing, 1 - missing, 0)


def test_the_data_has_what_the_queries_look_for(answers: Answers) -> None:
    tolls = answers.of("lrb", "lrb").found
    is_crowded = pc.and_(pc.greater(tolls["vehicles"], 50), pc.less(tolls["lav"], 40))
    assert pc.sum(pc.greater(tolls["toll"], 0)).as_py() > 0
    assert pc.sum(pc.and_(is_crowded, tolls["accident"])).as_py() > 0
    all_plugs, above = answers.of("sg", "sg2").found, answers.of("sg", "sg3").found
    assert 0 < len(above) < len(all_plugs)
    sessions = answers.of("nexmark", "q11").found
    assert len(sessions) > len(pc.unique(sessions["bidder"]))
