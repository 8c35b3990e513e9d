#!/usr/bin/env bash
# Shows that the models of scripts/loom.sh can fail: each line of weakened.txt relaxes one ordering, or leaves one
# step out, and names a test that must fail then. Part of a name as argument: only the lines that contain it.
# Two lines at a time: each keeps one core busy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

LIST=crates/queue/tests/weakened.txt
TIMEOUT_S=120
AT_A_TIME=2

# How a test ends: passes, fails, or hangs.
outcome() {
    local status=0
    timeout "$TIMEOUT_S" "$1" --exact "$2" > /dev/null 2>&1 || status=$?
    case "$status" in
        0) echo passes ;;
        124) echo hangs ;;
        *) echo fails ;;
    esac
}

if [ "${1:-}" = --one ]; then
    IFS=$'\t' read -r name binary test <<< "$2"
    found="$(PENSTOCK_WEAKEN="$name" outcome "$binary" "$test")"
    # A test that fails anyway shows nothing. An empty name: the test as it is.
    wanted=fails
    [ "$name" != - ] || wanted=passes
    mark=ok
    [ "$found" = "$wanted" ] || mark=WRONG
    printf '%-5s  without %-26s  %s %s\n' "$mark" "$name" "$test" "$found"
    exit 0
fi

# Here and not only in loom.sh: the tests must stay those that were built here until the last one has run.
source scripts/cargo-settings.sh
export LOOM_MAX_PREEMPTIONS=2
unset PENSTOCK_WEAKEN

declare -A place_of
while read -r binary; do
    while read -r test; do
        place_of["${test##*::}"]="$binary"$'\t'"$test"
    done < <("$binary" --list --format terse | sed -n 's/: test$//p')
done < <(scripts/loom.sh --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')

jobs=()
declare -A sound
while read -r name test; do
    place="${place_of[$test]:-/dev/null$'\t'$test}"
    [ -n "${sound[$test]:-}" ] || jobs+=("-"$'\t'"$place")
    sound["$test"]=yes
    jobs+=("$name"$'\t'"$place")
done < <(sed 's/#.*//' "$LIST" | grep --fixed-strings -- "${1:-}" | awk 'NF == 2')

if [ "${#jobs[@]}" -eq 0 ]; then
    echo "no line of $LIST to check" >&2
    exit 1
fi
printf '%s\0' "${jobs[@]}" | xargs -0 -P "$AT_A_TIME" -n 1 bash scripts/loom-weakened.sh --one |
    { grep --invert-match '^ok     without - ' || true; } | tee /dev/stderr |
    awk '$1 == "WRONG" { wrong++ } END { printf "%d checked, %d wrong\n", NR, wrong; exit wrong > 0 || NR == 0 }'
