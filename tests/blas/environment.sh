#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The environment of libisobit_blas: how many threads, and a wrong ISOBIT_ISA. Usage:
# environment.sh [EMULATOR...] TEST_BLAS
set -u
bad=0
unset ISOBIT_NUM_THREADS OMP_NUM_THREADS ISOBIT_ISA
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

expect() { # WANT WHAT GOT
    if [ "$1" != "$3" ]; then
        echo "FAIL $2: '$3' instead of '$1'"
        bad=$((bad + 1))
    fi
}
threads() { "$@" --environment threads 2>"$errors"; }

ISOBIT_NUM_THREADS=3
OMP_NUM_THREADS=5
export ISOBIT_NUM_THREADS OMP_NUM_THREADS
expect 3 "ISOBIT_NUM_THREADS comes first" "$(threads "$@")"
unset ISOBIT_NUM_THREADS
expect 5 "OMP_NUM_THREADS" "$(threads "$@")"
OMP_NUM_THREADS=4,2
expect 4 "the first of a list" "$(threads "$@")"
OMP_NUM_THREADS=no
number=$(threads "$@")
expect 0 "a default" "$([ "$number" -ge 1 ] && echo 0)"
ISOBIT_NUM_THREADS=many
export ISOBIT_NUM_THREADS
expect "$number" "ISOBIT_NUM_THREADS=many" "$(threads "$@")"
expect "isobit: ISOBIT_NUM_THREADS=many is no number of threads" "what is said" "$(cat "$errors")"
unset ISOBIT_NUM_THREADS OMP_NUM_THREADS

ISOBIT_ISA=mmx
export ISOBIT_ISA
"$@" --environment isa 2>"$errors"
expect 0 "a wrong ISOBIT_ISA" "$?"
expect 1 "lines about it" "$(wc -l <"$errors" | tr -d ' ')"
expect 1 "it names the value" "$(grep -c 'ISOBIT_ISA=mmx cannot run here (.*scalar can)' "$errors")"

[ "$bad" -eq 0 ] && echo "the environment is as it should be"
exit "$((bad > 0))"
