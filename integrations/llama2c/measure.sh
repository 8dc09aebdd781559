#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086,SC2154 # lists of flags and names; variables of common.sh
#
# usage: llama2c FOLDER    llama2.c's run.c from a checkout: Llama 2 of 110 M random weights
#
# Builds it as its Makefile does for `make run` (-O3) and `make runomp` (-Ofast -march=native
# -fopenmp), and at -O3 with isobit's functions in the place of its own: with a pool of isobit's,
# and for comparison with OpenMP's threads.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
name=llama2c
# shellcheck source=/dev/null
. "$root/integrations/common.sh"
here=$root/integrations/$name
source=$(program "${1:-}" run.c)
functions="matmul softmax rmsnorm"
steps=64
begin
library

say "building $source"
compile -w -O3 -o "$work/default" "$source" -lm
compile -w -Ofast -march=native -fopenmp -o "$work/best" "$source" -lm
# with_isobit NAME FLAG...
with_isobit() {
    built=$1
    shift
    compile -std=c11 -O2 "$@" $isobit_flags -c "$here/isobit_llama2c.c" -o "$work/$built.shim.o"
    compile -w -O3 -fPIC -fsemantic-interposition "$@" -c "$source" -o "$work/$built.o"
    weaken "$work/$built.o" $functions
    compile "$@" "$work/$built.o" "$work/$built.shim.o" -o "$work/$built" $isobit_libs
}
with_isobit isobit
with_isobit isobit_openmp -fopenmp
# The same with our main, which shows logits.
drive -O3 -o "$work/default.logits" -lm
drive -Ofast -march=native -fopenmp -o "$work/best.logits" -lm
drive -O3 -fPIC -fsemantic-interposition -c -o "$work/driver.o"
weaken "$work/driver.o" $functions
compile "$work/driver.o" "$work/isobit.shim.o" -o "$work/isobit.logits" $isobit_libs
compile -std=c11 -D_GNU_SOURCE -O2 "$here/make_checkpoint.c" -o "$work/make_checkpoint" -lm
compile -std=c11 -O2 "$root/integrations/compare.c" -o "$work/compare" -lm

# Not whole vectors: heads of 20, two of them for each of keys and values.
"$work/make_checkpoint" "$work/small.bin" "$work/small.tok" 120 331 3 6 3 1003 256
bits=$(equal_bits "$work/isobit.logits" "$work/small.bin" 200)
say "equal bits: $bits"

say "a checkpoint of 110 M weights"
"$work/make_checkpoint" "$work/model.bin" "$work/tokenizer.bin" 768 2048 12 12 12 32000 1024
for build in isobit best default; do
    "$work/$build.logits" "$work/model.bin" 32 "$work/$build.floats" >"$work/$build.tokens" ||
        die "the $build build failed"
done
for build in default best; do
    [ "$(value tokens "$work/$build.tokens")" = "$(value tokens "$work/isobit.tokens")" ] ||
        die "other tokens than the $build build"
    # shellcheck disable=SC2046 # two numbers
    set -- $("$work/compare" "$work/$build.floats" "$work/isobit.floats")
    say "logits against the $build build: largest difference $1, largest value $2"
    # Two orders of summing up to 2048 products of floats, through 12 layers; its own two builds
    # differ as much.
    below "$1" "$(awk -v v="$2" 'BEGIN { print 5e-5 * v }')" || die "that is too far"
    [ "$build" != default ] || difference=$1
done
rm -f "$work"/*.floats

# Its own main: the likeliest token each time. The first run reads the file into the cache.
best_of() { # BUILD: the best of three runs
    fastest=0
    for round in 1 2 3; do
        ISOBIT_COUNT=1 "$work/$1" "$work/model.bin" -z "$work/tokenizer.bin" -t 0 -n $steps \
            >"$work/$1.txt" 2>"$work/$1.err" || die "the $1 build failed in round $round"
        speed=$(sed -n 's/^achieved tok\/s: //p' "$work/$1.err")
        fastest=$(awk -v a="$fastest" -v b="$speed" 'BEGIN { print (a + 0 > b + 0 ? a : b) }')
    done
    say "$1: $fastest tokens/s"
    echo "$fastest"
}
ours=$(best_of isobit)
best_of isobit_openmp >/dev/null
best=$(best_of best)
default=$(best_of default)
called "$work/isobit.err" $functions
for build in default best isobit_openmp; do
    cmp -s "$work/isobit.txt" "$work/$build.txt" || die "other text than the $build build"
done
words=$(wc -w <"$work/isobit.txt")
[ "$words" -gt $((steps / 2)) ] || die "its main stopped after $words words"
say "the same $words words from all three"
rm -f "$work/model.bin" "$work/small.bin"

row "llama2.c run.c" 0 "$(ratio "$ours" "$default") ($ours tokens/s)" "$(ratio "$ours" "$best")" \
    "$difference (logits), the same tokens" "$bits"
