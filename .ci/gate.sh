#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The gate for performance: is this commit slower than the last one that landed? That is
# ISOBIT_PERF_BASE, or where HEAD left main of the place that this clone comes from, or else the
# parent. A regression fails (1), and so does a gate that cannot judge although it should; what is
# inconclusive warns. 77: there was nothing to compare with, or no time.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

say() { printf '%s\n' "run: perf: $*"; }

commit_of() { git rev-parse --quiet --verify "$1^{commit}"; }

head=$(commit_of HEAD) || {
    say "SKIPPED: no commit is checked out here"
    exit 77
}
if [[ -n ${ISOBIT_PERF_BASE:-} ]]; then
    base=$(commit_of "$ISOBIT_PERF_BASE") || {
        say "ISOBIT_PERF_BASE is $ISOBIT_PERF_BASE, and this clone has no such commit" >&2
        exit 2
    }
else
    # What landed on main after HEAD left it is not HEAD's doing.
    base=$(git merge-base HEAD refs/remotes/origin/main 2>/dev/null)
    if [[ -z $base || $base == "$head" ]]; then
        base=$(commit_of HEAD~1) || {
            why="HEAD is the first commit"
            [[ $(git rev-parse --is-shallow-repository) == false ]] ||
                why="this clone is shallow and has not its parent (fetch with more depth)"
            say "SKIPPED: there is nothing to compare with: $why"
            exit 77
        }
    fi
fi
if [[ $base == "$head" ]]; then
    say "SKIPPED: HEAD is the base itself"
    exit 77
fi

# Nothing of these gets into the library. Whatever else has changed is built, and not measured
# either if both libraries are the same, bit by bit.
if git diff --quiet "$base" HEAD -- . ':(exclude)docs' ':(exclude,glob)**/*.md' \
    ':(exclude)tests' ':(exclude)python' ':(exclude)models'; then
    say "SAME: nothing that the library is made of has changed since ${base:0:12}"
    exit 0
fi

# What changes results changes the version of the numerics; only then outputs may differ.
more=()
if git diff "$base" HEAD -- include | grep '^+.*define ISOBIT_NUMERICS_VERSION' >/dev/null; then
    more=(--allow-different)
fi

# Five minutes with both builds.
limit=${ISOBIT_PERF_LIMIT:-300}
code=0
timeout --kill-after=20 "$limit" ./run perf "$base" HEAD --suite smoke --budget 3m --strict \
    "${more[@]}" || code=$?
case $code in
0 | 77) ;;
3)
    say "WARNING: inconclusive: neither slower nor the same; nothing fails"
    code=0
    ;;
124 | 137)
    say "SKIPPED: not done within $limit s, with the builds: there is no verdict"
    code=77
    ;;
1) say "slower than ${base:0:12}; if that is wanted, a trailer of the commit says so: Perf-accepted: BENCHMARK reason" ;;
4) say "other results than ${base:0:12}, with the same ISOBIT_NUMERICS_VERSION" ;;
*) say "failed with $code" ;;
esac

# A vector that a multiply-add loop newly keeps on the stack needs no measurement.
if [[ $code == 0 ]]; then
    timeout --kill-after=20 60 tools/perf/isobit-perf counts "$base" HEAD --only loops \
        --cache build/perf/libraries || code=$?
    case $code in
    0) ;;
    1) say "a hot loop has new spills; if they are wanted: Perf-accepted: SET/FUNCTION reason" ;;
    77 | 124 | 137)
        say "WARNING: the hot loops were not compared ($code)"
        code=0
        ;;
    *) say "the comparison of the hot loops failed with $code" ;;
    esac
fi
exit "$code"
