#!/usr/bin/env bash
# wheel.sh [--quick]: builds the release wheel into dist/, or one that is compiled in less time into build/quick. Does
# nothing when the one there was built from the same sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cargo-settings.sh

folder=dist profile=release
if [ "${1:-}" = --quick ]; then
    folder=build/quick profile=quick
fi
stamp="$folder/.built-from"
now="$(.venv/bin/python scripts/fingerprint.py \
    Cargo.toml Cargo.lock crates python pyproject.toml README.md LICENSE --also "$(rustc --version)")"

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && ls "$folder"/penstock-*.whl > /dev/null 2>&1; then
    echo "up to date: $(ls "$folder"/penstock-*.whl)"
    exit 0
fi

# No old wheel may be taken for the new one when the build fails.
rm -f "$stamp" "$folder"/penstock-*.whl
.venv/bin/python -m maturin build --profile "$profile" --locked --interpreter "$PYO3_PYTHON" --out "$folder"
printf '%s\n' "$now" > "$stamp"
