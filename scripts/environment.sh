#!/usr/bin/env bash
# Makes .venv from the locked requirements, or does nothing when it is already what they say.
#
# The stamp is written last and names everything the environment was made from, so an interrupted install,
# a changed lock, another interpreter and a clone that was moved all lead to a new environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PENSTOCK_PYTHON:-python3}"
stamp=".venv/.made-from"
now="$("$python" scripts/fingerprint.py requirements scripts/environment.sh --also "$PWD" --also-interpreter)"

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && .venv/bin/python -c '' 2> /dev/null; then
    exit 0
fi

install_all() {
    rm -rf .venv
    "$python" -m venv .venv
    # First what source packages are built with, then the rest: nothing outside the lock is ever installed.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.txt
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-build-isolation \
        -r requirements/dev.txt
    printf '%s\n' "$now" > "$stamp"
}
export -f install_all
export python now stamp
scripts/phase.sh "Python environment (.venv)" bash -euo pipefail -c install_all
