#!/usr/bin/env bash
# install.sh FOLDER: installs the wheel of that folder into .venv, or does nothing when that very wheel is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wheel="$(ls "$1"/penstock-*.whl)"
stamp=".venv/.installed"
now="$(.venv/bin/python scripts/fingerprint.py "$wheel")"

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ]; then
    exit 0
fi
rm -f "$stamp"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "$wheel"
printf '%s\n' "$now" > "$stamp"
