#!/usr/bin/env bash
# test-suites.sh TIER [--list]: makes .venv, builds and installs the package there, and runs the suites of a tier, three
# commands at a time. What does not need the package begins beside it; the longest of the others come first. The log
# ends with the ten slowest tests. `--list` prints the commands and runs nothing.
#
#   check   after every save: lints, the crates, Python without what is marked slow
#   test    what CI runs: everything, at the sizes of CI
#   soak    everything, at full size
#
# C1 of cargo-settings.sh: the lock of the shared cache is taken here, once, and inherited by every suite that compiles.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tier="${1:-}"
TIMINGS=build/timings

# pytest, with the time of each test in a file of that name.
pytest() {
    printf '.venv/bin/python -m pytest -q -p no:cacheprovider --junitxml=%s' "$TIMINGS/$1.xml"
}

LINT_RUST="cargo clippy --workspace --all-targets --locked --quiet -- -D warnings"
# libtest tells how long a test took only if it takes itself for unstable. Cargo must not: it would compile everything
# once more. Tasks that have gone idle are not asked to give memory back, as in conftest.py: that would wake those that
# have missed a wake-up.
TIMED="cargo --config 'target.\"cfg(all())\".runner=[\"env\", \"RUSTC_BOOTSTRAP=1\", \"PENSTOCK_TRIM=off\"]' test --locked"
REPORT="-- -Zunstable-options --report-time"
# The one test that does nothing but wait, for a minute, does so beside the others.
WAITING=a_stalled_sink_holds_the_source_up_and_loses_nothing
TEST_RUST="cargo test --workspace --locked --quiet --no-run && \
{ $TIMED --package penstock-engine --test stalled $REPORT > $TIMINGS/stalled.log 2>&1 & } && \
{ $TIMED --workspace --lib --bins --tests $REPORT --skip $WAITING > $TIMINGS/rust.log 2>&1 || \
{ cat $TIMINGS/rust.log; exit 1; }; } && \
cargo test --workspace --locked --quiet --doc && { wait \$! || { cat $TIMINGS/stalled.log; exit 1; }; } && \
awk '/^test result/ { passed += \$4 } END { print passed, \"passed\" }' $TIMINGS/rust.log $TIMINGS/stalled.log"
PYTHON_TESTS="tests --ignore=tests/spark --ignore=tests/soak --ignore=tests/house/test_wheel.py"
MODELS="crates/queue Cargo.toml Cargo.lock scripts/loom.sh scripts/loom-weakened.sh"
CLEAN_WHEEL="PENSTOCK_WHEEL=\$(ls dist/penstock-*.whl) $(pytest wheel) tests/house/test_wheel.py"
STUBS=".venv/bin/python -m mypy.stubtest penstock._penstock"
TYPES=".venv/bin/python -m mypy"
PACKAGE="make --no-print-directory environment format-check"

case "$tier" in
    check)
        suites=(
            "Package" "$PACKAGE install-quick"
            "Crates" "$LINT_RUST && $TEST_RUST"
            "Python tests < Package" "$(pytest python) $PYTHON_TESTS -m 'not slow'"
            "Types < Package" "$TYPES"
        )
        ;;
    test)
        mapfile -d '' -t configurations < <(scripts/test-configurations.sh --jobs "$TIMINGS" --needs Package)
        suites=(
            "Package" "$PACKAGE install"
            "Crates" "$LINT_RUST && $TEST_RUST"
            "Spark tests < Package" "$(pytest spark) tests/spark"
            "Python tests < Package" "$(pytest python) $PYTHON_TESTS"
            "Models" "scripts/passed-before.sh loom $MODELS -- scripts/loom.sh --quiet"
            "Models, weakened" "scripts/passed-before.sh weakened $MODELS -- scripts/loom-weakened.sh"
            "Workers in random schedules" "scripts/shuttle.sh"
            "Campaign < Package" "$(pytest soak) tests/soak"
            "${configurations[@]}"
            "Types < Package" "$TYPES"
            "Stubs against the binary < Package" "$STUBS"
            "Wheel in a clean environment < Package" "$CLEAN_WHEEL"
        )
        ;;
    soak)
        # Every run draws other examples and schedules; a failure prints what it takes to draw them again.
        export PENSTOCK_WHOLE_SUITE="${PENSTOCK_WHOLE_SUITE:-third}"
        mapfile -d '' -t configurations < <(scripts/test-configurations.sh --jobs "$TIMINGS" --needs Package)
        suites=(
            "Package" "$PACKAGE install"
            "Crates" "PROPTEST_CASES=2000 && export PROPTEST_CASES && $LINT_RUST && $TEST_RUST"
            "Python tests < Package" "PENSTOCK_HYPOTHESIS=soak $(pytest python) $PYTHON_TESTS"
            "All workloads against Spark < Package" ".venv/bin/python -m penstock.cli data check"
            "Spark tests < Package" "PENSTOCK_HYPOTHESIS=soak $(pytest spark) tests/spark"
            "Campaign < Package" ".venv/bin/python tests/soak --seconds 600"
            "Sanitizers" "scripts/sanitize.sh"
            "Models" "scripts/loom.sh --quiet"
            "Models, weakened" "scripts/loom-weakened.sh"
            "Workers in random schedules" "PENSTOCK_SHUTTLE_SCHEDULES=100000 scripts/shuttle.sh"
            "${configurations[@]}"
            "Types < Package" "$TYPES"
            "Stubs against the binary < Package" "$STUBS"
            "Wheel in a clean environment < Package" "$CLEAN_WHEEL"
        )
        ;;
    *)
        echo "test-suites.sh: check, test or soak, not '$tier'" >&2
        exit 2
        ;;
esac
if [ "${2:-}" = --list ]; then
    printf '%s: %s\n' "${suites[@]}"
    exit 0
fi

source scripts/cargo-settings.sh
# A panic names its line without it, and there is less to compile.
export CARGO_PROFILE_DEV_DEBUG=false
rm -rf "$TIMINGS"
mkdir -p "$TIMINGS"
status=0
"${PENSTOCK_PYTHON:-python3}" scripts/side_by_side.py "${suites[@]}" || status=$?
"${PENSTOCK_PYTHON:-python3}" scripts/slowest.py "$TIMINGS"
exit "$status"
