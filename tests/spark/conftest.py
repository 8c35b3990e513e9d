"""One Spark session for the whole run: starting it takes about ten seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark import session

# To compile a query takes Spark longer than to run it over the few rows of a test.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session("penstock tests", settings=INTERPRETED)
    yield running
    running.stop()
