"""The command `penstock data list`."""

import argparse

from penstock.display.tables import text_table
from penstock.workloads import catalog

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command.

    Args:
        parser: The parser of the command.

    Example:
        >>> import argparse
        >>> from penstock.cli import list_workloads
        >>> parser = argparse.ArgumentParser()
        >>> list_workloads.add(parser)
        >>> parser.parse_args(["ysb"]).workload
        'ysb'
    """
    parser.description = "Lists the workloads with their tables and queries."
    parser.add_argument("workload", nargs="?", metavar="WORKLOAD", help="one of them, with its options")
    parser.set_defaults(command=run)


def run(asked: argparse.Namespace) -> int:
    """Prints the workloads with their tables and queries, or the options of one workload.

    Args:
        asked: The arguments.

    Returns:
        The exit code 0.

    Raises:
        ValueError: There is no such workload.

    Example:
        >>> import argparse
        >>> from penstock.cli import list_workloads
        >>> list_workloads.run(argparse.Namespace(workload="nyt"))  # doctest: +ELLIPSIS
        option ...
        0
    """
    if asked.workload is not None:
        known = catalog.workload(asked.workload)
        print(
            text_table(["option", "default"], [[name, str(value)] for name, value in known.options.items()])
        )
        return 0
    rows = [
        [name, ", ".join(workload.tables), ", ".join(workload.queries)]
        for name, workload in catalog.CATALOG.items()
    ]
    print(text_table(["workload", "tables", "queries"], rows))
    return 0
