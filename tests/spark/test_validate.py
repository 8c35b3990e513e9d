"""Validating a workload: the engine is run over the data, or its answer is given."""

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.exceptions import LateRowsWarning
from penstock.spark import expected, generate, validate
from penstock.spark.comparison import as_frame
from penstock.workloads import catalog, ipq, ysb


def tables(rows: int = 1_000) -> dict[str, pa.Table]:
    return {
        "revenue": pa.table(ipq.generate("revenue", rows, rate=500, keys=20)),
        "logs": pa.table(ipq.generate("logs", rows, rate=500, keys=20)),
    }


def test_all_queries_of_a_workload(spark: SparkSession) -> None:
    frames = {table: as_frame(spark, rows) for table, rows in tables().items()}
    found = validate(spark, "ipq", frames)
    assert list(found) == ["ipq1", "ipq2", "ipq3", "ipq4"]
    for query, comparison in found.items():
        assert comparison.ok, f"{query}: {comparison.report()}"
        assert comparison.equal > 0


def test_frames_are_read_back_in_order(spark: SparkSession) -> None:
    # Fifty seconds in five partitions: in another order, rows would come too late.
    frame = generate(spark, "ysb", rows=20_000, seed=3, partitions=5, rate=400)
    assert validate(spark, "ysb", {"events": frame}, seed=3)["ysb"].ok


def test_the_engine_reads_the_batches_it_is_given(spark: SparkSession) -> None:
    rows = pa.table(ysb.generate(5_000, rate=100))
    frames = {"events": as_frame(spark, rows)}
    assert validate(spark, "ysb", frames, batches={"events": rows.to_batches(100)})["ysb"].ok
    turned = rows.take(list(reversed(range(len(rows)))))
    # Rows that come too late are dropped, unless the query waits for them.
    with pytest.warns(LateRowsWarning):
        assert not validate(spark, "ysb", frames, batches={"events": turned})["ysb"].ok
    assert validate(spark, "ysb", frames, batches={"events": turned}, delay="1h")["ysb"].ok


def test_a_result_can_be_given(spark: SparkSession) -> None:
    data = tables()
    frames = {table: as_frame(spark, rows) for table, rows in data.items()}
    result = pa.table(ipq.ipq1().run(data["revenue"]))
    assert validate(spark, "ipq", frames, query="ipq1", result=result)["ipq1"].ok
    assert validate(spark, "ipq", frames, query="ipq1", result=result.slice(1))["ipq1"].missing == 1
    with pytest.raises(ValueError, match="several queries"):
        validate(spark, "ipq", frames, result=result)


@pytest.mark.parametrize("query", ["ipq1", "ipq4"])
def test_the_engine_in_the_executors(spark: SparkSession, query: str) -> None:
    data = tables()
    # Rows in any order: each partition puts its own in order, so none is late, whatever the delay.
    frames = {table: as_frame(spark, rows).repartition(3) for table, rows in data.items()}
    found = validate(spark, "ipq", frames, query=query, delay="1ms", engine="executors")[query]
    assert found.ok, found.report()
    assert found == validate(spark, "ipq", frames, query=query, delay="1h")[query]


def test_a_wrong_answer_of_the_executors_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = catalog.workload("ipq")
    # The same columns, in windows that slide: twice as many of them.
    wrong = replace(right.query("ipq1"), build=right.query("ipq2").build)
    monkeypatch.setattr(catalog, "CATALOG", {"ipq": replace(right, queries={"ipq1": wrong})})
    frames = {table: as_frame(spark, rows) for table, rows in tables().items()}
    assert validate(spark, "ipq", frames, engine="executors")["ipq1"].extra > 0


def test_the_executors_take_frames_only(spark: SparkSession) -> None:
    data = tables(10)
    frames = {table: as_frame(spark, rows) for table, rows in data.items()}
    with pytest.raises(ValueError, match="there is a result"):
        validate(spark, "ipq", frames, query="ipq1", result=data["logs"], engine="executors")
    with pytest.raises(ValueError, match="leave batches out"):
        validate(spark, "ipq", frames, batches=data, engine="executors")
    with pytest.raises(ValueError, match='must be "local" or "executors", not \'spark\''):
        validate(spark, "ipq", frames, engine="spark")  # type: ignore[arg-type]


def test_other_seeds_have_other_campaigns(spark: SparkSession) -> None:
    rows = pa.table(ysb.generate(5_000, seed=3, rate=500))
    frames = {"events": as_frame(spark, rows)}
    result = ysb.query(campaigns=ysb.campaigns(3)).run(rows)
    assert validate(spark, "ysb", frames, seed=3, result=result)["ysb"].ok
    assert not validate(spark, "ysb", frames, seed=4, result=result)["ysb"].ok


def test_wrong_names_are_explained(spark: SparkSession) -> None:
    frames = {"revenue": as_frame(spark, tables(10)["revenue"])}
    with pytest.raises(ValueError, match="did you mean 'ipq'"):
        validate(spark, "ipqs", frames)
    with pytest.raises(ValueError, match="no query 'ipq9'"):
        expected(spark, "ipq", "ipq9", frames)
    with pytest.raises(ValueError, match="needs the table 'logs'"):
        expected(spark, "ipq", "ipq4", frames)


def test_the_session_must_be_in_utc(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    with pytest.raises(ValueError, match="must be UTC, not Europe/Berlin"):
        expected(other, "ipq", "ipq1", {"revenue": as_frame(other, tables(10)["revenue"])})


def test_every_query_of_the_catalogue_has_an_answer(spark: SparkSession) -> None:
    for name, workload in catalog.CATALOG.items():
        empty = {table: as_frame(spark, pa.table(make(0))) for table, make in workload.tables.items()}
        for query, asked in workload.queries.items():
            answer = expected(spark, name, query, empty)
            assert answer.columns == list(asked.build(7, None).schema.names)
