"""Spark jobs that are watched while they run, and cancelled when the waiting thread is interrupted."""

import threading
import time
import uuid
from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.util import InheritableThread

from penstock.spark.errors import spark_errors

__all__ = ["run_watched"]

_POLL_SECONDS = 0.2
# How long a job that was cancelled may take to end.
_CANCEL_SECONDS = 30.0


def run_watched(spark: SparkSession, job: Callable[[], object], watch: Callable[[], None]) -> None:
    """Runs a job in a thread of its own, and waits for it in this one.

    If this thread is interrupted, or `watch` fails, the job is cancelled and has ended when this returns.

    Args:
        spark: The session.
        job: What to do.
        watch: Is called every now and then, in this thread.

    Raises:
        SparkJobError: Spark failed, or a function in one of its executors.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.job import run_watched
        >>> spark, found = session(), []
        >>> run_watched(spark, lambda: found.append(spark.range(3).count()), lambda: None)
        >>> found
        [3]
    """
    tag = f"penstock-{uuid.uuid4().hex}"
    failures: list[BaseException] = []

    def work() -> None:
        try:
            spark.sparkContext.addJobTag(tag)
            job()
        except BaseException as error:
            failures.append(error)

    with spark_errors():
        thread = InheritableThread(target=work, session=spark, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                watch()
        except BaseException:
            _cancel(spark, tag, thread)
            raise
        if failures:
            raise failures[0]


def _cancel(spark: SparkSession, tag: str, thread: threading.Thread) -> None:
    """Asks again and again: the job may not have reached Spark when it was asked first."""
    end = time.monotonic() + _CANCEL_SECONDS
    while thread.is_alive() and time.monotonic() < end:
        spark.sparkContext.cancelJobsWithTag(tag)
        thread.join(_POLL_SECONDS)
