#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The suites must be able to fail: judge.awk with texts that are not those of a passing run, and
# netlib.sh and numpy_float32.py with a library that is wrong and incomplete (broken.c).
# Usage: self_test.sh BROKEN-LIBRARY
set -u

library=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
checks=0

problem() {
    failures=$((failures + 1))
    echo "FAILED: $1"
}

# judged CODE TITLE SED-COMMAND [LAYOUTS]: what becomes of a passing text after the command.
judged() {
    checks=$((checks + 1))
    layouts=${4:-0}
    sed "$3" "text$layouts" | awk -v level=3 -v names="SGEMM SSYRK" -v layouts="$layouts" \
        -f "$here/judge.awk" >verdict
    code=$?
    [ "$code" -eq "$1" ] || problem "judge.awk, $2: exit code $code instead of $1"
    [ "$code" -eq 0 ] || [ -s verdict ] || problem "judge.awk, $2: no word about it"
}

cat >text0 <<'TEXT'
 TESTS OF THE REAL             LEVEL 3 BLAS

 THE FOLLOWING PARAMETER VALUES WILL BE USED:
   FOR N                   0     1     2
   FOR ALPHA             0.0  -1.0
   FOR BETA              0.0   1.0

 ROUTINES PASS COMPUTATIONAL TESTS IF TEST RATIO IS LESS THAN   16.00

 RELATIVE MACHINE PRECISION IS TAKEN TO BE  1.2E-07

 SGEMM  PASSED THE TESTS OF ERROR-EXITS

 SGEMM  PASSED THE COMPUTATIONAL TESTS (   100 CALLS)

 SSYMM  WAS NOT TESTED

 SSYRK  PASSED THE TESTS OF ERROR-EXITS

 SSYRK  PASSED THE COMPUTATIONAL TESTS (    50 CALLS)

 END OF TESTS
TEXT
sed 's/^\(.*PASSED THE \)\(COMPUT.*\)/\1COLUMN-MAJOR \2\n\1ROW-MAJOR    \2/' text0 >text1

judged 0 "a passing run" ''
judged 0 "a passing run of both layouts" '' 1
judged 1 "nothing" 'd'
judged 1 "one layout only" '/SGEMM.*ROW-MAJOR/d' 1
judged 1 "no end" '/END OF/d'
judged 1 "no word of the bad arguments of SGEMM" '/SGEMM.*ERROR/d'
judged 1 "no word of SSYRK" '/SSYRK/d'
judged 1 "SSYRK not tested" 's/^ SSYMM /SSYRK /'
judged 1 "a routine that fails" 's/SGEMM  PASSED THE COMP.*/ ******* SGEMM  FAILED ON CALL NUMBER:/'
judged 1 "a failure beside" 's/^ END/ ******* SSYMM  FAILED THE TESTS OF ERROR-EXITS\n END/'
judged 1 "a suspicious ratio" \
    's/SGEMM  PASSED\(.*CALLS.*\)/SGEMM  COMPLETED\1\n BUT WITH MAXIMUM TEST RATIO   17.00 - SUSPECT/'
judged 1 "no calls" 's/   100 CALLS/     0 CALLS/'
judged 1 "a line that nobody expects" '3s/$/\n 1 2 Fortran runtime warning/'

# A library with one routine that is wrong, the others from beneath.
checks=$((checks + 1))
if [ -f "$library" ]; then
    ISOBIT_ISA='' sh "$here/netlib.sh" "$library" >netlib 2>&1
    code=$?
    if [ "$code" -eq 77 ]; then
        cat netlib
    else
        [ "$code" -eq 1 ] || problem "netlib.sh, a broken library: exit code $code"
        for line in 'FAILED: .*: xblat3s' ' SGEMM .*FAIL\|SGEMM .*SUSPECT' \
            'FAILED: .*: xscblat3' 'nobody called sdot_ of' 'nobody called cblas_ssyrk of'; do
            grep -q "$line" netlib || problem "netlib.sh, a broken library: no line with $line"
        done
        for line in 'FAILED: .*: xblat2s' 'nobody called sgemm_' 'nobody called cblas_sgemm'; do
            ! grep -q "$line" netlib || problem "netlib.sh, a broken library: a line with $line"
        done
    fi
    python=/usr/bin/python3
    if "$python" -c 'import numpy' 2>/dev/null; then
        checks=$((checks + 1))
        LD_PRELOAD="$library" "$python" "$here/numpy_float32.py" >float32 2>&1
        code=$?
        [ "$code" -eq 1 ] || problem "numpy_float32.py, a broken library: exit code $code"
        grep -q '^FAILED: .* instead of ' float32 || problem "numpy_float32.py has seen nothing"
    fi
else
    problem "there is no library $library"
fi

echo "$checks checks, $failures failures"
[ "$failures" -eq 0 ]
