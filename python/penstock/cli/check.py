"""The command `penstock data check`."""

import argparse
from pathlib import Path

from penstock.cli.arguments import add_cores, add_engine, row_count
from penstock.workloads import catalog

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command.

    Args:
        parser: The parser of the command.

    Example:
        >>> import argparse
        >>> from penstock.cli import check
        >>> parser = argparse.ArgumentParser()
        >>> check.add(parser)
        >>> parser.parse_args(["ysb", "--seeds", "3"]).seeds
        [3]
    """
    parser.description = (
        "Generates a data set for each workload and each seed, checks its files, and compares the engine's "
        "answers to all queries with those that Spark computes. The exit code is 1 if anything differs."
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="by default all of them")
    parser.add_argument(
        "--rows", type=row_count, default=1_000_000, help="rows of each data set, in all tables (default 1M)"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[7, 11], metavar="SEED", help="seeds (default 7 11)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="a folder to keep the data sets in")
    add_engine(parser)
    add_cores(parser)
    parser.set_defaults(command=run)


def run(asked: argparse.Namespace) -> int:
    """Generates data sets of the workloads, and validates each of them.

    Args:
        asked: The arguments.

    Returns:
        The exit code: 0 if all data sets are intact and all answers equal, 1 if not.

    Raises:
        ValueError: There is no such workload.

    Example:
        >>> import argparse
        >>> from penstock.cli import check
        >>> check.run(argparse.Namespace(workloads=["ybs"]))
        Traceback (most recent call last):
        ValueError: ...
    """
    for name in asked.workloads:
        catalog.workload(name)
    from penstock.spark import commands

    return commands.check(
        asked.workloads,
        rows=asked.rows,
        seeds=asked.seeds,
        out=asked.out,
        engine=asked.engine,
        cores=asked.cores,
    )
