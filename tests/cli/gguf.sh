#!/bin/sh
# SPDX-License-Identifier: MIT
#
# GGUF files.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

gguf=$source/tests/data/gguf
works 'info of a GGUF file' "$@" info --model "$gguf/gpt2.gguf"
says 'model gpt2, 8032 parameters, 0.0 MB in memory' 'info of a GGUF file'
says 'commands run generate score bench' 'info of a GGUF file'
works 'info of a GGUF file without text' "$@" info --model "$gguf/llama.gguf"
says ' no text llama.gguf: "tokenizer.ggml.model" is "none", which isobit does not have; use token ids' \
    'info of a GGUF file without text'
mkdir "$work/gguf"
cp "$gguf/gpt2.gguf" "$work/gguf/"
works 'text of a GGUF file' "$@" run --model "$gguf/gpt2.gguf" 'the band'
cp "$work/out" "$work/drawn"
grep -q '^the band' "$work/out" || problem 'text of a GGUF file: not the prompt'
works 'text of a folder with one' "$@" run --model "$work/gguf" 'the band'
same 'a folder with a GGUF file is not the file' "$work/drawn"
cp "$gguf/gpt2.gguf" "$work/gguf/other.gguf"
fails 1 'more than one .gguf file' 'a folder with two' "$@" run --model "$work/gguf" 'the band'
# The type of a tensor follows its name, its rank and two sizes; 16 is IQ2_XXS.
at=$(grep -a -b -o 'blk.0.attn_output.weight' "$gguf/gpt2.gguf" | head -n 1 | cut -d : -f 1)
cp "$gguf/gpt2.gguf" "$work/quantised.gguf"
chmod u+w "$work/quantised.gguf"
printf '\020' | dd of="$work/quantised.gguf" bs=1 seek=$((at + 24 + 4 + 16)) conv=notrunc 2>/dev/null
fails 1 'quantised.gguf: tensor "blk.0.attn_output.weight" has type IQ2_XXS, which isobit does not read' \
    'info of a quantised file' "$@" info --model "$work/quantised.gguf"
rm "$work/quantised.gguf"
works 'info of Q8_0' "$@" info --model "$gguf/llama-q8_0.gguf"
says ' in 8 bits 15488 parameters, in groups' 'info of Q8_0'
says ' in the files Q8_0 15488, F16 3072, F32 608' 'types of Q8_0'
works 'info of Q4_0' "$@" info --model "$gguf/qwen2-q4_0.gguf"
says ' in 4 bits 12864 parameters, in groups' 'info of Q4_0'
says ' in the files Q4_0 12864, F16 3072, F32 256' 'types of Q4_0'
fails 1 'line 1: 42 source tokens, but the model takes at most 40' 'a prompt longer than the context' "$@" run \
    --model "$gguf/gpt2.gguf" 'the band and the end and the band and the end and the band and the end'
fails 1 'and up to 3999 may follow; the model has 40 positions' 'more than the context asked for' "$@" run \
    --model "$gguf/gpt2.gguf" --max-length 4000 the
fails 1 'there is no file none.gguf' 'no GGUF file' "$@" info --model "$work/none.gguf"

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
