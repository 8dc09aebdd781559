#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Debian's NumPy with our library between it and the reference BLAS: the tests that NumPy brings of
# what touches a BLAS, those of linear algebra among them; and its float32 products against float64
# (numpy_float32.py), with the same bits on each instruction set and number of threads.
# With ISOBIT_WHEELS=FOLDER the wheels of NumPy and SciPy from PyPI that are there, before the OpenBLAS
# that each brings: NumPy's has 64-bit integers. SciPy's tests of its BLAS, too.
# Usage: numpy.sh LIBRARY [ISA...]
set -u

library=$1
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ $# -gt 0 ] || set -- best
python=/usr/bin/python3 # Debian's: it is the one that Debian's NumPy is for, and the wheels
wheels=${ISOBIT_WHEELS:-}

skip() {
    echo "SKIPPED: $1"
    exit 77
}

for module in numpy pytest hypothesis; do
    "$python" -c "import $module" 2>/dev/null || skip "the package python3-$module is not there"
done
export PYTHONDONTWRITEBYTECODE=1
if [ -n "$wheels" ]; then
    { [ -d "$wheels/numpy" ] && [ -d "$wheels/scipy" ]; } ||
        skip "the wheels of NumPy and SciPy are not in $wheels"
    export PYTHONPATH="$wheels"
    numpy_core=numpy._core before=scipy_ behind=64_ linked=scipy
else
    # The reference beneath, whatever the system has chosen: the LAPACK of OpenBLAS calls only itself.
    blas=$(dirname "$(dpkg-query -L libblas3 2>/dev/null | grep '/libblas\.so\.3$')")
    lapack=$(dirname "$(dpkg-query -L liblapack3 2>/dev/null | grep '/liblapack\.so\.3$')")
    [ -e "$blas/libblas.so.3" ] || skip "the package libblas3 is not there"
    [ -e "$lapack/liblapack.so.3" ] || skip "the package liblapack3 is not there"
    export LD_LIBRARY_PATH="$lapack:$blas"
    numpy_core=numpy.core before='' behind='' linked=liblapack
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

problem() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    [ $# -lt 2 ] || tail -n 25 "$2" | cut -c1-200 | sed 's/^/    /'
}

# ------------------------------------------------------------------------- float32 against float64

usable=
for isa in "$@"; do
    [ "$isa" = best ] || export ISOBIT_ISA="$isa"
    for threads in 1 2; do
        # The first run counts our calls; the others are as fast as they are.
        verbose=0
        [ -s first_bits ] || verbose=1
        LD_PRELOAD=$library ISOBIT_NUM_THREADS=$threads ISOBIT_VERBOSE=$verbose \
            ISOBIT_VERBOSE_FILE=$work/calls "$python" "$here/numpy_float32.py" >float32 2>&1
        code=$?
        if grep -q 'cannot run here' float32; then
            echo "$isa SKIPPED: this machine cannot run it"
            continue 2
        fi
        [ "$code" -eq 0 ] || problem "float32, $isa, threads $threads: exit code $code" float32
        sed -n 's/.* hash //p' float32 >bits
        [ -s first_bits ] || cp bits first_bits
        cmp -s bits first_bits ||
            problem "float32, $isa, threads $threads: the results have other bits than before"
        echo "float32, $isa, threads $threads: $(tail -n 1 float32)"
    done
    usable="$usable $isa"
done

# ------------------------------------------------------------------------------ NumPy's own tests

# tests NAME ISA ARG...: what fails must fail without us, too.
tests() {
    name=$1 isa=$2
    shift 2
    [ "$isa" = best ] || export ISOBIT_ISA="$isa"
    set -- -q --tb=short -p no:cacheprovider -m "not slow" --pyargs "$@"
    LD_PRELOAD=$library LD_DEBUG=$debug LD_DEBUG_OUTPUT=$work/bindings \
        "$python" -m pytest "$@" >"$name.txt" 2>&1
    code=$?
    result=$(tail -n 1 "$name.txt")
    echo "$name, $isa: $result"
    case $code in
    0) ;;
    1)
        "$python" -m pytest "$@" >"$name.without" 2>&1
        grep '^FAILED\|^ERROR' "$name.without" | sed 's/ - .*//' | sort >theirs
        grep '^FAILED\|^ERROR' "$name.txt" | sed 's/ - .*//' | sort >ours
        comm -23 ours theirs >only_ours
        comm -12 ours theirs | sed 's/^/    fails without us too: /'
        if [ -s only_ours ] || ! [ -s ours ]; then
            problem "$name, $isa: passes without us" "$name.txt"
        fi
        ;;
    *) problem "$name, $isa: exit code $code" "$name.txt" ;;
    esac
    case $result in
    *[0-9][0-9][0-9]" passed"*) ;;
    *) problem "$name, $isa: too few tests" "$name.txt" ;;
    esac
}

core=$numpy_core.tests
products="linalg or dot or Dot or matmul or MatMul or Matmul or einsum or inner"
first=1
for isa in $usable; do
    if [ "$first" -eq 1 ]; then
        # The linker tells which library each symbol was found in. Of the wheel's NumPy what multiplies:
        # Debian's has all the rest.
        debug=bindings
        if [ -z "$wheels" ]; then
            tests all "$isa" $core.test_multiarray $core.test_numeric $core.test_einsum \
                $core.test_ufunc $core.test_regression numpy.linalg -k "not huge"
        else
            tests products "$isa" $core.test_multiarray $core.test_numeric $core.test_einsum \
                numpy.linalg -k "$products"
            blas=scipy.linalg.tests
            tests scipy "$isa" $blas.test_blas $blas.test_fblas $blas.test_cython_blas $blas.test_basic
        fi
        first=0
    elif [ -z "$wheels" ]; then
        debug=
        tests products "$isa" $core.test_multiarray $core.test_numeric $core.test_einsum \
            numpy.linalg -k "$products"
    fi
done

# A library that lacks a routine would pass too: the one beneath takes the call.
if [ -n "$usable" ]; then
    cat bindings.* >bindings 2>/dev/null || : >bindings
    found() { # CALLER SYMBOL
        grep -q "binding file [^ ]*/${1}[^ ]* \[0\] to $library \[0\]: normal symbol .$2'" bindings ||
            problem "$1 did not find $2 in $library"
    }
    for routine in sgemm sgemv sdot ssyrk; do
        found _multiarray_umath "${before}cblas_$routine$behind"
    done
    routines="sgemm sgemv sger sscal snrm2"
    [ -z "$wheels" ] || routines="$routines ssyrk sdot saxpy sasum isamax scopy sswap"
    for routine in $routines; do
        found $linked "$before${routine}_"
    done
    if grep -q iso_verbose_call "$library"; then
        for routine in sgemm sgemv sdot ssyrk; do
            grep -q "^iso_verbose,1,exec,$routine," calls ||
                problem "ISOBIT_VERBOSE shows no call of $routine"
        done
    fi
fi

[ "$failures" -eq 0 ]
