#!/usr/bin/env bash
# tools.sh NAME...: checks that the machine has the named tools, and says for each one that is missing or too
# old what it is and how to get it. All of them at once, so that nobody has to come back for the next.
#
# Names: python, rust, rust-lint, cc, java.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

missing=()

report() {
    missing+=("$1"$'\n'"      $2")
}

has() {
    command -v "$1" > /dev/null 2>&1
}

check_python() {
    local python="${PENSTOCK_PYTHON:-python3}" hint found
    hint="Debian, Ubuntu: apt-get install python3 python3-venv; macOS: brew install python. Another interpreter: PENSTOCK_PYTHON=/path/to/python"
    if ! has "$python"; then
        report "Python 3.11 or newer: '$python' was not found" "$hint"
    elif ! found="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null)"; then
        report "Python 3.11 or newer: '$python' does not start" "$hint"
    elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        report "Python 3.11 or newer: '$python' is Python $found, which is too old" "$hint"
    elif ! "$python" -c 'import venv, ensurepip' 2> /dev/null; then
        report "Python's venv module: '$python' (Python $found) cannot make virtual environments" \
            "Debian, Ubuntu: apt-get install python3-venv"
    fi
}

check_rust() {
    local wanted found hint="install stable Rust with rustup, https://rustup.rs; update it with: rustup update stable"
    wanted="$(sed -n 's/^rust-version = "\([0-9.]*\)"$/\1/p' Cargo.toml)"
    if ! has cargo || ! has rustc; then
        report "Rust ${wanted:+$wanted or newer}: 'cargo' was not found" "$hint"
    elif ! found="$(rustc --version 2> /dev/null)"; then
        report "Rust: 'rustc --version' fails, no toolchain is installed" "rustup toolchain install stable"
    else
        found="$(printf '%s\n' "$found" | sed 's/^rustc \([0-9]*\.[0-9]*\).*/\1/')"
        if [ -n "$wanted" ] && [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -t. -k1,1n -k2,2n | head -n 1)" != "$wanted" ]; then
            report "Rust $wanted or newer: this is Rust $found, which is too old" "$hint"
        fi
    fi
}

check_rust_lint() {
    has cargo || return 0 # `rust` reports it
    cargo fmt --version > /dev/null 2>&1 || report "rustfmt, the formatter of Rust" "rustup component add rustfmt"
    cargo clippy --version > /dev/null 2>&1 || report "clippy, the linter of Rust" "rustup component add clippy"
}

check_cc() {
    has cc || report "a C compiler: 'cc' was not found (Rust links with it)" \
        "Debian, Ubuntu: apt-get install build-essential; macOS: xcode-select --install"
}

check_java() {
    local java="java" found hint
    hint="Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17. Spark takes the Java of JAVA_HOME, else of PATH"
    [ -n "${JAVA_HOME:-}" ] && java="$JAVA_HOME/bin/java"
    if ! has "$java"; then
        report "Java 17 or newer, for Spark: '$java' was not found" "$hint"
        return
    fi
    # The version stands in quotes: "17.0.15", or "1.8.0_402" up to Java 8.
    found="$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)"
    if [ -z "$found" ]; then
        report "Java 17 or newer, for Spark: '$java -version' fails" "$hint"
    elif [ "$found" -lt 17 ]; then
        report "Java 17 or newer, for Spark: '$java' is Java $found, which is too old" "$hint"
    fi
}

for name in "$@"; do
    case "$name" in
        python) check_python ;;
        rust) check_rust ;;
        rust-lint) check_rust_lint ;;
        cc) check_cc ;;
        java) check_java ;;
        *) echo "tools.sh: no such tool: $name" >&2; exit 2 ;;
    esac
done

if [ "${#missing[@]}" -gt 0 ]; then
    echo "This machine lacks what the command needs:" >&2
    for entry in "${missing[@]}"; do
        printf '  - %s\n' "$entry" >&2
    done
    exit 1
fi
