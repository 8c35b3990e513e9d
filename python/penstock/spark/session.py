"""A local Spark session that behaves the same on every machine."""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.spark.parquet import local_uri

__all__ = ["session"]

_LOGGING = Path(__file__).with_name("log4j2.properties")


def session(
    app_name: str = "penstock", cores: int = 2, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Starts Spark inside this process, or returns the session that already runs.

    Starting takes about ten seconds: share one session where you can.

    Args:
        app_name: The name that Spark shows.
        cores: How many tasks run side by side.
        settings: Further Spark settings; they win over the ones made here.

    Returns:
        A session on this machine only: it listens on the loopback address, its time zone is UTC, it has no
        web page, and its log holds errors only. Scratch files go where `SPARK_LOCAL_DIRS` or else `TMPDIR`
        says.

    Raises:
        RuntimeError: There is no Java.

    Example:
        >>> from penstock.spark import session
        >>> spark = session(cores=2)
        >>> spark.range(3).count()
        3
    """
    if cores < 1:
        raise ValueError(f"cores must be at least 1, not {cores}")
    _check_java()
    # Workers otherwise take whatever `python3` is on the PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = tempfile.gettempdir()
    chosen = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={_LOGGING.as_uri()} -Duser.timezone=UTC"
        ),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": local_uri(Path(scratch, "penstock-warehouse")),
    }
    if "SPARK_LOCAL_DIRS" not in os.environ:
        chosen["spark.local.dir"] = scratch
    chosen.update(settings or {})

    builder = SparkSession.builder.master(f"local[{cores}]").appName(app_name)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _check_java() -> None:
    """Checks that Java is there: without it, Spark only reports that its gateway exited."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    if shutil.which(java) is None:
        raise RuntimeError(
            f"Spark needs Java 17 or newer, but {java!r} was not found: install it, or set JAVA_HOME"
        )
