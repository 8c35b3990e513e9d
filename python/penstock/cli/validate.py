"""The command `penstock data validate`."""

import argparse
from pathlib import Path

from penstock.cli.arguments import add_cores, add_engine
from penstock.workloads import catalog

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command.

    Args:
        parser: The parser of the command.

    Example:
        >>> import argparse
        >>> from penstock.cli import validate
        >>> parser = argparse.ArgumentParser()
        >>> validate.add(parser)
        >>> parser.parse_args(["ysb", "--data", "events"]).engine
        'local'
    """
    parser.description = (
        "Checks the files of a data set, and compares the engine's answers over it with those that Spark "
        "computes. The exit code is 1 if anything differs."
    )
    parser.add_argument("workload", metavar="WORKLOAD", help="see `penstock data list`")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, metavar="DIR", help="a data set of `penstock data generate`")
    source.add_argument(
        "--file", type=Path, help="a published file instead: for the workloads cm, sg, me and lrb"
    )
    parser.add_argument("--query", help="one query; by default all of the workload")
    parser.add_argument(
        "--result",
        type=Path,
        metavar="FILE",
        help="the answer to that query, in Parquet or Arrow IPC; by default the engine is run",
    )
    add_engine(parser)
    add_cores(parser)
    parser.set_defaults(command=run)


def run(asked: argparse.Namespace) -> int:
    """Checks a data set, and compares the engine's answers over it with those of Spark.

    Args:
        asked: The arguments.

    Returns:
        The exit code: 0 if all answers are equal, 1 if any differs.

    Raises:
        ValueError: There is no such workload or query, or the arguments contradict each other.

    Example:
        >>> import argparse
        >>> from penstock.cli import validate
        >>> validate.run(argparse.Namespace(workload="ybs"))
        Traceback (most recent call last):
        ValueError: ...
    """
    workload = catalog.workload(asked.workload)
    if asked.query is not None:
        workload.query(asked.query)
    if asked.result is not None and asked.query is None and len(workload.queries) > 1:
        names = ", ".join(workload.queries)
        raise ValueError(f"--result needs --query: which of {names} is it the answer to?")
    if asked.result is not None and asked.engine != "local":
        raise ValueError(f"--result is an answer already: --engine {asked.engine} has nothing to run")
    from penstock.spark import commands

    return commands.validate(
        workload.name,
        data=asked.data,
        file=asked.file,
        query=asked.query,
        result=asked.result,
        engine=asked.engine,
        cores=asked.cores,
    )
