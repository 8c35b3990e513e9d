"""Arguments that several commands have, and the types of their values."""

import argparse
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

__all__ = ["add_cores", "add_engine", "assignment", "read_count", "row_count", "unique"]

_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
_COUNT = re.compile(r"(?P<number>\d[\d_]*(?:\.\d+)?)(?P<unit>[kmgbt]?)", re.IGNORECASE)


def read_count(text: str) -> int:
    """Reads a number of rows as people write it.

    Args:
        text: Digits, optionally with `_` between them, and optionally followed by k, M, G (or B) or T.

    Returns:
        The number.

    Raises:
        ValueError: It is something else, or no whole number.

    Example:
        >>> from penstock.cli.arguments import read_count
        >>> read_count("100M"), read_count("1_000"), read_count("2.5k")
        (100000000, 1000, 2500)
        >>> read_count("ten")
        Traceback (most recent call last):
        ValueError: 'ten' is no number of rows: write 5000, 1_000, 2.5k, 100M or 1G
    """
    found = _COUNT.fullmatch(text.strip())
    count = Decimal(found["number"]) * _FACTORS[found["unit"].lower()] if found else Decimal("NaN")
    if found is None or count != count.to_integral_value():
        raise ValueError(f"{text!r} is no number of rows: write 5000, 1_000, 2.5k, 100M or 1G")
    return int(count)


def row_count(text: str) -> int:
    """Reads a number of rows, for `argparse`.

    Args:
        text: The value of the argument.

    Returns:
        The number.

    Raises:
        ArgumentTypeError: It is no number of rows.

    Example:
        >>> from penstock.cli.arguments import row_count
        >>> row_count("1M")
        1000000
    """
    try:
        return read_count(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def assignment(text: str) -> tuple[str, str]:
    """Splits `NAME=VALUE`, for `argparse`.

    Args:
        text: The value of the argument.

    Returns:
        The name and the value.

    Raises:
        ArgumentTypeError: One of the two is missing.

    Example:
        >>> from penstock.cli.arguments import assignment
        >>> assignment("rate=50")
        ('rate', '50')
    """
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def unique(assignments: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Collects assignments by name.

    Args:
        assignments: Names and values.

    Returns:
        The values by name.

    Raises:
        ValueError: A name is given twice.

    Example:
        >>> from penstock.cli.arguments import unique
        >>> unique([("rate", "50"), ("seed", "7")])
        {'rate': '50', 'seed': '7'}
    """
    found: dict[str, str] = {}
    for name, value in assignments:
        if name in found:
            raise ValueError(f"--option {name} is given twice: {found[name]} and {value}")
        found[name] = value
    return found


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Declares `--engine`: where the engine runs.

    Args:
        parser: The parser of a command.

    Example:
        >>> import argparse
        >>> from penstock.cli.arguments import add_engine
        >>> parser = argparse.ArgumentParser()
        >>> add_engine(parser)
        >>> parser.parse_args([]).engine
        'local'
    """
    parser.add_argument(
        "--engine",
        choices=["local", "executors"],
        default="local",
        help="where the engine runs: in this process (default), or inside the executors of Spark",
    )


def add_cores(parser: argparse.ArgumentParser) -> None:
    """Declares `--cores`: how many tasks Spark runs at a time.

    Args:
        parser: The parser of a command.

    Example:
        >>> import argparse
        >>> from penstock.cli.arguments import add_cores
        >>> parser = argparse.ArgumentParser()
        >>> add_cores(parser)
        >>> parser.parse_args(["--cores", "4"]).cores
        4
    """
    parser.add_argument("--cores", type=int, default=2, help="tasks that Spark runs side by side (default 2)")
