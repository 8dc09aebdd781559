#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Stops, the options of sampling, and what is said of a model.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

# stops TITLE EXPECTED ARG...: run prints that, at once and in a stream.
stops() {
    what=$1
    printf '%s\n' "$2" >"$work/wanted"
    shift 2
    works "$what" "$@"
    same "$what" "$work/wanted"
    works "$what, in a stream" "$@" --stream --threads 2
    same "$what, in a stream" "$work/wanted"
}
if $quick; then
    input ''
    works 'no stop' "$@" run --model "$model" 'attention is nothing'
    plain=$(cat "$work/out")
    stops 'stops of words' "$(printf '%s\n' "$plain" | tr ' ' '\n' | sed 's/n.*//; s/ˈɪ.*//' | paste -sd ' ')" \
        "$@" run --model "$model" --stop 'n' --stop 'ˈɪ' 'attention is nothing'
    stops 'a stop that is only begun' "$plain" "$@" run --model "$model" --stop 'ənn' --stop 'ɪx' \
        'attention is nothing'
    works 'a decoder alone' "$@" run --model "$gpt" 'transformer:'
    plain=$(cat "$work/out")
    for stop in appr 'ne who di' ' ' tes; do
        stops "the stop '$stop'" "transformer:$(printf '%s' "${plain#transformer:}" | awk -v s="$stop" \
            '{ print substr($0, 1, index($0, s) - 1) }')" "$@" run --model "$gpt" --stop zz --stop "$stop" \
            'transformer:'
    done
    stops 'a stop in the prompt' "$plain" "$@" run --model "$gpt" --stop transf --stop er: 'transformer:'
    works 'a stop as JSON' "$@" run --model "$gpt" --stop 'ne who di' --json 'transformer:'
    checks=$((checks + 1))
    grep -q '"output":" someo","source_ids":\[[0-9,]*\],"ids":\[527,402,480\],' "$work/out" ||
        problem 'a stop as JSON: other text or ids'
fi
fails 2 'give a text that is not empty' 'an empty stop' "$@" run --model "$model" --stop '' word
fails 1 'stop text 1 is not valid UTF-8 at byte 1' 'a stop that is no text' "$@" run --model "$model" \
    --stop a --stop "$(printf 'b\377')" word
fails 2 "'--stop'" 'a stop of ids' "$@" generate --model "$model" --stop a '5 2'

fails 2 '--top-k needs --sample' 'top-k alone' "$@" run --model "$model" --top-k 5 word
fails 2 '--seed needs --sample' 'seed alone' "$@" run --model "$model" --seed 0 word
fails 2 'exclude each other' 'samples of beams' "$@" run --model "$model" --sample --beam 2 word
fails 2 'exclude each other' 'a stream of samples' "$@" run --model "$model" --sample --samples 2 \
    --stream word
for other in json digest scores; do
    fails 2 "--stream and --$other exclude" "a stream with --$other" "$@" run --model "$model" \
        --stream "--$other" word
done
for bad in 0 -1 nan inf x '' 1e-60 1e999 0x1; do
    fails 2 'give a number above 0' "temperature '$bad'" "$@" run --model "$model" --sample \
        --temperature "$bad" word
done
for bad in 0 1.01 -0.5 nan; do
    fails 2 'give a number above 0 and at most 1' "top-p '$bad'" "$@" run --model "$model" \
        --sample --top-p "$bad" word
done
fails 2 'give a number from 0 to 1' 'min-p' "$@" run --model "$model" --sample --min-p 1.5 word
for bad in -1 1.5 x 18446744073709551616; do
    fails 2 'give a whole number from 0' "top-k '$bad'" "$@" run --model "$model" --sample \
        --top-k "$bad" word
done
works 'the largest numbers' "$@" run --model "$model" --sample --top-k 18446744073709551615 \
    --seed 18446744073709551615 --min-p 0 --top-p 1 word
fails 2 'whole number from 1' 'no samples' "$@" run --model "$model" --sample --samples 0 word
fails 1 'at most 1024 are possible' 'too many samples' "$@" run --model "$model" --sample \
    --samples 1025 word
if [ -w /dev/full ]; then
    checks=$((checks + 1))
    "$@" run --model "$model" --stream word >/dev/full 2>"$work/err"
    if [ $? -ne 1 ] || [ "$(wc -l <"$work/err")" -ne 1 ] ||
        ! grep -q '^isobit: cannot write' "$work/err"; then
        problem 'a stream into a full disk'
    fi
fi

works 'info of a model' "$@" info --model "$model"
says 'defaults 1 beam, at most 96 target tokens with the start token' 'info of a model'
says ' sampling off, with --sample: temperature 1, top-k 50, top-p 1, min-p 0' 'info of a model'
if $quick; then
    mkdir "$work/warm"
    cp "$model"/*.json "$model/model.safetensors" "$work/warm/"
    printf '{"eos_token_id": 2, "do_sample": true, "temperature": 0.7, "top_k": 0, "top_p": 0.9}' \
        >"$work/warm/generation_config.json"
    works 'info of a model that samples' "$@" info --model "$work/warm"
    says ' sampling on: temperature 0.7, top-k 0, top-p 0.9, min-p 0' 'info of a model that samples'
    works 'info of a model as JSON' "$@" info --model "$work/warm" --json
    lines_are 'info of a model as JSON' 1
    grep -q '"default_sampling":true,"default_temperature":0.69999999999999996,' "$work/out" ||
        grep -q '"default_sampling":true,"default_temperature":0.7,' "$work/out" ||
        problem 'info of a model as JSON: no temperature'
    input 'attention is all you need\n'
    works 'a model that samples' "$@" run --model "$work/warm"
    cp "$work/out" "$work/drawn"
    works 'the same, asked for' "$@" run --model "$model" --sample --temperature 0.7 --top-k 0 \
        --top-p 0.9 --max-length 20
    same 'the settings of the model are not those of the options' "$work/drawn"
    works 'a model that samples, greedily' "$@" run --model "$work/warm" --beam 1
    cp "$work/out" "$work/drawn"
    works 'greedy' "$@" run --model "$model" --max-length 20
    same '--beam 1 does not turn off sampling' "$work/drawn"
    printf '{"eos_token_id": 2, "do_sample": true, "num_beams": 4}' \
        >"$work/warm/generation_config.json"
    fails 1 "as the model's files ask for" 'a model that samples with beams' "$@" run \
        --model "$work/warm" word
    works 'its beams' "$@" run --model "$work/warm" --beam 4 word
    works 'its samples' "$@" run --model "$work/warm" --sample word
fi

# The tokenizer is read while the model is; what is said does not depend on who was faster.
cp -r "$model" "$work/both"
for name in tokenizer_config.json vocab.json; do
    printf '{' >"$work/both/$name"
done
for threads in 1 2; do
    fails 1 'tokenizer_config.json' "no tokenizer, $threads threads" "$@" run \
        --model "$work/both" --threads $threads word
done
printf 'short' >"$work/both/model.safetensors"
for threads in 1 2; do
    fails 1 'model.safetensors' "neither model nor tokenizer, $threads threads" "$@" run \
        --model "$work/both" --threads $threads word
done

fails 2 '--env and --model exclude' 'info of two things' "$@" info --env --model "$model"
fails 1 'config.json' 'info of no model' "$@" info --model "$work"

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
