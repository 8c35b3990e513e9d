#!/usr/bin/env bash
# Runs all tests of the wheel that is installed in .venv, two suites at a time: Spark, Python, every configuration of the
# engine, and the stubs. The longest come first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTEST=".venv/bin/python -m pytest -q -p no:cacheprovider"
mapfile -d '' -t configurations < <(scripts/test-configurations.sh --jobs)
exec scripts/side-by-side.sh \
    "Spark tests" "$PYTEST tests/spark" \
    "Python tests" "$PYTEST tests --ignore=tests/spark --ignore=tests/house/test_wheel.py" \
    "${configurations[@]}" \
    "Stubs against the binary" ".venv/bin/python -m mypy.stubtest penstock._penstock"
