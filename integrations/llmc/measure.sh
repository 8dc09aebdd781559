#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086,SC2154 # lists of flags and names; variables of common.sh
#
# usage: llmc FOLDER       llm.c's train_gpt2.c from a checkout: GPT-2 of 124 M random weights
#
# Builds it as its Makefile does (-Ofast -march=native -fopenmp), plainly (-O3), and plainly with
# isobit's functions in the place of its own. Four sentences of 64 tokens, as its main has them.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
name=llmc
# shellcheck source=/dev/null
. "$root/integrations/common.sh"
here=$root/integrations/$name
source=$(program "${1:-}" train_gpt2.c)
functions="encoder_forward layernorm_forward matmul_forward matmul_backward attention_forward
    attention_backward gelu_forward residual_forward softmax_forward"
begin
library

say "building $source three times"
drive -O3 -o "$work/default" -lm
drive -Ofast -march=native -fopenmp -DOMP -o "$work/best" -lm
drive -O3 -fno-math-errno -fPIC -fsemantic-interposition -c -o "$work/driver.o"
weaken "$work/driver.o" $functions
compile -std=c11 -O2 -ffp-contract=off $isobit_flags -c "$here/isobit_llmc.c" \
    -o "$work/isobit_llmc.o"
compile "$work/driver.o" "$work/isobit_llmc.o" -o "$work/isobit" $isobit_libs
compile -std=c11 -D_GNU_SOURCE -O2 "$here/make_checkpoint.c" -o "$work/make_checkpoint" -lm
compile -std=c11 -O2 "$root/integrations/compare.c" -o "$work/compare" -lm

# run BUILD CHECKPOINT B T STEPS
run() {
    build=$1
    shift
    model=$1
    shift
    ISOBIT_COUNT=1 "$work/$build" "$work/$model" "$@" "$work/$build.logits" \
        >"$work/$build.txt" 2>"$work/$build.err" || {
        cat "$work/$build.err" >&2
        die "the $build build failed"
    }
}

# Not whole vectors, blocks or tiles: 3 sentences of 50 tokens, three heads of 32.
"$work/make_checkpoint" "$work/small.bin" 2 3 96 64 1000
bits=$(equal_bits "$work/isobit" "$work/small.bin" 3 50 3)
say "equal bits: $bits"

say "a checkpoint of 124 M weights"
"$work/make_checkpoint" "$work/model.bin" 12 12 768 1024 50257
for build in isobit best default; do
    say "two steps of the $build build"
    run $build model.bin 4 64 2
    say "forward $(value forward_ms "$work/$build.txt") ms," \
        "a whole step $(value step_ms "$work/$build.txt") ms"
done
rm -f "$work/model.bin" "$work/small.bin"
called "$work/isobit.err" $functions

# The bounds. Logits: two orders of summing up to 3072 products of floats, through 12 layers; its
# own two builds differ as much. The first loss: a float sum of 256 losses, 2^-24 each. The second:
# Adam's first step follows the sign of a gradient, also where that is next to nothing.
for build in default best; do
    # shellcheck disable=SC2046 # two numbers
    set -- $("$work/compare" "$work/$build.logits" "$work/isobit.logits")
    say "logits against the $build build: largest difference $1, largest value $2"
    below "$1" "$(awk -v v="$2" 'BEGIN { print 2e-5 * v }')" || die "that is too far"
    [ "$build" != default ] || difference=$1
    for step in 0 1; do
        ours=$(value "loss $step" "$work/isobit.txt")
        theirs=$(value "loss $step" "$work/$build.txt")
        far=$(awk -v a="$ours" -v b="$theirs" 'BEGIN { d = a / b - 1; print d < 0 ? -d : d }')
        say "loss $step: $ours, the $build build $theirs (apart by $far of it)"
        below "$far" "$([ $step = 0 ] && echo 1.5e-5 || echo 1e-4)" || die "that is too far"
    done
done
rm -f "$work"/*.logits

speed() { # BUILD: forward, and a whole step
    printf '%s forward, %s training step' \
        "$(ratio "$(value forward_ms "$work/$1.txt")" "$(value forward_ms "$work/isobit.txt")")" \
        "$(ratio "$(value step_ms "$work/$1.txt")" "$(value step_ms "$work/isobit.txt")")"
}
row "llm.c train_gpt2.c" 0 "$(speed default)" "$(speed best)" "$difference (logits)" "$bits"
