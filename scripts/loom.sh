#!/usr/bin/env bash
# Model-checks the lock-free code: the same tests, with atomics and threads that loom controls.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cargo-settings.sh

# The flag reaches every dependency, so this build keeps to a folder of its own and leaves the usual one alone.
export CARGO_TARGET_DIR="$CARGO_TARGET_DIR/loom"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom"
# Optimised, since loom runs each test thousands of times, but not for the last few percent.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=false
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}"
exec cargo test --package penstock-queue --release --locked --lib --tests "$@"
