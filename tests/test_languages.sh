#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Models with several languages, as the command line gives them: --from stands around a source, --to
# begins its translation. The weights are those of the tiny Marian model, which have more rows than
# these tokenizers have tokens.
# Usage: test_languages.sh SOURCE-DIR COMMAND [ARG...]
set -u

source=$1
shift
# shellcheck source=tests/command.sh
. "$source/tests/command.sh"

# folder NAME: the weights with the tokenizer NAME.
folder() {
    rm -rf "$work/model"
    mkdir "$work/model"
    for file in config.json generation_config.json model.safetensors; do
        cp "$source/tests/data/text/marian/$file" "$work/model"
    done
    cp "$source/tests/data/text/$1"/* "$work/model"
    chmod -R u+w "$work/model"
}

# ids TITLE SOURCE TARGET COMMAND...: the ids begin so, and stderr is empty.
ids() {
    title=$1 from=$2 to=$3
    shift 3
    checks=$((checks + 1))
    if ! "$@" --json "ab" >"$work/out" 2>"$work/err" || [ -s "$work/err" ]; then
        problem "$title: failed, or something on stderr"
    elif ! grep -q "\"source_ids\":\[$from.*\"ids\":\[$to" "$work/out"; then
        cp "$work/out" "$work/err"
        problem "$title: other ids"
    fi
}

: >"$work/in"
folder nllb
ids 'both languages' '224,' '222,' "$@" run --model "$work/model" --from fra_Latn --to deu_Latn
ids 'beams' '225,' '221,' "$@" run --model "$work/model" --from zul_Latn --to ace_Arab --beam 3
ids 'English by default' '223,' '' "$@" run --model "$work/model"
echo '{"tokenizer_class":"NllbTokenizer","additional_special_tokens":["a_b","c_d"],"src_lang":"c_d","tgt_lang":"a_b"}' \
    >"$work/model/tokenizer_config.json"
ids 'as the folder says' '222,' '221,' "$@" run --model "$work/model"
ids 'others than the folder says' '221,' '222,' "$@" run --model "$work/model" --from a_b --to c_d
fails 1 'no language "deu_Latn"; it has 2, for example a_b c_d' 'a language that it lacks' \
    "$@" run --model "$work/model" --from deu_Latn a
fails 1 'no language "x"' 'a target that it lacks' "$@" run --model "$work/model" --to x a
# Scores: the language of the target is given, not judged. As PyTorch has them.
folder nllb
works 'score of a translation' "$@" score --model "$work/model" --text --to deu_Latn "ab$(printf '\t')ab a"
near 'score of a translation' '-42.2043524 4 38219.0016'
# The target may be the start token already: mBART. Then it is not said twice.
folder mbart
sed -i 's/"decoder_start_token_id": *[0-9]*/"decoder_start_token_id": 166/' \
    "$work/model/config.json" "$work/model/generation_config.json"
checks=$((checks + 1))
"$@" run --model "$work/model" --from ro_RO --to en_XX --json ab >"$work/out" 2>"$work/err" &&
    "$@" run --model "$work/model" --from ro_RO --json ab >"$work/want" 2>>"$work/err"
cmp -s "$work/out" "$work/want" || problem 'the start token is the language: said twice'
works 'score after a language' "$@" score --model "$work/model" --text --json --from ro_RO --to en_XX \
    "ab$(printf '\t')ab"
sed 's/"tokens":[^]]*\],//' "$work/out" >"$work/want"
source_ids=$("$@" run --model "$work/model" --from ro_RO --json ab | sed 's/.*"source_ids":.\([0-9,]*\).*/\1/')
works 'the same of ids' "$@" score --model "$work/model" --json \
    "$(echo "$source_ids" | tr , ' ')$(printf '\t')$(echo "${source_ids%,*}" | tr , ' ')"
same 'score after a language: not that of its ids' "$work/want"
folder t5
fails 1 'no languages to choose from' 'a model without languages' \
    "$@" run --model "$work/model" --from en a
fails 2 '--from' 'not of ids' "$@" generate --model "$work/model" --from en 1
# More tokens than the model has ids.
folder bart
fails 1 'the tokenizer has 380 tokens' 'more tokens than ids' "$@" run --model "$work/model" a

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
