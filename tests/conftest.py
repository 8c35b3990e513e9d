"""Hypothesis profiles and the fixtures that more than one file uses.

The default profile draws the same examples in every run. `PENSTOCK_HYPOTHESIS=soak` draws many fresh ones
and prints what reproduces a failure.

The engine checks the laws of its watermarks in all tests, and in processes that inherit the environment. It
does not ask tasks that have gone idle to give memory back: that would wake them, and so hide that somebody
else did not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["PENSTOCK_CHECKS"] = "1"  # read when the engine is imported
os.environ["PENSTOCK_TRIM"] = "off"  # read when an engine starts

import penstock as ps
from reference.sizes import EXAMPLES, SOAK

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

settings.register_profile(
    "ci",
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=SLOW_IS_FINE,
)
settings.register_profile(
    "soak", max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=SLOW_IS_FINE
)
settings.load_profile("soak" if SOAK else "ci")

SNAPSHOTS = Path(__file__).parent / "snapshots"

# Files whose tests leave the blocks of engines on purpose while queries run. Everywhere else the warning of
# rows that are discarded is an error, like any other.
LEAVE_ROWS_BEHIND = {
    "test_leaving_sources",
    "test_paced_replays",
    "test_allowed_lateness",
    "test_async_sources",
    "test_bad_rows",
    "test_border",
    "test_clock_steps",
    "test_cogroup",
    "test_engine_api",
    "test_engine_configurations",
    "test_engine_draining",
    "test_engine_failures",
    "test_engine_fork",
    "test_engine_liveness",
    "test_engine_nesting",
    "test_engine_processes",
    "test_engine_sinks",
    "test_engine_sources",
    "test_engine_stopping",
    "test_failures_freed",
    "test_fairness",
    "test_graph",
    "test_join",
    "test_map_batches",
    "test_memory",
    "test_parallel",
    "test_query_as_data",
    "test_state_released",
    "test_time_sources",
    "test_wakeups",
    "test_watermark_function",
    "test_workload_tenants",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets those tests, and the campaigns of `soak`, leave rows behind."""
    ignored = pytest.mark.filterwarnings("ignore:leaving the engine has discarded")
    for item in items:
        if item.path.stem in LEAVE_ROWS_BEHIND or item.path.parent.name == "soak":
            item.add_marker(ignored)


@pytest.fixture
def snapshot() -> Callable[[str, str], None]:
    """Compares a text with `snapshots/<name>.txt`; `PENSTOCK_UPDATE_SNAPSHOTS=1` writes the file instead."""

    def check(name: str, text: str) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        if os.environ.get("PENSTOCK_UPDATE_SNAPSHOTS") == "1":
            path.write_text(text + "\n", encoding="utf-8")
        assert path.exists(), f"no {path.name}; write it with PENSTOCK_UPDATE_SNAPSHOTS=1 and read it"
        assert text + "\n" == path.read_text(encoding="utf-8"), f"{path.name} differs"

    return check


@pytest.fixture(params=["state", "threads"])
def engine(request: pytest.FixtureRequest) -> Iterator[ps.Engine]:
    """An engine in each mode."""
    with ps.Engine(workers=2, mode=request.param, budget="64MiB") as engine:
        yield engine
