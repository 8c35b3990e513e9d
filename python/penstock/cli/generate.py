"""The command `penstock data generate`."""

import argparse
from pathlib import Path

from penstock.cli.arguments import add_cores, assignment, row_count, unique
from penstock.workloads import catalog

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command.

    Args:
        parser: The parser of the command.

    Example:
        >>> import argparse
        >>> from penstock.cli import generate
        >>> parser = argparse.ArgumentParser()
        >>> generate.add(parser)
        >>> parser.parse_args(["ysb", "--rows", "2k", "--out", "events"]).rows
        2000
    """
    parser.description = (
        "Makes a data set with Spark: a folder of Parquet files with a manifest and checksums."
    )
    parser.add_argument("workload", metavar="WORKLOAD", help="see `penstock data list`")
    parser.add_argument(
        "--rows",
        type=row_count,
        help="rows in all tables together, e.g. 100M; by default all, where the data has an end",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    parser.add_argument("--seed", type=int, default=7, help="seed of the data (default 7)")
    parser.add_argument(
        "--partitions", type=int, help="files per table; the rows are the same for any number"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=assignment,
        metavar="NAME=VALUE",
        help="an option of the workload, e.g. out_of_order_ms=50; any number of times",
    )
    add_cores(parser)
    parser.set_defaults(command=run)


def run(asked: argparse.Namespace) -> int:
    """Generates a data set with Spark.

    Args:
        asked: The arguments.

    Returns:
        The exit code 0.

    Raises:
        ValueError: There is no such workload, or an option is unknown or given twice.

    Example:
        >>> import argparse
        >>> from penstock.cli import generate
        >>> generate.run(argparse.Namespace(workload="ybs"))
        Traceback (most recent call last):
        ValueError: ...
    """
    # What is wrong with these should not take a session of Spark to find out.
    workload = catalog.workload(asked.workload)
    options = workload.read_options(unique(asked.option))
    from penstock.spark import commands

    return commands.generate(
        workload.name,
        asked.out,
        rows=asked.rows,
        seed=asked.seed,
        partitions=asked.partitions,
        cores=asked.cores,
        options=options,
    )
