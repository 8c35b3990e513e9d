#!/usr/bin/env bash
# Writes requirements/*.txt anew from the dependency groups of pyproject.toml: exact versions, with hashes,
# for every platform and every supported Python. `uv` lives in an environment of its own, thrown away afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PENSTOCK_PYTHON:-python3}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/uv"
"$scratch/uv/bin/python" -m pip install --quiet uv

for group in build dev; do
    "$scratch/uv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-annotate --no-header \
        ${PENSTOCK_LOCK_OPTIONS:---upgrade} --group "$group" --output-file "$scratch/$group.txt"
    {
        echo "# Written by \`make lock\` from the group \"$group\" of pyproject.toml. Do not edit."
        cat "$scratch/$group.txt"
    } > "requirements/$group.txt"
    echo "requirements/$group.txt: $(grep -c '==' "requirements/$group.txt") packages"
done
