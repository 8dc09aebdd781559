#!/bin/sh
# SPDX-License-Identifier: MIT
#
# isobit check --blas finds the defects of tests/blas_broken/naive.c, one at a time: the right
# property, the right words, and a line that replays it. Without a defect it finds nothing.
# usage: blas_broken.sh MACHINE LIBRARY LIBRARY-AS-BLIS CHECK-COMMAND...
# ISOBIT_EMULATED=1: a few of them.
machine=$1 lib=$2 blis=$3
shift 3
failed=0
tried=0
work=$(mktemp -d) || exit 1
unset OPENBLAS_CORETYPE BLIS_ARCH_TYPE # "by default" is without them
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL $defect: $1"
    sed 's/^/    /' "$work/out"
    failed=$((failed + 1))
}

# The same options for all; `hang` has a limit of its own.
check() { "$@" --blas "$lib" --quick --threads 3 --seconds "${seconds:-60}"; }

defect=none
only=
[ -z "$ISOBIT_EMULATED" ] || only='--op sgemv'
# shellcheck disable=SC2086 # two words
if ! check "$@" $only >"$work/out" 2>&1 || grep -E 'FAILS|differs' "$work/out"; then
    fail "a correct BLAS has findings"
fi

# found DEFECT ROUTINE PROPERTY WORDS
found() {
    defect=$1 routine=$2 property=$3 words=$4
    shift 4
    tried=$((tried + 1))
    BROKEN=$defect check "$@" --op "$routine" >"$work/out" 2>&1
    code=$?
    [ $code = 1 ] || fail "exit code $code instead of 1"
    # the line of the property, then the reason, then how to run it again
    if ! grep -A 1 -E "^$routine +$property +[0-9]+ cases +(FAILS|differs)$" "$work/out" |
        tail -n 1 | grep -F -e "$words" >/dev/null; then
        fail "'$property' does not say '$words'"
        return
    fi
    line=$(grep -A 2 -E "^$routine +$property " "$work/out" | sed -n "3s/.*--replay '\(.*\)'$/\1/p")
    BROKEN=$defect check "$@" --replay "$line" >"$work/again" 2>&1
    code=$?
    if [ $code != 1 ] ||
        ! grep -E "^$routine +$property .*(FAILS|differs)$" "$work/again" >/dev/null; then
        fail "the replay does not find it (exit code $code): $line"
    fi
}

# defect, routine, property, words; a first column of * runs emulated, too
while IFS='|' read -r star defect routine property words; do
    [ -n "$defect" ] || continue
    [ "$star" = '*' ] || [ "$star" = a ] || [ -z "$ISOBIT_EMULATED" ] || continue
    case $star in
    x) [ "$machine" = x86_64 ] || continue ;;
    a) [ "$machine" = aarch64 ] || continue ;;
    esac
    if [ "$defect" = hang ]; then seconds=1; else seconds=; fi
    found "$defect" "$routine" "$property" "$words" "$@"
done <<'END'
*|increment-sign|saxpy|increments|should be
 |row-past-end|sgemm|outside|past the right end of C
 |read-past|sdot|outside|past the right end of
 |read-before|sasum|outside|past the left end of x
 |ld-gap|sgemm|outside|wrote to the gap of C
 |increment-gap|saxpy|outside|wrote to the gap of y
 |triangle|ssyrk|outside|which takes no part
 |beta-nan|sgemv|beta = 0|nan, should be
 |alpha-nan|sgemm|alpha = 0|nan, should be
 |split-k|sgemm|bits: threads|other bits than with 1 thread with 2 threads, 3 threads
 |cpu-type|sgemm|bits: CPU types|other bits than by default with OPENBLAS_CORETYPE=
 |part|sgemm|bits: part alone|are computed alone
 |again|sgemm|bits: again|run again
*|alignment|sdot|bits: alignment|elements past a page
 |stride-bits|sdot|bits: strides|incx=
 |input-changed|ssyrk|inputs|wrote to the input A
 |scalar-changed|sger|inputs|changed a scalar argument
 |wrong-number|sgemm|bad arguments|was told of
 |no-report|sgemv|bad arguments|xerbla_ was not called
 |wrong-name|sgemm|bad arguments|reported of
 |goes-on|sger|bad arguments|is wrong, but A[0][0] was written
 |spurious|sgemm|bad arguments|where none is wrong
*|nan-swallowed|sasum|NaN, infinity|should be nan
 |from-zero|isamax|error|should be
 |last-of-equals|isamax|error|should be
*|norm-overflow|snrm2|overflow, underflow|inf, should be
 |subnormal|saxpy|overflow, underflow|times the bound
 |tail|sscal|error|times the bound
 |imprecise|sdot|error|times the bound
 |row-major|sger|outside|past the right end of A
 |k-zero|sgemm|error|times the bound
 |flags|sgemv|exception flags|raised INVALID on harmless input
 |hang|sgemv|returns|did not return within 1 s
*|crash|sdot|returns|fault at an address that is no operand's
 |abort|sdot|returns|ended the process by signal 6
*|exit|sdot|returns|ended the process with exit code 3
x|rbx|sscal|registers|did not preserve register rbx
x|rbp|sscal|registers|did not preserve register rbp
x|r15|sscal|registers|did not preserve register r15
x|direction|sscal|registers|left the direction flag set
x|mxcsr|sscal|floating-point control|changed the floating-point control register
x|x87_control|sscal|floating-point control|changed the x87 control word
x|x87_stack|sscal|floating-point control|left x87 or MMX registers in use
x|canary|sscal|registers|wrote to the stack of its caller
x|aligned|sscal|returns|an aligned access that is not
a|x19|sscal|registers|did not preserve register x19
a|d8|sscal|registers|did not preserve register d8
a|fpcr|sscal|floating-point control|changed the floating-point control register
x|ymm|sscal|vector state|left upper halves of ymm registers in use
END

# While it is loaded.
defect=load-crash
tried=$((tried + 1))
BROKEN=load-crash check "$@" >"$work/out" 2>&1
code=$?
[ $code = 1 ] || fail "exit code $code instead of 1"
grep 'while loaded: ended the process by signal 6' "$work/out" >/dev/null || fail "other words"

# A CPU type that the library was built without is none of its types; one that crashes is a finding.
lib=$blis defect=none
if ! check "$@" --op sdot >"$work/out" 2>&1 ||
    ! grep -q '^sdot .* bits: CPU types .* same$' "$work/out"; then
    fail "a correct BLIS has findings, or no CPU type"
fi
found type-abort sdot returns "ended the process by signal 6" "$@"

echo "$tried defects, $failed failures"
[ $failed = 0 ]
