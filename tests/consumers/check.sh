#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The project consumers/check, built against an installed isobit: its two softmax pass, the one that
# is wrong on purpose is found, where n % 8 is 7 and nowhere else, and the line that is printed
# reproduces it; recorded files, and the BLAS, with the installed command. A cross build is run by its
# emulator: the scalar softmax, a part of the cases.
# Usage: check.sh SOURCE-DIR BUILD-DIR CC [EMULATOR...]
set -eu
source=$1 build=$2 cc=$3
shift 3
unset LD_LIBRARY_PATH CMAKE_PREFIX_PATH || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    printf '%s\n' "check.sh: $*"
    tail -n 20 "$work/out"
    exit 1
}

# exits CODE COMMAND...: its output is in $work/out.
exits() {
    code=$1 got=0
    shift
    "$@" >"$work/out" 2>&1 || got=$?
    [ "$got" -eq "$code" ] || fail "exit code $got instead of $code: $*"
}

exits 0 cmake --install "$build" --prefix "$work/prefix"
config=$(dirname "$(find "$work/prefix" -name isobitConfig.cmake)")
toolchain=$(sed -n 's/^CMAKE_TOOLCHAIN_FILE:[A-Z]*=//p' "$build/CMakeCache.txt")
exits 0 cmake -S "$source/tests/consumers/check" -B "$work/project" -DCMAKE_C_COMPILER="$cc" \
    -Disobit_DIR="$config" ${toolchain:+"-DCMAKE_TOOLCHAIN_FILE=$toolchain"}
exits 0 cmake --build "$work/project"
isobit=$work/prefix/bin/isobit
cd "$work/project"

# The example of docs/check.md
awk '/^```c$/ { code = 1; next } /^```$/ { code = 0 } code' "$source/docs/check.md" >mine.c
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name isobit_check.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags are words
exits 0 "$cc" -O2 -Wall -Wextra -Werror -shared -fPIC $(pkg-config --cflags isobit_check) \
    -o mine.so mine.c -lm
exits 0 "$@" "$isobit" check --plugin mine.so ${1:+--quick}
grep -q '^softmax  *scalar .* PASS$' "$work/out" || fail "the example of docs/check.md"

exits 0 "$@" "$isobit" check --plugin softmax.so --quick --seed 3 --iters 40 --record here
exits 0 "$@" "$isobit" check --plugin softmax.so --compare here
grep -q '^machines: equal$' "$work/out" || fail "recorded, and not equal"
blas=$(find "$work/prefix" -name libisobit_blas.so.0)
[ -z "$blas" ] || exits 0 "$@" "$isobit" check --blas "$blas" --quick --op sdot
if [ $# -gt 0 ]; then
    [ "$(grep -c '^sdot ' "$work/out")" -gt 10 ] || [ -z "$blas" ] || fail "--blas: few lines"
    echo "check.sh: --plugin, --record, --compare${blas:+, --blas} on the emulated machine"
    exit 0
fi

exits 0 "$isobit" check --plugin softmax.so --seed 1 --iters 300
if grep -q 'avx2 *SKIPPED' "$work/out"; then
    echo "SKIPPED: this machine has no AVX2, which the wrong one is for"
    exit 77
fi
[ "$(grep -c 'PASS$' "$work/out")" -eq 4 ] || fail "not both, in the plan and in the stream"

exits 1 "$isobit" check --plugin wrong.so --seed 1 --iters 300 --max-fail 1000 \
    --junit junit.xml --markdown table.md
grep -q '^FAIL softmax avx2: .* times the bound' "$work/out" || fail "the defect is not named"
! grep -q '^FAIL softmax scalar' "$work/out" || fail "the right one is accused"
grep -q '^softmax  *scalar .* PASS$' "$work/out" || fail "the right one did not pass"
sed -n "s/^  isobit check --plugin wrong.so --replay '\(.*\)'\$/\1/p" "$work/out" >replays
[ "$(wc -l <replays)" -gt 20 ] || fail "few findings"
sed 's/.* n=\([0-9]*\) .*/\1/' replays | while read -r n; do
    [ $((n % 8)) -eq 7 ] || fail "a finding where n is $n"
done
grep -q '<failure' junit.xml || fail "junit: no failure"
grep -q '| softmax | avx2 |.*FAIL' table.md || fail "markdown: no failure"
exits 1 "$isobit" check --plugin wrong.so --compare here
grep -q '^machines: wrong$' "$work/out" || fail "recorded by the right one, and not wrong"
exits 1 "$isobit" check --plugin wrong.so --seed 1 --max-fail 1000

finding=$(grep '^FAIL' "$work/out" | head -n 1)
replay=$(head -n 1 replays)
exits 1 "$isobit" check --plugin wrong.so --replay "$replay"
grep -q -F -x "$finding" "$work/out" || fail "the replay says something else than: $finding"
exits 0 "$isobit" check --plugin softmax.so --replay "$replay"
echo "check.sh: $(wc -l <replays) findings, all where n % 8 is 7"
