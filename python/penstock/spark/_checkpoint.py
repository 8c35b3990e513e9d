"""What a pipeline on a stream of Spark keeps between micro-batches, on any file system that Spark knows.

    spark/                     Spark's own: which rows belong to which micro-batch, and which are done
    plan.json                  what all of it belongs to, and an identity that no other checkpoint has
    batches/12-<attempt>/      what an attempt at micro-batch 12 has written: state, and results
    batches/12.json            the record that it counts, and which attempt it was

C1. A micro-batch counts once its record is there. A record appears all at once, and never changes: of two
    attempts, one wins, and the other is as if it had never been.
C2. The record of a micro-batch is written when all that it speaks of has been written.
C3. The record before the newest stays, with its state, until the newest is there: an attempt that fails can
    be made again.
C4. A record names the query of Spark whose micro-batch it is. With another one the numbers of micro-batches
    mean other rows.
"""

import json
import uuid
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["Checkpoint"]

_VERSION = 1
_END = "end"


class Checkpoint:
    """The folder of one pipeline on one stream.

    Args:
        spark: The session.
        path: A folder on any file system that Spark knows.

    Example:
        >>> import tempfile
        >>> from penstock.spark import session
        >>> from penstock.spark._checkpoint import Checkpoint
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kept = Checkpoint(session(), folder)
        ...     kept.commit(0, {"attempt": "0-a"}), kept.commit(0, {"attempt": "0-b"})
        ...     kept.newest(), kept.record(0)
        (True, False)
        (0, {'attempt': '0-a'})
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._jvm: Any = spark._jvm
        if self._jvm is None:
            raise ValueError("streams need a session of Spark itself, not one of Spark Connect")
        java: Any = spark.sparkContext._jsc
        self._settings = java.hadoopConfiguration()
        self.path: str = self.qualified(path)
        self._files = self._files_of(self.path)

    @property
    def spark_path(self) -> str:
        """Where Spark keeps its own.

        Example:
            >>> from penstock.spark import session
            >>> from penstock.spark._checkpoint import Checkpoint
            >>> Checkpoint(session(), "/data/views").spark_path
            'file:/data/views/spark'
        """
        return f"{self.path}/spark"

    def claim(self, belongs_to: dict[str, Any], explained: str) -> str:
        """Says what the folder belongs to, or makes sure that it belongs to the same.

        Args:
            belongs_to: What must not change while the pipeline continues.
            explained: The same for people, who may read it in the folder.

        Returns:
            The identity of the checkpoint.

        Raises:
            ValueError: It belongs to something else, and what that is.
        """
        wanted = {"version": _VERSION, **belongs_to}
        name = f"{self.path}/plan.json"
        if not self.exists(name):
            self.write_once(name, {**wanted, "identity": uuid.uuid4().hex, "explained": explained})
        found = self.read(name)
        for what, value in wanted.items():
            if found.get(what) != value:
                raise ValueError(
                    f"the checkpoint {self.path} is of another {what} ({found.get(what)}, not {value}): "
                    "go on with what it belongs to, or begin anew in another folder; plan.json in there "
                    "says what that is"
                )
        return str(found["identity"])

    @property
    def query(self) -> str | None:
        """The query of Spark that the micro-batches are numbered by, once it has begun (C4)."""
        name = f"{self.spark_path}/metadata"
        return str(self.read(name)["id"]) if self.exists(name) else None

    def begun(self) -> int | None:
        """Returns the number of the newest micro-batch that Spark has begun, if there is one.

        Returns:
            The number. Its rows are settled, whether it counts already or not.
        """
        names = [status.getPath().getName() for status in self._listed(f"{self.spark_path}/offsets")]
        return max((int(name) for name in names if name.isdigit()), default=None)

    def is_done(self, batch: int) -> bool:
        """Tells whether Spark has recorded that the results of a micro-batch were delivered.

        Args:
            batch: Its number.

        Returns:
            Whether it does. If not, they may have been handed out nevertheless.
        """
        return self.exists(f"{self.spark_path}/commits/{batch}")

    def attempt(self, batch: int) -> str:
        """Names a new folder for an attempt at a micro-batch.

        Args:
            batch: The number of the micro-batch.

        Returns:
            Its name, for `folder` and for the record.
        """
        return f"{batch}-{uuid.uuid4().hex}"

    def folder(self, attempt: str) -> str:
        """Returns the folder in which an attempt writes.

        Args:
            attempt: What `attempt` has given.

        Returns:
            The folder, for Spark.
        """
        return f"{self.path}/batches/{attempt}"

    def newest(self) -> int | None:
        """Returns the number of the newest committed micro-batch, if there is one.

        Returns:
            The number.
        """
        numbers = [int(name) for name in self._records() if name != _END]
        return max(numbers, default=None)

    def record(self, batch: int) -> dict[str, Any] | None:
        """Reads the record of a micro-batch.

        Args:
            batch: Its number.

        Returns:
            What was committed; None if it does not count.
        """
        name = f"{self.path}/batches/{batch}.json"
        return self.read(name) if self.exists(name) else None

    def commit(self, batch: int, record: dict[str, Any]) -> bool:
        """Lets a micro-batch count (C1).

        Args:
            batch: Its number.
            record: What is to be known of it.

        Returns:
            Whether it was this attempt that counts.
        """
        return self.write_once(f"{self.path}/batches/{batch}.json", record)

    def forget(self, before: int) -> None:
        """Removes what is no longer needed: all that is older than a micro-batch (C3).

        Args:
            before: The number of the oldest micro-batch that stays.
        """
        for status in self._listed():
            name = status.getPath().getName()
            number = name.removesuffix(".json").split("-")[0]
            if number.isdigit() and int(number) < before:
                self._files.delete(status.getPath(), True)

    def remove_rest(self, batch: int, attempt: str) -> None:
        """Removes other attempts at a micro-batch that counts.

        Args:
            batch: Its number.
            attempt: The attempt that counts.
        """
        for status in self._listed():
            name = status.getPath().getName()
            if name.startswith(f"{batch}-") and name != attempt:
                self._files.delete(status.getPath(), True)

    @property
    def is_finished(self) -> bool:
        """Whether everything has been closed, and nothing may follow."""
        return self.exists(f"{self.path}/batches/{_END}.json")

    def finish(self) -> None:
        """Says that nothing follows."""
        self.write_once(f"{self.path}/batches/{_END}.json", {})

    def qualified(self, path: str) -> str:
        """Qualifies the name of a file or folder with its scheme, so that every reader resolves it alike.

        Args:
            path: Any name that Spark knows, on any file system.

        Returns:
            The name.

        Example:
            >>> from penstock.spark import session
            >>> from penstock.spark._checkpoint import Checkpoint
            >>> Checkpoint(session(), "/data").qualified("/results/")
            'file:/results'
        """
        named = self._jvm.org.apache.hadoop.fs.Path(path)
        return str(named.getFileSystem(self._settings).makeQualified(named).toString()).rstrip("/")

    def exists(self, path: str) -> bool:
        """Tells whether a file or folder exists, on any file system.

        Args:
            path: Its name.

        Returns:
            Whether it is there.
        """
        return bool(self._files_of(path).exists(self._jvm.org.apache.hadoop.fs.Path(path)))

    def publish(self, source: str, target: str) -> bool:
        """Gives a folder its name, unless there is one of that name.

        Args:
            source: The folder under its hidden name.
            target: The name that it gets, on the same file system.

        Returns:
            Whether it got it.
        """
        path, files = self._jvm.org.apache.hadoop.fs.Path, self._files_of(target)
        if files.exists(path(target)):
            files.delete(path(source), True)
            return False
        return bool(files.rename(path(source), path(target)))

    def _files_of(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path).getFileSystem(self._settings)

    def _listed(self, name: str | None = None) -> list[Any]:
        folder = self._jvm.org.apache.hadoop.fs.Path(name or f"{self.path}/batches")
        files = self._files_of(str(folder))
        return list(files.listStatus(folder)) if files.exists(folder) else []

    def _records(self) -> list[str]:
        names = [status.getPath().getName() for status in self._listed()]
        return [name.removesuffix(".json") for name in names if name.endswith(".json") and name[0] != "."]

    def names_in(self, path: str) -> list[str]:
        """Lists a folder, on any file system.

        Args:
            path: The folder; there need not be one.

        Returns:
            The names in it, without hidden ones.
        """
        names = [str(status.getPath().getName()) for status in self._listed(path)]
        return sorted(name for name in names if name[0] not in "._")

    def read(self, name: str) -> dict[str, Any]:
        """Reads a file that `write_once` has written.

        Args:
            name: Its full name, on any file system.

        Returns:
            What was written.

        Raises:
            ValueError: It is damaged.
        """
        opened = self._files_of(name).open(self._jvm.org.apache.hadoop.fs.Path(name))
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toString(opened, "UTF-8")
        finally:
            opened.close()
        try:
            found = json.loads(text)
        except ValueError as error:
            raise ValueError(f"{name} cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise ValueError(f"{name} cannot be read: it is no record")
        return found

    def write_once(self, name: str, content: dict[str, Any]) -> bool:
        """Writes a small file that appears all at once, unless there is one of that name.

        Args:
            name: Its full name, on any file system.
            content: What JSON can say.

        Returns:
            Whether it was this one that was written.
        """
        path, files = self._jvm.org.apache.hadoop.fs.Path, self._files_of(name)
        folder, _, last = name.rpartition("/")
        hidden = path(f"{folder}/.{last}-{uuid.uuid4().hex}")
        written = files.create(hidden)
        try:
            written.write(json.dumps(content).encode())
        finally:
            written.close()
        if not self.exists(name) and files.rename(hidden, path(name)):
            return True
        files.delete(hidden, False)
        return False
