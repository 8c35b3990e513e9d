"""One Spark session for the whole run: starting it takes about ten seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # To compile a query takes Spark longer than to run it over the few rows of a test.
    interpreted = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    running = session("penstock tests", settings=interpreted)
    yield running
    running.stop()
