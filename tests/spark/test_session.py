"""The session: on this machine only, in UTC, with the interpreter that runs the tests."""

import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.spark import session


def test_listens_on_the_loopback_address_only(spark: SparkSession) -> None:
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        assert spark.conf.get(name) == "127.0.0.1"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.sparkContext.uiWebUrl is None


def test_runs_in_utc(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sql("select hour(timestamp_seconds(0))").collect()[0][0] == 0


def test_workers_are_this_interpreter(spark: SparkSession) -> None:
    def name_it(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"path": [sys.executable]})

    rows = spark.range(1).mapInArrow(name_it, "path string").collect()
    assert [row.path for row in rows] == [sys.executable]


def test_a_second_call_gives_the_same_session(spark: SparkSession) -> None:
    assert session().sparkContext is spark.sparkContext


def test_refuses_to_start_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        session(cores=0)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(RuntimeError, match="Java 17"):
        session()
