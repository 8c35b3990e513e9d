"""`make test-configurations` runs many tests in every configuration, and fails when one of them fails."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "test-configurations.sh"
CONFIGURATIONS = re.findall(r'^    "(PENSTOCK_.*)"$', SCRIPT.read_text(), re.MULTILINE)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def test_every_configuration_has_hundreds_of_tests() -> None:
    done = run("--", "--collect-only")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^-- (.*): \d+ s\n(\d+) tests collected", done.stdout, re.MULTILINE)
    assert len(CONFIGURATIONS) >= 4
    assert sorted(settings for settings, _ in found) == sorted(CONFIGURATIONS)
    assert min(int(tests) for _, tests in found) > 400, found


def test_the_settings_reach_the_engine_and_a_failure_is_a_failure() -> None:
    good, bad = "PENSTOCK_CHAIN=off PENSTOCK_BLOCK_ROWS=2", "PENSTOCK_CHAIN=sideways"
    done = run(good, bad, "--", "-k", "test_the_length_is_the_number_of_rows")
    assert done.returncode != 0
    assert re.search(rf"^-- {good}: \d+ s\n1 passed", done.stdout, re.MULTILINE), done.stdout
    assert f"-- {bad}: FAILED" in done.stdout
    assert 'PENSTOCK_CHAIN is "auto" or "off", not "sideways"' in done.stdout


def test_no_test_at_all_is_a_failure() -> None:
    done = run("PENSTOCK_CHAIN=off", "--", "-k", "there_is_no_such_test")
    assert done.returncode != 0
    assert "FAILED" in done.stdout
