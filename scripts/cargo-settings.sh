# Sourced by the scripts that call cargo: says where its output goes and which interpreter pyo3 looks at.
#
# With CI=true, or with PENSTOCK_CACHE set, compiled code goes to a folder outside the clone, so that the next
# fresh clone does not compile the dependencies again. Nothing depends on it: if the folder cannot be had,
# ./target is used, as without these settings.
#
# Cargo alone would mix the clones up. It takes a crate of ours for the same one wherever the clone lies, and
# for up to date when its files are older than what was compiled: a clone could be given the code of another.
# Hence two rules:
#
# C1. Whoever compiles in the shared folder holds its lock until the command ends (descriptor 9, inherited).
# C2. What is there of our own crates was compiled from the sources whose fingerprint stands in `sources`.
#     Whoever comes with other sources makes cargo forget our crates first; the dependencies stay.

CACHE_LIMIT_GIB=12

source scripts/shared-cache.sh

# Whether the shared folder $1 could be taken, under rules C1 and C2.
take_shared_cache() {
    local shared="$1" python sources
    command -v flock > /dev/null 2>&1 || return 1
    mkdir -p "$shared/target" 2> /dev/null && [ -w "$shared/target" ] || return 1
    { exec 9> "$shared/lock"; } 2> /dev/null || return 1
    if ! flock --nonblock 9; then
        exec 9>&-
        echo "another run is compiling in $shared: this one compiles in ./target" >&2
        return 1
    fi
    python=.venv/bin/python
    [ -x "$python" ] || python="${PENSTOCK_PYTHON:-python3}"
    sources="$("$python" scripts/fingerprint.py --if-present scripts Cargo.toml Cargo.lock crates benches README.md)"
    if [ "$(cat "$shared/sources" 2> /dev/null)" != "$sources" ]; then
        rm -f "$shared/sources"
        if [ "$(du -sk "$shared/target" | cut -f1)" -gt $((CACHE_LIMIT_GIB * 1024 * 1024)) ]; then
            echo "the compile cache has grown past $CACHE_LIMIT_GIB GiB: emptying it" >&2
            rm -rf "$shared/target"
            mkdir -p "$shared/target"
        fi
        find "$shared/target" -type d -path '*/.fingerprint/penstock-*' -prune -exec rm -rf {} +
        printf '%s\n' "$sources" > "$shared/sources"
    fi
}

if [ -z "${CARGO_TARGET_DIR:-}" ]; then
    CARGO_TARGET_DIR="$PWD/target"
    shared="$(shared_cache)"
    if [ -n "$shared" ] && take_shared_cache "$shared"; then
        CARGO_TARGET_DIR="$shared/target"
        # Incremental state belongs to one clone: in a shared folder it would only pile up.
        export CARGO_INCREMENTAL=0
    fi
    export CARGO_TARGET_DIR
fi

# The interpreter below .venv has another path in every clone, which would compile pyo3 anew each time; the one that
# .venv is made from does not, and is there before .venv is.
for python in .venv/bin/python "${PENSTOCK_PYTHON:-python3}"; do
    if command -v "$python" > /dev/null 2>&1; then
        PYO3_PYTHON="$("$python" -c 'import os, sys; print(os.path.realpath(sys._base_executable))')"
        export PYO3_PYTHON
        break
    fi
done
