#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Folders that are no model, and lines of input that are wrong.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

fails 1 "$work/none" 'missing directory' "$@" run --model "$work/none" word
for case in truncated empty renamed config; do
    mkdir "$work/$case"
    cp "$model"/*.json "$model/model.safetensors" "$work/$case/"
done
head -c 100000 "$model/model.safetensors" >"$work/truncated/model.safetensors"
: >"$work/empty/model.safetensors"
LC_ALL=C sed '1s/\.weight"/.weighs"/' "$model/model.safetensors" >"$work/renamed/model.safetensors"
printf '{"model_type": "isobit-transformer", ' >"$work/config/config.json"
fails 1 'tensor' 'truncated weights' "$@" run --model "$work/truncated" word
for case in empty renamed; do
    fails 1 'model.safetensors' "$case weights" "$@" run --model "$work/$case" word
done
fails 1 'config.json' 'broken config' "$@" run --model "$work/config" word
grep -q 'weigh' "$work/err" && problem 'broken config: names a tensor'
rm "$work/config/config.json"
fails 1 'config.json' 'no config' "$@" run --model "$work/config" word

input 'hello\n\nbig world\nattention'
works 'stdin' "$@" run --model "$model"
lines_are 'one line for each, also for the last without its end' 4
[ -z "$(sed -n 2p "$work/out")" ] || problem 'an empty line does not stay empty'
[ -n "$(sed -n 4p "$work/out")" ] || problem 'no output for a word'
cp "$work/out" "$work/stdin.out"
works 'arguments' "$@" run --model "$model" hello '' 'big world' attention
same 'arguments and stdin differ' "$work/stdin.out"
input 'hello\r\n\r\nbig world\r\nattention\r\n'
works 'lines that end with CR LF' "$@" run --model "$model"
same 'CR LF changes the output' "$work/stdin.out"
input ''
works 'no input' "$@" run --model "$model"
lines_are 'no input' 0

input 'one\ntwo\0000three\n'
fails 1 'line 2: ' 'NUL byte' "$@" run --model "$model"
lines_are 'the line before the error gets its answer' 1
input 'one\ntwo\nthr\0377ee\n'
fails 1 'line 3: ' 'invalid UTF-8' "$@" run --model "$model"
lines_are 'the lines before the error get their answers' 2
awk 'BEGIN { print "word"; for (i = 0; i < 3000; i++) printf "a"; print "" }' >"$work/in"
fails 1 'line 2: ' 'a word that is too long' "$@" run --model "$model"

input '5 6 7 2\n\n8 9 2\n'
works 'ids' "$@" generate --model "$model"
lines_are 'ids' 3
input '5 6 2\n5 600 2\n'
fails 1 'line 2: token 600' 'token out of range' "$@" generate --model "$model"
input '5 6 2\n\n99999999999999999999\n'
fails 1 'line 3: token 9999' 'token beyond all numbers' "$@" generate --model "$model"
input '5 -6 2\n'
fails 1 'line 1: ' 'negative id' "$@" generate --model "$model"

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
