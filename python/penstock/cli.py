"""The command `penstock`: data for benchmarks, made and checked with Spark.

    penstock data list
    penstock data generate ysb --rows 100M --out data/ysb
    penstock data validate ysb --data data/ysb
    penstock data check

The exit code is 0 when all is well, 1 when something differs from what it should be, and 2 when the command
cannot do what it was asked for.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from penstock import __version__
from penstock.counting import read_count
from penstock.rendering import text_table
from penstock.workloads import catalog

__all__ = ["main"]

_FINE, _WRONG, _INTERRUPTED = 0, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

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
        return _WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock", description="Penstock, a stream processing engine for one machine."
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    data = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "data", help="data sets for benchmarks", description="Data sets for benchmarks."
    )
    commands = data.add_subparsers(required=True, metavar="COMMAND")
    _add_list(commands.add_parser("list", help="the workloads with their tables and queries"))
    _add_generate(commands.add_parser("generate", help="make a data set with Spark"))
    _add_validate(commands.add_parser("validate", help="check a data set, and the engine's answers by Spark"))
    _add_check(commands.add_parser("check", help="all of it for all workloads: generate, verify, validate"))
    return parser


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lists the workloads with their tables and queries."
    parser.add_argument("workload", nargs="?", metavar="WORKLOAD", help="one of them, with its options")
    parser.set_defaults(command=_list)


def _add_generate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Makes a data set with Spark: a folder of Parquet files with a manifest and checksums."
    )
    parser.add_argument("workload", metavar="WORKLOAD", help="see `penstock data list`")
    parser.add_argument(
        "--rows",
        type=_count,
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
        type=_assignment,
        metavar="NAME=VALUE",
        help="an option of the workload, e.g. out_of_order_ms=50; any number of times",
    )
    _add_cores(parser)
    parser.set_defaults(command=_generate)


def _add_validate(parser: argparse.ArgumentParser) -> None:
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
    _add_engine(parser)
    _add_cores(parser)
    parser.set_defaults(command=_validate)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Generates a data set for each workload and each seed, checks its files, and compares the engine's "
        "answers to all queries with those that Spark computes. The exit code is 1 if anything differs."
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="by default all of them")
    parser.add_argument(
        "--rows", type=_count, default=1_000_000, help="rows of each data set, in all tables (default 1M)"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[7, 11], metavar="SEED", help="seeds (default 7 11)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="a folder to keep the data sets in")
    _add_engine(parser)
    _add_cores(parser)
    parser.set_defaults(command=_check)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=["local", "executors"],
        default="local",
        help="where the engine runs: in this process (default), or inside the executors of Spark",
    )


def _add_cores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cores", type=int, default=2, help="tasks that Spark runs side by side (default 2)")


def _list(asked: argparse.Namespace) -> int:
    if asked.workload is not None:
        known = catalog.workload(asked.workload)
        print(
            text_table(["option", "default"], [[name, str(value)] for name, value in known.options.items()])
        )
        return _FINE
    rows = [
        [name, ", ".join(workload.tables), ", ".join(workload.queries)]
        for name, workload in catalog.CATALOG.items()
    ]
    print(text_table(["workload", "tables", "queries"], rows))
    return _FINE


def _generate(asked: argparse.Namespace) -> int:
    # What is wrong with these should not take a session of Spark to find out.
    workload = catalog.workload(asked.workload)
    options = workload.read_options(_unique(asked.option))
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


def _validate(asked: argparse.Namespace) -> int:
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


def _check(asked: argparse.Namespace) -> int:
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


def _count(text: str) -> int:
    try:
        return read_count(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def _unique(assignments: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in assignments:
        if name in found:
            raise ValueError(f"--option {name} is given twice: {found[name]} and {value}")
        found[name] = value
    return found


if __name__ == "__main__":
    sys.exit(main())
