#!/usr/bin/env bash
# Shows that the models of scripts/loom.sh can fail: each line of weakened.txt relaxes one ordering, or leaves one
# step out, and names a test that must fail then. Part of a name as argument: only the lines that contain it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Here and not only in loom.sh: the tests must stay those that were built here until the last one has run.
source scripts/cargo-settings.sh

LIST=crates/queue/tests/weakened.txt
TIMEOUT_S=120
export LOOM_MAX_PREEMPTIONS=2
unset PENSTOCK_WEAKEN

declare -A binary_of
while read -r binary; do
    while read -r test; do
        binary_of["$test"]="$binary"
    done < <("$binary" --list --format terse | sed -n 's/: test$//p')
done < <(scripts/loom.sh --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')

# How the test $1 ends: passes, fails, or hangs.
outcome() {
    local status=0
    timeout "$TIMEOUT_S" "${binary_of[$1]}" --exact "$1" > /dev/null 2>&1 || status=$?
    case "$status" in
        0) echo passes ;;
        124) echo hangs ;;
        *) echo fails ;;
    esac
}

declare -A sound
checked=0
wrong=0
while read -r name test; do
    if [ -z "${binary_of[$test]:-}" ]; then
        found="is missing"
    else
        # A test that fails anyway shows nothing.
        sound["$test"]="${sound[$test]:-$(outcome "$test")}"
        if [ "${sound[$test]}" = passes ]; then
            found="$(PENSTOCK_WEAKEN="$name" outcome "$test")"
        else
            found="${sound[$test]} as it is"
        fi
    fi
    mark=ok
    [ "$found" = fails ] || { mark=WRONG; wrong=$((wrong + 1)); }
    checked=$((checked + 1))
    printf '%-5s  without %-26s  %s %s\n' "$mark" "$name" "$test" "$found"
done < <(sed 's/#.*//' "$LIST" | grep --fixed-strings -- "${1:-}" | awk 'NF == 2')

if [ "$checked" -eq 0 ]; then
    echo "no line of $LIST to check" >&2
    exit 1
fi
echo "$checked checked, $wrong wrong"
[ "$wrong" -eq 0 ]
