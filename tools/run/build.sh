# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # others set some variables
#
# A part of run: configures and builds.

preset_dir() {
    case $1 in
    release) echo "$build" ;;
    *) echo "$build/$1" ;;
    esac
}

# configure_and_build PRESET [CMAKE-BUILD-ARG...]: quiet unless it fails.
configure_and_build() {
    preset=$1
    shift
    dir=$(preset_dir "$preset")
    mkdir -p "$dir"
    log=$dir/build.log
    if cmake --preset "$preset" >"$log" 2>&1 &&
        cmake --build "$dir" -j "$jobs" "$@" >>"$log" 2>&1; then
        return 0
    fi
    grep -E -A 8 'error:|Error [0-9]' "$log" | head -n 40 >&2 || true
    printf '%s\n' "run: the build failed, see $log" >&2
    return 1
}
