#!/usr/bin/env bash
# Checks the workers in random interleavings: the same code, with atomics and threads that shuttle controls. Then shows
# that the check can fail: each step listed below is left out once, and the test behind it must fail then.
#
# Arguments go to the tests of the first part. PENSTOCK_SHUTTLE_SCHEDULES says how many schedules each test tries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cargo-settings.sh

STEPS="
schedule.park.look         every_call_is_answered
schedule.bits.again        every_call_is_answered
schedule.unpark            every_row_arrives_and_every_worker_ends
schedule.idle.check        every_row_arrives_and_every_worker_ends
schedule.publish.rescan    every_row_arrives_and_every_worker_ends
schedule.close.wake        every_row_arrives_and_every_worker_ends
"
TIMEOUT_S=120

# The flag reaches every dependency, so this build keeps to a folder of its own and leaves the usual one alone.
export CARGO_TARGET_DIR="$CARGO_TARGET_DIR/shuttle"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg shuttle"
# Optimised, since each test runs thousands of times, but not for the last few percent.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=false
unset PENSTOCK_WEAKEN

shuttle() {
    cargo test --package penstock-scheduler --release --locked --test shuttle_workers "$@"
}

shuttle -- "$@"

binary="$(shuttle --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')"
checked=0
wrong=0
while read -r step test; do
    status=0
    PENSTOCK_WEAKEN="$step" timeout "$TIMEOUT_S" "$binary" --exact "$test" > /dev/null 2>&1 || status=$?
    case "$status" in
        0) found=passes ;;
        124) found=hangs ;;
        *) found=fails ;;
    esac
    mark=ok
    [ "$found" = fails ] || { mark=WRONG; wrong=$((wrong + 1)); }
    checked=$((checked + 1))
    printf '%-5s  without %-26s  %s %s\n' "$mark" "$step" "$test" "$found"
done < <(awk 'NF == 2' <<< "$STEPS")
echo "$checked checked, $wrong wrong"
[ "$checked" -gt 0 ] && [ "$wrong" -eq 0 ]
