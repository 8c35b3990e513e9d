"""The command `penstock`: data for benchmarks, made and checked with Spark.

    penstock data list
    penstock data generate ysb --rows 100M --out data/ysb
    penstock data validate ysb --data data/ysb
    penstock data check

The exit code is 0 if every check passes, 1 if something differs from what it should be, and 2 if the command
cannot be carried out.

Each command is a file with two functions: `add` declares its arguments, `run` carries it out. `run` checks
the arguments before it imports Spark.
"""

from penstock.cli.parser import main

__all__ = ["main"]
