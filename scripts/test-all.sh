#!/usr/bin/env bash
# Runs all tests, two suites at a time: Spark, the crates, Python, every configuration of the engine, and the stubs. Python
# sees the wheel that is installed in .venv. The longest come first.
#
# Rust tests have been built before, and no other suite compiles: see rule C1 in cargo-settings.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTEST=".venv/bin/python -m pytest -q -p no:cacheprovider"
mapfile -d '' -t configurations < <(scripts/test-configurations.sh --jobs)
exec scripts/side-by-side.sh \
    "Spark tests" "$PYTEST tests/spark" \
    "Python tests" "$PYTEST tests --ignore=tests/spark --ignore=tests/house/test_wheel.py" \
    "Rust tests" "scripts/cargo.sh test --workspace --locked --quiet" \
    "${configurations[@]}" \
    "Stubs against the binary" ".venv/bin/python -m mypy.stubtest penstock._penstock"
