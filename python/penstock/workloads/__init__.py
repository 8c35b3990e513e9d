"""Benchmark workloads: their queries, and the generated data that goes with them.

Every generated row is a pure function of the seed, the options and the row's number, so any part of a data
set can be made anywhere, and is the same everywhere.
"""

from penstock.workloads import catalog, cm, ipq, lrb, me, nexmark, nyt, sg, ysb

__all__ = ["catalog", "cm", "ipq", "lrb", "me", "nexmark", "nyt", "sg", "ysb"]
