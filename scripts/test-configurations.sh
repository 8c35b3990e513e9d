#!/usr/bin/env bash
# test-configurations.sh [SETTINGS...] [-- PYTEST ARGUMENTS...]: runs the Python tests of behaviour again, once in
# each configuration of the engine: no answer may depend on blocks, chains, the kind of memory, workers or policies.
#
# SETTINGS are the variables of one configuration, in one word: "PENSTOCK_CHAIN=off PENSTOCK_BLOCK_ROWS=3". Without
# any it is the list below. `--jobs` prints what side-by-side.sh takes for it, separated by zeros, and runs nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CONFIGURATIONS=(
    "PENSTOCK_CHAIN=off PENSTOCK_BLOCK_ROWS=1 PENSTOCK_POLICY=fcfs PENSTOCK_WORKERS=2"
    "PENSTOCK_BLOCK_ROWS=7 PENSTOCK_POLICY=rr PENSTOCK_WORKERS=3 PENSTOCK_PARALLELISM=3 PENSTOCK_STRATEGY=exchange"
    "PENSTOCK_CHAIN=off PENSTOCK_MEMORY=queue PENSTOCK_MODE=threads PENSTOCK_PARALLELISM=2"
    "PENSTOCK_PLATFORM=portable PENSTOCK_WORKERS=2 PENSTOCK_PARALLELISM=4 PENSTOCK_STRATEGY=merge"
)
# What says nothing about the engine's answers, or only about single expressions, whose property tests stay; and what
# chooses its configurations itself: engines, which have a cover of all options of their own, workloads, functions.
LEFT_OUT=(
    house spark test_memory.py test_options.py test_map_batches.py
    test_docstrings.py test_examples.py test_readme.py test_plan_json.py test_plans.py test_interrupt.py
    test_hostile_arrow.py
    test_cast.py test_expression_functions.py test_expression_rules.py test_temporal.py test_when.py
)
LEFT_OUT_GLOBS="--ignore-glob='tests/test_engine_*.py' --ignore-glob='tests/test_workload_*.py'"

# Settings of the caller must not mix with those of a configuration. Fewer random examples and shorter streams than in
# the first round: see tests/reference/sizes.py.
CLEAN="env -u PENSTOCK_MEMORY -u PENSTOCK_CHAIN -u PENSTOCK_BUDGET -u PENSTOCK_BLOCK_ROWS -u PENSTOCK_CHUNK_BLOCKS \
-u PENSTOCK_PLATFORM -u PENSTOCK_POLICY -u PENSTOCK_MODE -u PENSTOCK_WORKERS -u PENSTOCK_PARALLELISM \
-u PENSTOCK_STRATEGY PENSTOCK_SMALLER_TESTS=${PENSTOCK_SMALLER_TESTS:-5}"

is_listing=
if [ "${1:-}" = --jobs ]; then
    is_listing=yes
    shift
fi
given=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    given+=("$1")
    shift
done
[ $# -eq 0 ] || shift
[ "${#given[@]}" -eq 0 ] || CONFIGURATIONS=("${given[@]}")

jobs=()
for settings in "${CONFIGURATIONS[@]}"; do
    # The cache of pytest is one folder, which several at a time would fight over.
    jobs+=("$settings" "$CLEAN $settings .venv/bin/python -m pytest tests -q -p no:cacheprovider \
${LEFT_OUT[*]/#/--ignore=tests/} $LEFT_OUT_GLOBS ${*@Q}")
done
if [ -n "$is_listing" ]; then
    printf '%s\0' "${jobs[@]}"
else
    exec scripts/side-by-side.sh "${jobs[@]}"
fi
