#!/bin/sh
# SPDX-License-Identifier: MIT
#
# LAPACK's tests of its single-precision linear equations, as Debian's liblapack-test has them, on
# the reference LAPACK with our library between it and the reference BLAS. They print failures and
# exit with 0; so every line is looked at, and compared with a run on the reference BLAS alone: no
# failure that it has not, as many tests, and the same output on each instruction set.
# Usage: lapack.sh LIBRARY [ISA...]
set -u

library=$1
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ $# -gt 0 ] || set -- best

skip() {
    echo "SKIPPED: $1"
    exit 77
}

programs=$(dirname "$(dpkg-query -L liblapack-test 2>/dev/null | grep '/xlintsts$')")
for file in xlintsts xlintstrfs stest.in stest_rfp.in; do
    [ -f "$programs/$file" ] || skip "the package liblapack-test is not there"
done
blas=$(dirname "$programs")/blas
[ -e "$programs/liblapack.so.3" ] || skip "the package liblapack3 is not there"
[ -e "$blas/libblas.so.3" ] || skip "the package libblas3 is not there"
# These two, whatever the system has chosen: the LAPACK of OpenBLAS calls only itself.
export LD_LIBRARY_PATH="$programs:$blas"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
ours="isamax sasum saxpy scopy sdot sgemm sgemv sger snrm2 sscal sswap ssyrk"

problem() {
    failures=$((failures + 1))
    echo "FAILED: $1"
}

# What a passing run prints, but for the time.
cat >normal <<'LINES'
^ *$
^ *Tests of the REAL LAPACK (RFP )?routines *$
^ LAPACK VERSION 3
^ The following parameter values will be used:$
^ +(M|N|NRHS|NB|NX|RANK|TYPE) *:[ 0-9]+$
^ +[0-9 ]+$
^ Routines pass computational tests if test ratio is less than +30\.00$
^ Relative machine (underflow|overflow|precision) +is taken to be
^ (S[A-Z0-9]{2}|REAL RFP) (routines|drivers) passed the tests of the error exits *$
^ All tests for .* passed( the threshold)?( *\( *[1-9][0-9]* tests run\))? *$
^ End of tests *$
^ Total time used =
LINES

# With every library but the reference itself: the tests compare STFSM with STRSM, which do the
# same in another order, on a matrix that is nearly singular. OpenBLAS and BLIS fail this one too.
cat >known <<'LINES'
  *** Error(s) or Failure(s) while testing STFSM               ***
      Failure in STFSM, CFORM='T', SIDE='L', UPLO='U', TRANS='T', DIAG='N', M= 50, N = 50, test=RATIO
  STFSM auxiliary routine:     1 out of  7776 tests failed to pass the threshold
LINES

# run NAME PRELOAD PROGRAM INPUT: leaves what it says in NAME.out, NAME.err, NAME.bad. Which library
# each symbol was found in goes into bindings.*, and our calls into the file calls.
run() {
    env ${2:+LD_PRELOAD="$2"} ISOBIT_VERBOSE="$verbose" LD_DEBUG=bindings \
        LD_DEBUG_OUTPUT="$work/bindings" "$3" <"$4" >"$1.out" 2>"$1.err"
    code=$?
    # A ratio between the limit, which is 30, and 100 may be another one.
    grep -v -E -f normal "$1.out" |
        sed 's/\(test[( 0-9)]*=\) *[0-9][0-9]\.[0-9]* *$/\1RATIO/' >"$1.bad"
    if grep -q 'cannot run here' "$1.err"; then
        return 77
    fi
    [ "$code" -eq 0 ] || problem "$1: exit code $code"
    [ "$(grep -c '^ End of tests' "$1.out")" -eq 1 ] || problem "$1: the tests did not end"
    if [ -s "$1.err" ]; then
        problem "$1: something on stderr"
        head -n 5 "$1.err" | sed 's/^/    /'
    fi
}

# compare REFERENCE OURS: no failure that the reference has not, and the same tests.
compare() {
    cat "$1.bad" known >allowed
    if grep -v -x -F -f allowed "$2.bad" >new; then
        problem "$2: this is not so with the reference BLAS alone:"
        head -n 20 new | sed 's/^/    /'
    fi
    sort -u "$2.bad" | grep -x -F -f allowed | sed "s/^/    $2, known: /"
    grep passed "$2.out" >those
    grep passed "$1.out" | grep -v -x -F -f those | while IFS= read -r line; do
        of=$(echo "$line" | sed -n 's/^ All tests for \([A-Z0-9]*\) .*/\1/p')
        if [ -z "$of" ] || ! grep -q "^  *$of .* failed to pass the threshold" "$2.bad"; then
            echo "    $line"
        fi
    done >missing
    if [ -s missing ]; then
        problem "$2: these lines are not there:"
        head -n 20 missing
    fi
    echo "$2: $(wc -l <those) lines say that tests have passed"
}

# suite NAME PROGRAM INPUT ISA...
suite() {
    name=$1 program=$programs/$2 input=$3
    shift 3
    run "$name.reference" "" "$program" "$input"
    if [ -s "$name.reference.bad" ]; then
        echo "the reference BLAS alone does not pass $name:"
        head -n 20 "$name.reference.bad" | sed 's/^/    /'
    fi
    first=
    for isa in "$@"; do
        [ "$isa" = best ] || export ISOBIT_ISA="$isa"
        run "$name.$isa" "$library" "$program" "$input"
        if [ $? -eq 77 ]; then
            echo "$isa SKIPPED: this machine cannot run it"
            continue
        fi
        compare "$name.reference" "$name.$isa"
        # Where a test fails, its ratio too must be the same on each set.
        grep -v '^ Total time used' "$name.$isa.out" >"$name.$isa.all"
        if [ -n "$first" ] && ! cmp -s "$name.$first.all" "$name.$isa.all"; then
            problem "$name: $isa and $first differ"
            diff "$name.$first.all" "$name.$isa.all" | head -n 10 | sed 's/^/    /'
        fi
        first=${first:-$isa}
    done
    unset ISOBIT_ISA
}

verbose=0
suite xlintstrfs xlintstrfs "$programs/stest_rfp.in" "$@"
suite xlintsts xlintsts "$programs/stest.in" "$@"
suite xlintsts_larger xlintsts "$here/lapack.in" "$@"

# A library that lacks a routine would pass too: the one beneath takes the call.
cat bindings.* >bindings 2>/dev/null || : >bindings
for routine in $ours; do
    found="binding file $programs/liblapack.so.3 \[0\] to $library \[0\]: normal symbol"
    grep -q "$found .${routine}_'" bindings || problem "LAPACK did not find ${routine}_ in $library"
done
# A line for each call takes longer than most calls: of the suite's sizes, one.
if grep -q iso_verbose_call "$library"; then
    sed -e '2s/^[0-9]*/1/' -e '3s/^[ 0-9]*/50 /' "$programs/stest_rfp.in" >one_size.in
    export ISOBIT_VERBOSE_FILE="$work/calls"
    verbose=1
    run one_size "$library" "$programs/xlintstrfs" one_size.in
    for routine in sgemm ssyrk; do
        grep -q "^iso_verbose,1,exec,$routine," calls 2>/dev/null ||
            problem "ISOBIT_VERBOSE shows no call of $routine"
    done
fi

[ "$failures" -eq 0 ]
