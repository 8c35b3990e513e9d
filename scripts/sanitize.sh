#!/usr/bin/env bash
# Runs the tests of the crates with unsafe code under AddressSanitizer and ThreadSanitizer, on the stable toolchain.
#
# sanitize.sh [address|thread]...: only these. Under ThreadSanitizer a planted race must be reported first, or the
# silence about everything else would mean nothing. The standard library is not instrumented: ThreadSanitizer knows
# its locks by the system calls and by the atomics that are compiled into our crates.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cargo-settings.sh

TARGET=x86_64-unknown-linux-gnu
PACKAGES=(--package penstock-queue --package penstock-memory)
SUPPRESSIONS="$PWD/scripts/tsan-suppressions.txt"
TARGET_ROOT="$CARGO_TARGET_DIR"
RUSTFLAGS_BEFORE="${RUSTFLAGS:-}"

if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "the sanitizers are set up for Linux on x86_64" >&2
    exit 1
fi

# The stable compiler takes -Z flags when it is told to.
export RUSTC_BOOTSTRAP=1
# Both make everything several times slower: fewer cases, fewer rows, a shorter stall.
export PROPTEST_CASES="${PROPTEST_CASES:-32}"
export PENSTOCK_TEST_ROWS="${PENSTOCK_TEST_ROWS:-60000}"
export PENSTOCK_STALL_SECONDS="${PENSTOCK_STALL_SECONDS:-2}"
# A sanitizer keeps a shadow of all memory: the tests leave the resident size alone.
export PENSTOCK_SANITIZER=1

# The flags reach every dependency, so each sanitizer has a folder of its own. With --target they do not reach build
# scripts and procedural macros.
cargo_with() {
    local sanitizer="$1"
    shift
    CARGO_TARGET_DIR="$TARGET_ROOT/sanitize-$sanitizer" \
    RUSTFLAGS="$RUSTFLAGS_BEFORE -Zsanitizer=$sanitizer -Cunsafe-allow-abi-mismatch=sanitizer" \
        cargo --config 'profile.dev.package."*".debug=false' test --target "$TARGET" --locked "$@"
}

demand_planted_race() {
    local report code=0
    report="$(cargo_with thread --package penstock-memory --test planted_race -- --ignored --exact planted_race 2>&1)" || code=$?
    if [ "$code" -eq 0 ] || ! grep --quiet '^SUMMARY: ThreadSanitizer: data race .* in planted_race' <<< "$report"; then
        printf '%s\n' "$report" >&2
        echo "ThreadSanitizer did not report the planted race (exit code $code)" >&2
        return 1
    fi
    echo "ThreadSanitizer reports the planted race (exit code $code)"
}

[ "$#" -gt 0 ] || set -- address thread
for sanitizer in "$@"; do
    # A test that asks for more memory than there is wants to be refused, as it is without a sanitizer.
    case "$sanitizer" in
        address) export ASAN_OPTIONS="allocator_may_return_null=1 detect_leaks=1" ;;
        thread)
            export TSAN_OPTIONS="allocator_may_return_null=1 suppressions=$SUPPRESSIONS"
            demand_planted_race
            ;;
        *)
            echo "sanitize.sh: no such sanitizer: $sanitizer" >&2
            exit 2
            ;;
    esac
    # One test at a time, each joined before the next: what tests share by way of the standard library (statics that
    # are made on first use) would be taken for races, since that library is not instrumented.
    cargo_with "$sanitizer" "${PACKAGES[@]}" --lib --tests --quiet -- --test-threads=1
    echo "$sanitizer sanitizer: nothing to report"
done
