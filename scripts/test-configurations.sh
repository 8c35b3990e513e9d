#!/usr/bin/env bash
# test-configurations.sh [SETTINGS...] [-- PYTEST ARGUMENTS...]: runs property tests again, once in each configuration of
# the engine: no answer may depend on blocks, chains, the kind of memory, workers or policies.
#
# SETTINGS are the variables of one configuration, in one word: "PENSTOCK_CHAIN=off PENSTOCK_BLOCK_ROWS=3". Without
# any it is the list below, in which every two values of two options meet. PENSTOCK_WHOLE_SUITE=1 runs all tests of
# behaviour, not only the properties. `--jobs FOLDER` prints what side_by_side.py takes for it, separated by zeros, and
# runs nothing; the jobs leave the time of each test in that folder. `--needs TITLE`: they wait for the job of that title.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# tests/house/test_configurations.py checks that every pair is here.
CONFIGURATIONS=(
    "CHAIN=off  BLOCK_ROWS=1 POLICY=rr       WORKERS=1 PARALLELISM=1 STRATEGY=exchange MEMORY=queue  MODE=threads PLATFORM=portable"
    "CHAIN=auto BLOCK_ROWS=  POLICY=fcfs     WORKERS=1 PARALLELISM=2 STRATEGY=merge    MEMORY=blocks MODE=state   PLATFORM="
    "CHAIN=auto BLOCK_ROWS=  POLICY=rr       WORKERS=3 PARALLELISM=3 STRATEGY=exchange MEMORY=queue  MODE=threads PLATFORM="
    "CHAIN=off  BLOCK_ROWS=7 POLICY=adaptive WORKERS=3 PARALLELISM=1 STRATEGY=merge    MEMORY=blocks MODE=state   PLATFORM="
    "CHAIN=off  BLOCK_ROWS=7 POLICY=fcfs     WORKERS=2 PARALLELISM=3 STRATEGY=exchange MEMORY=queue  MODE=state   PLATFORM=portable"
    "CHAIN=auto BLOCK_ROWS=1 POLICY=adaptive WORKERS=2 PARALLELISM=2 STRATEGY=exchange MEMORY=blocks MODE=threads PLATFORM="
    "CHAIN=auto BLOCK_ROWS=  POLICY=adaptive WORKERS=1 PARALLELISM=3 STRATEGY=merge    MEMORY=queue  MODE=threads PLATFORM=portable"
    "CHAIN=off  BLOCK_ROWS=7 POLICY=rr       WORKERS=3 PARALLELISM=2 STRATEGY=merge    MEMORY=queue  MODE=state   PLATFORM=portable"
    "CHAIN=auto BLOCK_ROWS=1 POLICY=fcfs     WORKERS=3 PARALLELISM=3 STRATEGY=merge    MEMORY=blocks MODE=state   PLATFORM="
    "CHAIN=off  BLOCK_ROWS=  POLICY=rr       WORKERS=2 PARALLELISM=1 STRATEGY=merge    MEMORY=blocks MODE=state   PLATFORM=portable"
    "CHAIN=auto BLOCK_ROWS=7 POLICY=fcfs     WORKERS=1 PARALLELISM=1 STRATEGY=exchange MEMORY=blocks MODE=threads PLATFORM="
)
# What says nothing about the engine's answers, or only about single expressions, whose property tests stay; and what
# chooses its configurations itself: engines, which have a cover of all options of their own, workloads, functions.
LEFT_OUT=(
    house soak spark test_memory.py test_options.py test_fairness.py test_map_batches.py
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
# Only the files that have properties: collecting the others would take longer than running these. Files that are
# named on the command line are collected even if they are to be ignored, so those are taken out here.
with_properties() {
    grep --files-with-matches '@given' tests/test_*.py |
        grep --invert-match --extended-regexp "tests/($(printf '%s|' "${LEFT_OUT[@]}" test_engine_ test_workload_ | sed 's/|$//'))" |
        tr '\n' ' '
}
PROPERTIES="-m hypothesis $(with_properties)"
DAY=$(($(date +%s) / 86400))
# What to run in the configuration of that number.
chosen() {
    case "${PENSTOCK_WHOLE_SUITE:-}" in
        1) echo tests ;;
        third) [ $((($1 + DAY) % 3)) -ne 0 ] && echo "$PROPERTIES" || echo tests ;;
        *) echo "$PROPERTIES" ;;
    esac
}

folder= needs=
if [ "${1:-}" = --jobs ]; then
    folder="$2"
    shift 2
fi
if [ "${1:-}" = --needs ]; then
    needs=" < $2"
    shift 2
fi
given=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    given+=("$1")
    shift
done
[ $# -eq 0 ] || shift
if [ "${#given[@]}" -eq 0 ]; then
    for configuration in "${CONFIGURATIONS[@]}"; do
        settings=
        for setting in $configuration; do
            # Without a value: as it is by default.
            [ "${setting#*=}" = "" ] || settings+="${settings:+ }PENSTOCK_$setting"
        done
        given+=("$settings")
    done
fi

jobs=()
for settings in "${given[@]}"; do
    number=$((${#jobs[@]} / 2 + 1))
    # The cache of pytest is one folder, which several at a time would fight over.
    jobs+=("$settings$needs" "$CLEAN $settings .venv/bin/python -m pytest -q -p no:cacheprovider $(chosen $number) \
${folder:+--junitxml=$folder/configuration-$number.xml} \
${LEFT_OUT[*]/#/--ignore=tests/} $LEFT_OUT_GLOBS ${*@Q}")
done
if [ -n "$folder" ]; then
    printf '%s\0' "${jobs[@]}"
else
    exec "${PENSTOCK_PYTHON:-python3}" scripts/side_by_side.py "${jobs[@]}"
fi
