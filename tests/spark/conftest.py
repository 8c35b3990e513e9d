"""One Spark session for the whole run: starting it takes about ten seconds."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark import session

# Jobs of a few rows end before the better code of the second compiler pays. Read by every JVM that Spark
# starts from here.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# To compile a query takes Spark longer than to run it over the few rows of a test.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session("penstock tests", settings=INTERPRETED)
    yield running
    running.stop()
