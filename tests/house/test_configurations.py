"""`make test-configurations` runs the property tests in every configuration; one failure is enough."""

import itertools
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "test-configurations.sh"
CONFIGURATIONS = [
    dict(setting.split("=") for setting in line.split())
    for line in re.findall(r'^    "(CHAIN=.*)"$', SCRIPT.read_text(), re.MULTILINE)
]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # `make soak`, which runs this too, sets it.
    outside = {name: value for name, value in os.environ.items() if name != "PENSTOCK_WHOLE_SUITE"}
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments],
        env=outside | environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_every_two_values_of_two_options_meet() -> None:
    assert len(CONFIGURATIONS) >= 9
    values = {name: {c[name] for c in CONFIGURATIONS} for name in CONFIGURATIONS[0]}
    assert len(values) == 9
    assert min(len(found) for found in values.values()) >= 2
    for (one, a), (other, b) in itertools.combinations(values.items(), 2):
        met = {(c[one], c[other]) for c in CONFIGURATIONS}
        assert met == set(itertools.product(a, b)), (one, other)


def test_a_configuration_has_all_property_tests_or_the_whole_suite() -> None:
    settings = "PENSTOCK_CHAIN=off"
    properties = run(settings, "--", "--collect-only")
    whole = run(settings, "--", "--collect-only", PENSTOCK_WHOLE_SUITE="1")
    found = re.search(r"^(\d+)/(\d+) tests collected", properties.stdout, re.MULTILINE)
    assert found, properties.stdout + properties.stderr
    assert int(found[1]) > 100
    all_of_them = re.search(r"^(\d+) tests collected", whole.stdout, re.MULTILINE)
    assert all_of_them, whole.stdout + whole.stderr
    assert int(all_of_them[1]) >= int(found[2])
    assert int(all_of_them[1]) > 1_000


def test_of_three_configurations_in_a_row_one_has_the_whole_suite_and_the_others_their_properties() -> None:
    listed = run("--jobs", "build/timings", PENSTOCK_WHOLE_SUITE="third").stdout.split("\0")
    whole = [" -m hypothesis " not in command for command in listed[1::2]]
    assert len(whole) == len(CONFIGURATIONS)
    assert all(sum(whole[first : first + 3]) == 1 for first in range(len(whole) - 2)), whole


def test_the_settings_reach_the_engine_and_a_failure_is_a_failure() -> None:
    good, bad = "PENSTOCK_CHAIN=off PENSTOCK_BLOCK_ROWS=2", "PENSTOCK_CHAIN=sideways"
    chosen = ("--", "-k", "test_the_length_is_the_number_of_rows")
    done = run(good, bad, *chosen, PENSTOCK_WHOLE_SUITE="1")
    assert done.returncode != 0
    assert re.search(rf"^-- {good}: \d+ s\n1 passed", done.stdout, re.MULTILINE), done.stdout
    assert f"-- {bad}: FAILED" in done.stdout
    assert 'PENSTOCK_CHAIN is "auto" or "off", not "sideways"' in done.stdout


def test_no_test_at_all_is_a_failure() -> None:
    done = run("PENSTOCK_CHAIN=off", "--", "-k", "there_is_no_such_test")
    assert done.returncode != 0
    assert "FAILED" in done.stdout
