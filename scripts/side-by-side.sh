#!/usr/bin/env bash
# side-by-side.sh TITLE COMMAND [TITLE COMMAND]...: runs commands of the shell two at a time, in this order. Each says
# how long it took when it has ended, with the last line of its output, or with all of it if it failed. Fails if one of
# them does, after all have ended.
#
# Most tests keep one core busy, and there are two.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

AT_A_TIME=2

if [ "${1:-}" = --one ]; then
    title="$2" begin=$SECONDS status=0
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    bash -euo pipefail -c "$3" > "$log" 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then
        printf -- '-- %s: %d s\n%s\n' "$title" "$((SECONDS - begin))" "$(tail -n 1 "$log")"
    else
        printf -- '%s\n-- %s: FAILED after %d s\n' "$(cat "$log")" "$title" "$((SECONDS - begin))"
    fi
    exit "$status"
fi

if [ $# -eq 0 ] || [ $(($# % 2)) -ne 0 ]; then
    echo "side-by-side.sh: TITLE COMMAND, and as many more of them as there are" >&2
    exit 2
fi
printf '%s\0' "$@" | xargs -0 -P "$AT_A_TIME" -n 2 bash scripts/side-by-side.sh --one
