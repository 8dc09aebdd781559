# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # others set some variables
#
# A part of run: the commands bench, perf and mca.

bench() {
    # shellcheck disable=SC2086 # lists of names
    need $packages_build
    configure_and_build release --target isobit_bench || exit 1
    exec "$build/bin/isobit_bench" --json "$build/bench.json" --svg "$build/roofline.svg" "$@"
}

# Two revisions beside each other: whether the second one is slower, and the reports.
perf() {
    # shellcheck disable=SC2086 # lists of names
    need $packages_build $packages_perf git
    say "building"
    configure_and_build release --target isobit_ab || exit 1
    mkdir -p "$build/perf"
    [ $# -gt 0 ] || set -- HEAD~1 HEAD
    code=0
    tools/perf/isobit-perf ab -o "$build/perf/ab.json" --cache "$build/perf/libraries" "$@" || code=$?
    case $code in
    0 | 1 | 3 | 4)
        tools/perf/isobit-perf report "$build/perf/ab.json" --md "$build/perf/ab.md" \
            --html "$build/perf/ab.html" || exit 1
        say "reports: $build/perf/ab.md, $build/perf/ab.html"
        ;;
    esac
    exit "$code"
}

# How the hot loops run on cores that are not at hand, by llvm-mca.
mca() {
    architecture=arm64
    # shellcheck disable=SC2086 # lists of names
    need $packages_build gcc-aarch64-linux-gnu libc6-dev-arm64-cross llvm-19 \
        python3
    need_sysroot "$architecture"
    exec tools/perf/isobit-perf mca "$@"
}
