#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The core alone asks for SLEEF and, on x86, libcpuid; every other part asks for what it lacks.
# Usage: core_alone.sh SOURCE-DIR CC
set -eu
source=$1 cc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    printf '%s\n' "core_alone.sh: $*"
    exit 1
}
mkdir "$work/pc"
for name in sleef libcpuid; do
    directory=$(pkg-config --variable=pcfiledir "$name") || continue # libcpuid is for x86
    cp "$directory/$name.pc" "$work/pc"
done
[ -s "$work/pc/sleef.pc" ] || fail "where is sleef.pc?"
PKG_CONFIG_LIBDIR=$work/pc
export PKG_CONFIG_LIBDIR
unset PKG_CONFIG_PATH || true

configure() { # NAME OPTION...
    name=$1
    shift
    cmake -S "$source" -B "$work/$name" -DCMAKE_C_COMPILER="$cc" -DISOBIT_TOOLS=OFF \
        -DISOBIT_TESTS=OFF -DISOBIT_BENCH=OFF "$@" >"$work/log" 2>&1
}
configure core -DISOBIT_MODEL=OFF -DISOBIT_BLAS=OFF || {
    cat "$work/log"
    fail "the core alone needs more"
}
targets=$(cmake --build "$work/core" --target help)
for target in isobit isobit_shared; do
    printf '%s\n' "$targets" | grep -q -x "... $target" || fail "no target $target"
done
! printf '%s\n' "$targets" | grep -q -E 'isobit_(model|blas|cli|bench|harness)|test_' ||
    fail "more than the core: $targets"
configure blas -DISOBIT_MODEL=OFF || fail "the BLAS needs more than the core: $(cat "$work/log")"
! configure model || fail "the model layer was configured without jansson"
grep -q jansson "$work/log" || fail "jansson is not named: $(cat "$work/log")"
