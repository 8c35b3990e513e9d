#!/usr/bin/env bash
# test-configurations.sh [SETTINGS...] [-- PYTEST ARGUMENTS...]: runs the Python tests of behaviour again, once in
# each configuration of the engine: no answer may depend on blocks, chains, the kind of memory, workers or policies.
#
# SETTINGS are the variables of one configuration, in one word: "PENSTOCK_CHAIN=off PENSTOCK_BLOCK_ROWS=3". Without
# any it is the list below. Two run at a time. Each prints its result when it is done, and all of its output if it
# failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

AT_A_TIME=2
CONFIGURATIONS=(
    "PENSTOCK_CHAIN=off PENSTOCK_BLOCK_ROWS=1 PENSTOCK_POLICY=fcfs PENSTOCK_WORKERS=2"
    "PENSTOCK_BLOCK_ROWS=7 PENSTOCK_POLICY=rr PENSTOCK_WORKERS=3 PENSTOCK_PARALLELISM=3 PENSTOCK_STRATEGY=exchange"
    "PENSTOCK_CHAIN=off PENSTOCK_PLATFORM=portable PENSTOCK_MODE=threads"
    "PENSTOCK_CHAIN=off PENSTOCK_MEMORY=queue PENSTOCK_WORKERS=2 PENSTOCK_PARALLELISM=2"
    "PENSTOCK_WORKERS=2 PENSTOCK_PARALLELISM=4 PENSTOCK_STRATEGY=merge"
)
# What says nothing about the engine's answers, and what chooses its configurations itself: the tests of engines among
# them have a cover of all options of their own.
LEFT_OUT=(house spark test_memory.py test_options.py)
LEFT_OUT_GLOB='tests/test_engine_*.py'

# run_one SETTINGS PYTEST ARGUMENTS...: the tests in one configuration.
run_one() {
    local settings="$1" begin=$SECONDS status=0 log
    shift
    log="$(mktemp)"
    # The cache of pytest is one folder, which several at a time would fight over.
    env $settings .venv/bin/python -m pytest tests -q -p no:cacheprovider "${LEFT_OUT[@]/#/--ignore=tests/}" \
        --ignore-glob="$LEFT_OUT_GLOB" "$@" \
        > "$log" 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then
        printf -- '-- %s: %d s\n%s\n' "$settings" "$((SECONDS - begin))" "$(tail -n 1 "$log")"
    else
        printf -- '%s\n-- %s: FAILED after %d s\n' "$(cat "$log")" "$settings" "$((SECONDS - begin))"
    fi
    rm -f "$log"
    return "$status"
}

if [ "${1:-}" = --one ]; then
    shift
    run_one "$@"
    exit
fi

given=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    given+=("$1")
    shift
done
[ $# -eq 0 ] || shift
[ "${#given[@]}" -eq 0 ] || CONFIGURATIONS=("${given[@]}")

# Fewer random examples and shorter streams than in the first round: see tests/reference/sizes.py.
export PENSTOCK_SMALLER_TESTS="${PENSTOCK_SMALLER_TESTS:-3}"
unset PENSTOCK_MEMORY PENSTOCK_CHAIN PENSTOCK_BUDGET PENSTOCK_BLOCK_ROWS PENSTOCK_CHUNK_BLOCKS PENSTOCK_PLATFORM
unset PENSTOCK_POLICY PENSTOCK_MODE PENSTOCK_WORKERS PENSTOCK_PARALLELISM PENSTOCK_STRATEGY

# xargs fails when one of them does, after all have ended.
printf '%s\n' "${CONFIGURATIONS[@]}" | xargs -P "$AT_A_TIME" -I '{}' bash scripts/test-configurations.sh --one '{}' "$@"
