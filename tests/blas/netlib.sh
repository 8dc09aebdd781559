#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The test programs of the reference BLAS, as Debian's libblas-test has them, with our library
# between them and the reference: they must pass, and must have called us. The programs print
# failures and exit with 0, so every line that they print is looked at (judge.awk).
# Usage: netlib.sh LIBRARY [EMULATOR...], with ISOBIT_ISA for another instruction set.
#
# The reference library must be the one beneath, whatever the system has chosen: the programs in C
# share the variable RowMajorStrg with it. They test 65 rows and columns at most; larger matrices
# come in lapack.sh and numpy.sh.
set -u

library=$1
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
set_name=${ISOBIT_ISA:-best}
ours="isamax sasum saxpy scopy sdot sgemm sgemv sger snrm2 sscal sswap ssyrk"

skip() {
    echo "$set_name SKIPPED: $1"
    exit 77
}

# Where the programs are; for an emulator, among the folders that it looks for libraries in.
programs=
beside=
if [ $# -gt 0 ]; then
    for word in "$@"; do
        case $word in LD_LIBRARY_PATH=*) beside=${word#LD_LIBRARY_PATH=} ;; esac
    done
    programs=${beside%%:*}/blas
else
    programs=$(dirname "$(dpkg-query -L libblas-test 2>/dev/null | grep '/xblat1s$')")
fi
for file in xblat1s xscblat3 sblat2.in sin3; do
    [ -f "$programs/$file" ] || skip "the package libblas-test is not there"
done
[ -e "$programs/libblas.so.3" ] || skip "the package libblas3 is not there"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
runs=0

problem() {
    failures=$((failures + 1))
    echo "FAILED: $set_name: $1"
}

# launch PROGRAM [EMULATOR...]: with our library, between stdin, $work/out and $work/err. Which
# library each symbol was found in goes into $work/bindings.*, each call into $work/calls.
launch() {
    program=$1
    shift
    : >out
    : >err
    if [ $# -gt 0 ]; then
        "$@" -E LD_LIBRARY_PATH="$programs:$beside" -E LD_PRELOAD="$library" \
            -E LD_DEBUG="$debug" -E LD_DEBUG_OUTPUT="$work/bindings" "$programs/$program"
    elif [ -n "$debug" ]; then
        LD_LIBRARY_PATH="$programs" LD_PRELOAD="$library" LD_DEBUG="$debug" \
            LD_DEBUG_OUTPUT="$work/bindings" "$programs/$program"
    else
        LD_LIBRARY_PATH="$programs" LD_PRELOAD="$library" "$programs/$program"
    fi >out 2>err
}

# judge PROGRAM LEVEL SUMMARY NAMES TITLE EXIT-CODE: what the run has printed, all of it.
judge() {
    runs=$((runs + 1))
    case $1 in xsc*) layouts=1 ;; *) layouts=0 ;; esac
    if grep -q 'cannot run here' err; then
        skip "$(sed -n 's/^isobit: \(.* cannot run here\).*/\1/p' err | head -n 1)"
    fi
    [ "$6" -eq 0 ] || problem "$5: exit code $6"
    if [ -s err ]; then
        problem "$5: something on stderr"
        head -n 5 err | sed 's/^/    /'
    fi
    # A program writes its summary to a file, and the rest, if any, to stdout.
    [ "$3" = out ] || cat out >>"$3"
    if ! awk -v level="$2" -v names="$4" -v layouts="$layouts" -f "$here/judge.awk" "$3" >verdict
    then
        problem "$5:"
        head -n 20 verdict
    fi
}

# The routines that an input file enables.
enabled() {
    sed -n 's/^\([A-Za-z0-9_]*\)  *T.*/\1/p' "$1" | grep -E '^(S|cblas_s)' | tr 'a-z\n' 'A-Z '
}

# The input of the programs in C: no name of a summary, one more line for the layouts.
for_c() {
    awk 'NR <= 2 { next }
        $2 ~ /^[TF]$/ { $0 = sprintf("%-12s%2s", "cblas_" tolower($1), $2) }
        { print }
        NR == 7 { print "2        both layouts" }' "$1"
}

# matrices PROGRAM LEVEL INPUT TITLE [EMULATOR...]
matrices() {
    matrices=$1 level=$2 file=$3 title="$1, $4"
    shift 4
    case $matrices in
    xsc*) summary=out ;;
    *) summary=$(sed -n "1s/^'\([^']*\)'.*/\1/p" "$file") ;;
    esac
    rm -f "$work/$summary"
    launch "$matrices" "$@" <"$file"
    code=$?
    touch "$work/$summary"
    judge "$matrices" "$level" "$summary" "$(enabled "$file")" "$title" "$code"
}

# What the package itself would run; this is where we look who was called.
rm -f bindings.* calls
debug=bindings
export ISOBIT_VERBOSE=1 ISOBIT_VERBOSE_FILE="$work/calls"
launch xblat1s "$@" </dev/null
judge xblat1s 1 out "SDOT SAXPY SROTG SROT SCOPY SSWAP SNRM2 SASUM SSCAL ISAMAX SROTMG SROTM
    SDSDOT" "xblat1s" $?
launch xscblat1 "$@" </dev/null
judge xscblat1 1 out "CBLAS_SDOT CBLAS_SAXPY CBLAS_SROTG CBLAS_SROT CBLAS_SCOPY CBLAS_SSWAP
    CBLAS_SNRM2 CBLAS_SASUM CBLAS_SSCAL CBLAS_ISAMAX" "xscblat1" $?
matrices xblat2s 2 "$programs/sblat2.in" "the package's input" "$@"
matrices xblat3s 3 "$programs/sblat3.in" "the package's input" "$@"
matrices xscblat2 2 "$programs/sin2" "the package's input" "$@"
matrices xscblat3 3 "$programs/sin3" "the package's input" "$@"
unset ISOBIT_VERBOSE ISOBIT_VERBOSE_FILE
debug=

# A library that lacks a routine would pass too: the one beneath takes the call.
cat bindings.* >bindings 2>/dev/null || : >bindings
# Ours counts its calls and says on which instruction set; a library in its place need not.
counts=
! grep -q iso_verbose_call "$library" || counts="calls on $set_name"
used=${ISOBIT_ISA:-'[a-z0-9]*'}
for routine in $ours; do
    for symbol in "${routine}_" "cblas_$routine"; do
        found="binding file $programs/x[a-z0-9]* \[0\] to $library \[0\]: normal symbol"
        grep -q "$found .$symbol'" bindings ||
            problem "nobody called $symbol of $library"
    done
    if [ -n "$counts" ]; then
        calls=$(grep -c "^iso_verbose,1,exec,$routine,$used," calls 2>/dev/null)
        [ "${calls:-0}" -gt 0 ] || problem "ISOBIT_VERBOSE shows no call of $routine"
        counts="$counts, $routine $calls"
    fi
done

# More sizes, factors and increments.
inputs="level2 level3 level3_large"
[ "$failures" -eq 0 ] || inputs=
[ $# -eq 0 ] || [ -z "$inputs" ] || inputs="level2 level3_few"
for input in $inputs; do
    level=${input#level}
    level=${level%%_*}
    for_c "$here/$input.in" >c.in
    matrices "xblat${level}s" "$level" "$here/$input.in" "$input.in" "$@"
    matrices "xscblat$level" "$level" "$work/c.in" "$input.in" "$@"
done

echo "$set_name: $runs runs, $failures failures"
[ "$failures" -eq 0 ] && echo "  ${counts:-called: $ours}"
