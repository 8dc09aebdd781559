#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The same output everywhere: instruction sets, threads, how lines come; and what is drawn.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

# ---------------------------------------------------------------------------------------- JSON

input 'a "quoted" word\n\nnext\n'
fails 0 'line 1: without 2 characters that' 'run --json' "$@" run --model "$model" --json
lines_are 'run --json' 3
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys
for number, line in enumerate(open(sys.argv[1], encoding="utf-8"), 1):
    assert json.loads(line)["line"] == number' "$work/out" || problem 'run --json: not valid JSON'
fi

# -------------------------------------------------------------------------- the same everywhere

input 'the quick brown fox jumps over the lazy dog\nattention is all you need\n'
works 'digest' "$@" run --model "$model" --digest
cp "$work/out" "$work/digest"
grep -q -E '^[0-9a-f]{16}$' "$work/out" || problem 'digest: not 16 digits'
"$@" run --isa none --model "$model" 2>"$work/err" >"$work/out"
isas=$(sed 's/.*it has: //; s/,//g' "$work/err")
for isa in $isas; do
    works "digest on $isa" "$@" run --model "$model" --digest --isa "$isa"
    same "the digest differs on $isa" "$work/digest"
    works "digest on $isa by ISOBIT_ISA" env ISOBIT_ISA="$isa" "$@" run --model "$model" --digest
    same "the digest differs with ISOBIT_ISA=$isa" "$work/digest"
done
for threads in 1 3; do
    works "digest with $threads threads" "$@" run --model "$model" --digest --threads "$threads"
    same "the digest differs with $threads threads" "$work/digest"
done
works 'digest of arguments' "$@" run --model "$model" --digest \
    'the quick brown fox jumps over the lazy dog' 'attention is all you need'
same 'the digest of arguments differs' "$work/digest"
# Native numerics are told beside the hash, where the set has them; these weights are no BF16.
works 'digest in native numerics' env ISOBIT_NUMERICS=native "$@" run --model "$model" --digest
checks=$((checks + 1))
told=$(ISOBIT_NUMERICS=native "$@" version | sed -n 's/.*(numerics \(native (.*)\))$/  numerics \1/p')
[ "$(cat "$work/out")" = "$(cat "$work/digest")$told" ] || problem 'digest: native numerics are not told'
# Weights where they lie in the file: other operations, the same bits.
tiny=$source/tests/data/models/gpt2
works 'ids' "$@" generate --model "$tiny" --digest '5 6 7'
cp "$work/out" "$work/packed"
ISOBIT_VERBOSE=1 "$@" generate --model "$tiny" --digest --map '5 6 7' >"$work/out" 2>"$work/mapped"
same '--map changes the output' "$work/packed"
checks=$((checks + 1))
if grep -q ',linear_f32,' "$work/mapped" || ! grep -q ',gemm_f32,' "$work/mapped"; then
    problem '--map: weights are packed'
fi
# More positions: from 41 on the factors for long texts, which change short ones, too.
longrope=$source/tests/data/models/phi3-longrope
tab=$(printf '\t')
pair="1$tab$(seq -s ' ' 2 42)"
fails 1 'the model takes at most 40' 'a text that is too long' "$@" score --model "$longrope" "$pair"
works 'a long text' "$@" score --model "$longrope" --positions 80 "$pair"
fails 1 'the model has at most 80' 'more positions than there are' "$@" score --model "$longrope" \
    --positions 81 "$pair"
fails 2 'whole number' 'no positions' "$@" run --model "$longrope" --positions 0
for command in score generate; do
    [ "$command" = score ] && line="5 6${tab}7 8" || line='5 6 7 8'
    works "$command, usual positions" "$@" "$command" --model "$longrope" --digest "$line"
    cp "$work/out" "$work/usual"
    works "$command, as many positions" "$@" "$command" --model "$longrope" --digest \
        --positions 40 "$line"
    same "$command: 40 positions are the usual ones" "$work/usual"
    works "$command, more positions" "$@" "$command" --model "$longrope" --digest \
        --positions 41 "$line"
    cmp -s "$work/out" "$work/usual" && problem "$command: --positions 41 changes nothing"
done
# Keys and values of 16 bits: other bits, the same on every set; f32 is what there is without.
pair="5 6${tab}7 8 9"
works 'unrounded scores' "$@" score --model "$tiny" --hex "$pair"
cp "$work/out" "$work/usual"
works '--cache f32' "$@" score --model "$tiny" --hex --cache f32 "$pair"
same '--cache f32 changes scores' "$work/usual"
for type in f16 bf16; do
    works "--cache $type" "$@" score --model "$tiny" --hex --cache $type "$pair"
    cmp -s "$work/out" "$work/usual" && problem "--cache $type changes no score"
    cp "$work/out" "$work/rounded"
    for isa in $isas; do
        works "--cache $type on $isa" "$@" score --model "$tiny" --hex --cache $type --isa "$isa" "$pair"
        same "--cache $type on $isa differs" "$work/rounded"
    done
    ISOBIT_VERBOSE=1 "$@" generate --model "$tiny" --cache $type '5 6 7' 2>"$work/calls" >"$work/out"
    checks=$((checks + 1))
    if ! grep -q ',attention_w16,' "$work/calls"; then
        problem "--cache $type: steps read caches of 32 bits"
    fi
done
# Linear layers of int8: other bits, the same on every set, from other calls.
for what in "$tiny" "$gpt"; do
    line=$pair
    works 'scores in f32' "$@" score --model "$what" --hex "$line"
    cp "$work/out" "$work/usual"
    works '--compute f32' "$@" score --model "$what" --hex --compute f32 "$line"
    same '--compute f32 changes scores' "$work/usual"
    works '--compute int8' "$@" score --model "$what" --hex --compute int8 "$line"
    cmp -s "$work/out" "$work/usual" && problem '--compute int8 changes no score'
    cp "$work/out" "$work/rounded"
    for isa in $isas; do
        works "int8 on $isa" "$@" score --model "$what" --hex --compute int8 --isa "$isa" "$line"
        same "int8 on $isa differs" "$work/rounded"
    done
    works 'int8 on threads' "$@" score --model "$what" --hex --compute int8 --threads 3 "$line"
    same 'int8 on threads differs' "$work/rounded"
    ISOBIT_VERBOSE=1 "$@" generate --model "$what" --compute int8 '5 6 7' 2>"$work/calls" >"$work/out"
    checks=$((checks + 1))
    if ! grep -q ',linear_s8,' "$work/calls" || grep -q ',linear_[^s]' "$work/calls"; then
        problem '--compute int8: a linear layer is not int8'
    fi
done
echo 'ten words' >"$work/words"
works 'a demo of int8' "$@" demo --model "$model" --compute int8 --text "$work/words"
works 'about a model' "$@" info --model "$gpt"
says ' compute f32' 'about a model'
works 'about a model of int8' "$@" info --model "$gpt" --compute int8
says ' compute int8' 'about a model of int8'
says ' in int8 2162688 parameters, each row with a scale' 'about a model of int8'
works 'int8 as JSON' "$@" info --model "$gpt" --compute int8 --json
checks=$((checks + 1))
grep -q '"compute":"int8".*"parameters_8":2162688.*"parameters_int8":2162688' "$work/out" ||
    problem 'int8 as JSON: other numbers'
fails 2 'give f32, int8 or int4' 'a compute of another type' "$@" run --model "$model" --compute int5 a
fails 2 'exclude each other' 'int4, widened' "$@" run --model "$model" --compute int4 --widen a
fails 1 'has no matrix of 4 or 8 bits' 'int4 of floats' "$@" run --model "$model" --compute int4 a
fails 2 'exclude each other' 'int8, widened' "$@" run --model "$model" --compute int8 --widen a
fails 2 '--compute needs --model' 'compute of no model' "$@" info --compute int8
fails 2 'give f32, f16 or bf16' 'a cache of another type' "$@" run --model "$model" --cache f8 a
works 'digest with beams' "$@" run --model "$model" --digest --beam 4
cmp -s "$work/out" "$work/digest" && problem 'the digest does not depend on the beams'

# ------------------------------------------------------------------------ sampling, streaming

works 'sampling' "$@" run --model "$model" --sample --digest --samples 3 --temperature 1.5 --top-k 0
cp "$work/out" "$work/digest"
checks=$((checks + 1)) # what was drawn on other machines
[ "$(cat "$work/digest")" = a990449caed5b725 ] || problem 'other texts, or scores, are drawn'
for isa in $isas; do
    works "sampling on $isa" "$@" run --model "$model" --sample --digest --samples 3 \
        --temperature 1.5 --top-k 0 --isa "$isa" --threads 2
    same "what is drawn differs on $isa" "$work/digest"
done
if $quick; then
    works 'another seed' "$@" run --model "$model" --sample --digest --samples 3 --temperature 1.5 \
        --top-k 0 --seed 4294967296
    cmp -s "$work/out" "$work/digest" && problem 'the seed changes nothing'
    works 'samples' "$@" run --model "$model" --sample --temperature 1.5 --samples 3 --seed 7
    lines_are 'three samples of two lines' 6
    sed -n '1p;4p' "$work/out" >"$work/first"
    cp "$work/out" "$work/samples"
    works 'one sample' "$@" run --model "$model" --sample --temperature 1.5 --seed 7
    same 'the first sample depends on how many there are' "$work/first"
    works 'a sample in a stream' "$@" run --model "$model" --sample --temperature 1.5 --seed 7 \
        --stream
    same 'a stream differs' "$work/first"
    while IFS= read -r line; do
        printf '%s\n' "$line"
        sleep 0.3
    done <"$work/in" | "$@" run --model "$model" --sample --temperature 1.5 --samples 3 --seed 7 \
        >"$work/out" 2>"$work/err"
    same 'what is drawn depends on how lines come' "$work/samples"
    works 'sampling from one token' "$@" run --model "$model" --sample --top-k 1
    cp "$work/out" "$work/limit"
    works 'greedy' "$@" run --model "$model"
    same 'with one token to draw from it is not greedy search' "$work/limit"
    works 'as good as greedy' "$@" run --model "$model" --sample --top-p 1e-6 --min-p 1 \
        --temperature 0.5
    same 'with next to nothing to draw from it is not greedy search' "$work/limit"
    works 'samples with scores' "$@" run --model "$model" --sample --top-k 1 --samples 2 --scores
    lines_are 'samples with scores' 4
    [ "$(sed -n 1p "$work/out")" = "$(sed -n 2p "$work/out")" ] || problem 'equal samples differ'
    works 'samples as JSON' "$@" run --model "$model" --sample --samples 2 --json
    grep -c '^{"line":2,"sample":2,"sequences":\[{' "$work/out" >"$work/count"
    [ "$(cat "$work/count")" = 1 ] || problem 'samples as JSON: no second sample of line 2'
    works 'a stream of beams' "$@" run --model "$model" --beam 3 --stream
    cp "$work/out" "$work/stream"
    works 'beams' "$@" run --model "$model" --beam 3
    same 'a stream of beams differs' "$work/stream"
    works 'a picture of samples' "$@" run --model "$model" --sample --samples 2 \
        --attention "$work/c.svg"
    input '5 6 7 2\n\n8 9 2\n'
    works 'a stream of ids' "$@" generate --model "$model" --stream
    cp "$work/out" "$work/stream"
    works 'ids' "$@" generate --model "$model"
    same 'a stream of ids differs' "$work/stream"
fi

input 'the quick brown fox jumps over the lazy dog\nattention is all you need\n'

# Slow writers get each answer at once, in the same order and with the same bits as fast ones.
"$@" run --model "$model" --scores <"$work/in" >"$work/fast" 2>&1
while IFS= read -r line; do
    printf '%s\n' "$line"
    sleep 0.3
done <"$work/in" | "$@" run --model "$model" --scores >"$work/out" 2>"$work/err"
same 'a slow pipe changes the output' "$work/fast"

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
