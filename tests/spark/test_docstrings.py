"""The examples in the docstrings of everything that needs Spark."""

import doctest
import importlib
import pkgutil

import pytest
from pyspark.sql import SparkSession

import penstock.spark

MODULES = [
    "penstock.demo",
    *(module.name for module in pkgutil.walk_packages(penstock.spark.__path__, "penstock.spark.")),
]


def test_the_modules_were_found() -> None:
    assert {"penstock.spark.generate", "penstock.spark.validate", "penstock.spark.expected.lrb"} <= set(
        MODULES
    )


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(spark: SparkSession, name: str) -> None:
    """Each is pasted into a session of its own, which knows nothing of the module."""
    module = importlib.import_module(name)
    tried = doctest.testmod(module, globs={"__name__": "__main__"}, optionflags=doctest.ELLIPSIS)
    assert tried.attempted > 0
    assert tried.failed == 0
