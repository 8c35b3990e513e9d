#!/usr/bin/env bash
# cargo.sh ARGUMENTS...: cargo with the project's settings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cargo-settings.sh
exec cargo "$@"
