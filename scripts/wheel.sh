#!/usr/bin/env bash
# Builds the release wheel into dist/, or does nothing when the one there was built from the same sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cargo-settings.sh

stamp="dist/.built-from"
now="$(.venv/bin/python scripts/fingerprint.py \
    Cargo.toml Cargo.lock crates python pyproject.toml README.md LICENSE --also "$(rustc --version)")"

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && ls dist/penstock-*.whl > /dev/null 2>&1; then
    echo "up to date: $(ls dist/penstock-*.whl)"
    exit 0
fi

# No old wheel may be taken for the new one when the build fails.
rm -f "$stamp" dist/penstock-*.whl
.venv/bin/python -m maturin build --release --locked --interpreter "$PYO3_PYTHON" --out dist
printf '%s\n' "$now" > "$stamp"
