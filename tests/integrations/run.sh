#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh FUNCTIONS COMMAND...: a program with a shim in the place of its functions. The same bits
# with one, two and three threads; each function of the shim is called; a bad environment ends it.
set -eu

functions=$1
shift
fail() {
    echo "FAILED: $*"
    exit 1
}
value() { printf '%s\n' "$2" | sed -n "s/^$1 //p"; }

unset ISOBIT_ISA ISOBIT_NUM_THREADS ISOBIT_COUNT ISOBIT_VERBOSE OMP_NUM_THREADS
for threads in 1 2 3; do
    # A program with OpenMP has a loop of its own, which is to start no threads here.
    printed=$(OMP_NUM_THREADS=1 ISOBIT_NUM_THREADS=$threads "$@" 2>&1) ||
        fail "$threads threads: $printed"
    case $printed in *isobit_*) fail "prints counts unasked: $printed" ;; esac
    hash=$(value hash "$printed")
    running=$(value threads "$printed")
    [ -n "$hash" ] || fail "no hash"
    [ "$threads" != 1 ] || {
        first=$hash
        alone=$running
    }
    [ "$hash" = "$first" ] || fail "$threads threads give other bits: $hash, not $first"
    [ "$running" -eq $((alone + threads - 1)) ] ||
        fail "$threads threads: $running run, $alone with one thread"
done

# OMP_NUM_THREADS counts where ISOBIT_NUM_THREADS is not set; it may be a list.
counts=$(OMP_NUM_THREADS=2,1 ISOBIT_COUNT=1 "$@" 2>&1)
running=$(value threads "$counts")
[ "$running" -eq $((alone + 1)) ] || fail "OMP_NUM_THREADS=2,1: $running threads run"
for function in $functions; do
    case "$counts " in
    *" $function 0"[!0-9]*) fail "the shim's $function was not called: $counts" ;;
    *" $function "*) ;;
    *) fail "$function is not in the counts: $counts" ;;
    esac
done

refuses() { # WORD VARIABLE=VALUE COMMAND...
    word=$1
    setting=$2
    shift 2
    if printed=$(env "$setting" "$@" 2>&1); then
        fail "$setting was accepted"
    fi
    case $printed in
    *"$word"*) ;;
    *) fail "$setting: no word of $word: $printed" ;;
    esac
}
for bad in 0 -1 two 3x 99999; do
    refuses ISOBIT_NUM_THREADS "ISOBIT_NUM_THREADS=$bad" "$@"
done
refuses ISOBIT_ISA ISOBIT_ISA=pentium "$@" once
echo "the same bits with 1, 2 and 3 threads: $first"
