"""The command line: which commands there are, and how one of them is run."""

import argparse
import sys
from collections.abc import Callable, Sequence

from penstock._penstock import __version__
from penstock.cli import check, generate, list_workloads, validate

__all__ = ["main"]

_FAILED, _INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The command line, by default that of the process.

    Returns:
        The exit code: 0 when all is well, 1 when something differs, 2 when the command cannot be carried out.

    Example:
        >>> from penstock.cli import main
        >>> main(["data", "list"])  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
        workload     tables                queries
        -----------  --------------------  ----------------...
        ysb          events                ysb
        ...
        0
    """
    asked = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = asked.command
    try:
        return command(asked)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock", description="Penstock, a stream processing engine for one machine."
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    data = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "data", help="data sets for benchmarks", description="Data sets for benchmarks."
    )
    commands = data.add_subparsers(required=True, metavar="COMMAND")
    list_workloads.add(commands.add_parser("list", help="the workloads with their tables and queries"))
    generate.add(commands.add_parser("generate", help="make a data set with Spark"))
    validate.add(commands.add_parser("validate", help="check a data set, and the engine's answers by Spark"))
    check.add(commands.add_parser("check", help="all of it for all workloads: generate, verify, validate"))
    return parser
