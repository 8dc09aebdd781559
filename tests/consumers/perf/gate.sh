#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Is HEAD slower than another revision? Builds both, and lets isobit-perf run their benchmarks in
# turns. Writes perf.json and perf.md; exit status: that of isobit-perf, 1 for a regression.
# usage: gate.sh BASE [ARG-OF-ISOBIT-PERF...]
# CMAKE_ARGS: more arguments for cmake.
set -eu

base=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"; git worktree prune' EXIT
trap 'exit 130' HUP INT TERM

build() { # SIDE REVISION
    git worktree add --quiet --detach "$work/$1" "$2"
    # shellcheck disable=SC2086 # words
    if ! cmake -S "$work/$1" -B "$work/build-$1" -DCMAKE_BUILD_TYPE=Release ${CMAKE_ARGS:-} \
        >"$work/log" || ! cmake --build "$work/build-$1" >>"$work/log"; then
        cat "$work/log" >&2
        exit 125
    fi
}

build base "$base"
build head HEAD
code=0
isobit-perf ab --command "$work/build-base/bench" "$work/build-head/bench" -o perf.json "$@" ||
    code=$?
[ ! -f perf.json ] || isobit-perf report perf.json --md perf.md
exit "$code"
