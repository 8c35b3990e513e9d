"""The random campaign, for half a minute, each time from another seed: `python tests/soak` goes on longer.

What it finds is printed with its seed, which finds it again.
"""

from __future__ import annotations

import os

from soak import campaign

SECONDS = float(os.environ.get("PENSTOCK_SOAK_SECONDS", "30"))
JOBS = 2


def test_a_campaign_finds_nothing() -> None:
    first = campaign.draw_first()
    print(f"seeds from {first} on, for {SECONDS:.0f} s")
    report = campaign.hunt(first, SECONDS, JOBS, only=None, stop_at=3)
    assert not report.findings, "\n".join(f"seed {seed}: {what}" for seed, _, what in report.findings)
    assert sum(report.cases.values()) >= 10, "the machine was too busy for a campaign"
