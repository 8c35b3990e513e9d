"""Random ways to run a pipeline, none of which changes the answer, and the account that each run keeps."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

import penstock as ps
from reference import configurations

SPREADING: Mapping[str, tuple[str | int, ...]] = {
    "parallelism": ("auto", 1, 2, 3, 5),
    "strategy": ("auto", "merge", "exchange"),
}
ACCOUNT = ("rows_contributed", "rows_filtered", "rows_late", "rows_shed", "rows_rejected")
RESULTS = ("late_results", "rejected_results")
"""Rows of the pipeline's own making that were left out: no part of the sum."""


def run_options() -> st.SearchStrategy[dict[str, Any]]:
    """Options of a run: the usual ones more often than others."""
    options = {**configurations.OPTIONS, **SPREADING}
    choices = {name: st.sampled_from(values) for name, values in options.items()}
    some = st.fixed_dictionaries({}, optional=choices)
    return st.one_of(st.just({}), some, some)


def run_all(outputs: ps.Outputs, data: Any, **options: Any) -> dict[str, ps.Result]:
    """Runs without the warning about late rows, and checks that every row is accounted for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.LateRowsWarning)
        results = outputs.run(data, **options)
    accounts = [account_of(result) for result in results.values()]
    assert all(account == accounts[0] for account in accounts), "all outputs have the counters of the run"
    return results


def run_one(stream: ps.Stream, data: Any, **options: Any) -> ps.Result:
    """The same, for one pipeline."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.LateRowsWarning)
        result = stream.run(data, **options)
    account_of(result)
    return result


def account_of(result: ps.Result) -> Mapping[str, int]:
    """What became of the rows; fails if one is missing, or was counted twice."""
    metrics = result.metrics()
    account = {name: metrics[name] for name in ("rows_in", "rows_copied", *ACCOUNT, *RESULTS)}
    assert all(isinstance(count, int) and count >= 0 for count in account.values()), account
    assert account["rows_in"] + account["rows_copied"] == sum(account[name] for name in ACCOUNT), account
    assert len(result) == result.rows_out
    return account
