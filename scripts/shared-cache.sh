# Sourced: prints where things are kept between clones, or nothing if they are not.

shared_cache() {
    if [ -n "${PENSTOCK_CACHE:-}" ]; then
        printf '%s' "$PENSTOCK_CACHE"
    elif [ "${CI:-}" = true ] && [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ]; then
        printf '%s' "${XDG_CACHE_HOME:-$HOME/.cache}/penstock"
    fi
}
