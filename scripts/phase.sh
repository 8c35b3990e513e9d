#!/usr/bin/env bash
# phase.sh TITLE COMMAND...: a heading, the command, and how long it took. Leaves with the command's exit code.
set -uo pipefail

title="$1"
shift
printf '\n== %s\n' "$title"
begin=$SECONDS
"$@"
code=$?
if [ "$code" -eq 0 ]; then
    printf -- '-- %s: %d s\n' "$title" "$((SECONDS - begin))"
else
    printf -- '-- %s: FAILED after %d s\n' "$title" "$((SECONDS - begin))" >&2
fi
exit "$code"
