"""Converts errors inside of Spark to exceptions with the message of the original error."""

import contextlib
from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.exceptions import PenstockError

__all__ = ["SparkJobError", "spark_errors"]

_TRACEBACK = "Traceback (most recent call last):\n"


class SparkJobError(PenstockError, RuntimeError):
    """A Spark job failed. The message is that of the function that failed in an executor, if one did.

    Attributes:
        traceback: Where in the executor's Python code it was, or "".

    Example:
        >>> from penstock.spark import SparkJobError
        >>> error = SparkJobError("ValueError: rate must be at least 1")
        >>> isinstance(error, RuntimeError), error.traceback
        (True, '')
    """

    def __init__(self, message: str, traceback: str = "") -> None:
        super().__init__(message, traceback)
        self.traceback = traceback

    def __str__(self) -> str:
        return str(self.args[0])


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """Turns what PySpark raises within into a `SparkJobError`: the message first, and no Java.

    Yields:
        Nothing.

    Raises:
        SparkJobError: Spark failed. What PySpark had to say is its `__context__`.

    Example:
        >>> from penstock.spark import session
        >>> from penstock.spark.errors import spark_errors
        >>> def broken(batches):
        ...     raise ValueError("no such luck")
        >>> with spark_errors():
        ...     session().range(1).mapInArrow(broken, "id bigint").count()
        Traceback (most recent call last):
        penstock.spark.errors.SparkJobError: ValueError: no such luck
    """
    try:
        yield
    except PySparkException as error:
        traceback = (error.getMessageParameters() or {}).get("traceback", "")
        message = _raised(traceback) if traceback else _first_line(str(error))
        raise SparkJobError(message, traceback) from None
    except Py4JJavaError as error:
        java = error.java_exception
        raise SparkJobError(_first_line(str(java.getMessage() or java.getClass().getName()))) from None


def _raised(traceback: str) -> str:
    """Returns the last exception of a traceback with all lines of its message, after the indented ones."""
    lines = traceback.split(_TRACEBACK)[-1].splitlines()
    start = next((number for number, line in enumerate(lines) if line and not line.startswith(" ")), 0)
    return "\n".join(lines[start:]).strip()


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
