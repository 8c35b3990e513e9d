#!/usr/bin/env bash
# passed-before.sh NAME PATH... -- COMMAND...: runs COMMAND, unless it has passed before over the same content of all PATHs
# with the same compiler. For checks whose outcome is a function of these: exhaustive models, not random draws.
#
# What has passed is remembered in the shared compile cache if there is one (see cargo-settings.sh), else in ./target,
# as one empty file per fingerprint: a fresh machine remembers nothing and runs everything. PENSTOCK_FORGET=1 runs the
# command anyway.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name="$1"
shift
paths=()
while [ "$1" != -- ]; do
    paths+=("$1")
    shift
done
shift

# Without the lock: an empty file is either there or not.
folder="$(
    source scripts/shared-cache.sh
    shared_cache
)"
[ -n "$folder" ] && mkdir -p "$folder/passed" 2> /dev/null && [ -w "$folder/passed" ] || folder=target
mkdir -p "$folder/passed"

python=.venv/bin/python
[ -x "$python" ] || python="${PENSTOCK_PYTHON:-python3}"
stamp="$folder/passed/$name-$("$python" scripts/fingerprint.py "${paths[@]}" \
    --also "$(rustc --version)" --also "${RUSTFLAGS:-}" --also "$*")"

if [ -e "$stamp" ] && [ "${PENSTOCK_FORGET:-}" != 1 ]; then
    echo "passed before, over the same sources"
    exit 0
fi
"$@"
# Those of older sources are of no use any more.
find "$folder/passed" -name "$name-*" -mtime +30 -delete
: > "$stamp"
