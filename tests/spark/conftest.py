"""One Spark session for the whole run: starting it takes about ten seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session("penstock tests")
    yield running
    running.stop()
