#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Scores of ids and of texts.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

input '5 6 7 2\t10 11 2\n\n8 2\t5\n'
works 'score' "$@" score --model "$model" --hex
lines_are 'score' 3
[ "$(sed -n 1p "$work/out" | wc -w)" -eq 3 ] || problem 'score: not one number for each token'
sed -n 1p "$work/out" | grep -q '^-0x' || problem 'score --hex: no hexadecimal float'
input '5 6 2\n'
fails 1 'TAB' 'score without TAB' "$@" score --model "$model"
input '5 6 2\t7 1234\n'
fails 1 'line 1: token 1234' 'target out of range' "$@" score --model "$model"

# Texts: as transformers cuts them, and as PyTorch scores them in double precision.
tab=$(printf '\t')
works 'score of texts, a decoder alone' "$@" score --model "$gpt" --text \
    "transformer:$tab someone who disapprotates" '' 'isobit: someone who is great' \
    "${tab}isobit: someone who is great" "transf${tab}ormer: a thing" "a${tab}b"
near 'score of texts, a decoder alone' "-16.153961132 7 10.051367884

-40.262108665 8 153.35624033
-40.262108665 8 153.35624033
-13.805064484 6 9.9826050248
-4.9871350888 1 146.51606612"
works 'score of ids, a decoder alone' "$@" score --model "$gpt" --digest \
    "1852 83 557 261 26${tab}527 402 480 367 577 84 620"
cp "$work/out" "$work/by_ids"
works 'its text' "$@" score --model "$gpt" --text --digest \
    "transformer:$tab someone who disapprotates"
same 'the digests of ids and of their text differ' "$work/by_ids"
works 'score of texts as JSON' "$@" score --model "$gpt" --text --json "transf${tab}ormer: a"
checks=$((checks + 1))
grep -q '^{"line":1,"tokens":\["form","er",":","Ġa"\],"log_probs":\[-[0-9.,-]*\],"sum":-[0-9.]*,"count":4,"perplexity":[0-9.]*}$' \
    "$work/out" || problem 'score of texts as JSON'
# A tokenizer that puts the first token before every text: it belongs to the source, given or not.
mkdir "$work/begins"
cp "$gpt/config.json" "$gpt/model.safetensors" "$work/begins"
{
    end='"<|endoftext|>"'
    begins='{"SpecialToken":{"id":'$end',"type_id":0}},{"Sequence":{"id":"A","type_id":0}}'
    printf '%s' '{"version":"1.0","added_tokens":[{"id":0,"content":'"$end"',"single_word":false,' \
        '"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":null,' \
        '"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},' \
        '"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},' \
        '"post_processor":{"type":"TemplateProcessing","single":['"$begins"'],' \
        '"pair":['"$begins"',{"Sequence":{"id":"B","type_id":0}}],' \
        '"special_tokens":{'"$end"':{"id":'"$end"',"ids":[0],"tokens":['"$end"']}}},' \
        '"model":{"type":"BPE","vocab":'
    cat "$gpt/vocab.json"
    printf ',"merges":['
    sed -n '/^#version/d; s/\\/\\\\/g; s/"/\\"/g; s/.*/"&"/p' "$gpt/merges.txt" | paste -s -d , -
    printf ']}}\n'
} >"$work/begins/tokenizer.json"
works 'score after a first token' "$@" score --model "$work/begins" --text "${tab}isobit: someone who is great" \
    "isobit: someone who is great" ''
near 'score after a first token' "-40.262108665 8 153.35624033
-40.262108665 8 153.35624033
"
works 'score of ids after a first token' "$@" score --model "$gpt" --digest \
    "0 1852 83 557 261 26${tab}527 402 480 367 577 84 620"
cp "$work/out" "$work/by_ids"
works 'its text, after a first token' "$@" score --model "$work/begins" --text --digest \
    "transformer:$tab someone who disapprotates"
same 'the digests of ids and of their text differ after a first token' "$work/by_ids"
fails 1 'line 1: has no target after the TAB' 'a first token is no target' "$@" score --model "$work/begins" \
    --text "two$tab"
# A model of words: all sequences of a line together, the end of each included.
works 'words to score' "$@" run --model "$model" --json 'attention is'
sed 's/.*"output":"\([^"]*\)".*"score":\([-0-9.e]*\).*"output":"\([^"]*\)".*"score":\([-0-9.e]*\).*/\1 \3 \2 \4/' \
    "$work/out" >"$work/words"
read -r first second a b <"$work/words"
works 'score of words' "$@" score --model "$model" --text "attention is$tab$first $second"
near 'score of words' "$(awk -v a="$a" -v b="$b" 'BEGIN { s = a + b; printf "%.9f 13 %.9f", s, exp(-s / 13) }')"
works 'score of words, exactly' "$@" score --model "$model" --text --hex "two${tab}tˈuː" ''
grep -q -x -E "(-0x[0-9a-f.]+p[-+][0-9]+${tab}5${tab}0x[0-9a-f.]+p[-+][0-9]+)?" "$work/out" ||
    problem 'score --text --hex: other numbers'
fails 1 'line 1: has no TAB; give a source' 'a pair without TAB' "$@" score --model "$model" --text two
fails 1 'line 1: has no source before the TAB' 'no source' "$@" score --model "$model" --text "${tab}two"
fails 1 'line 1: has no target after the TAB' 'no target' "$@" score --model "$model" --text "two$tab"
fails 1 'line 1: has no target after the TAB' 'no continuation' "$@" score --model "$gpt" --text "two$tab"
fails 1 'line 1: 2 sequences before the TAB, but 1 after it' 'another number of words' "$@" score \
    --model "$model" --text "two words${tab}a"
fails 2 '--from needs --text' 'a language of ids' "$@" score --model "$model" --from en "5${tab}6"
fails 2 '--strict needs --text' 'strict with ids' "$@" score --model "$model" --strict "5${tab}6"
fails 1 'line 1: the vocabulary lacks 1 character' 'strict with text' "$@" score --model "$model" --text \
    --strict "tw☃${tab}a"
fails 1 'line 1: the vocabulary lacks 2 characters (--strict)' 'strict with a target' "$@" score --model "$model" \
    --text --strict "two${tab}t☃☃u"
fails 1 'line 1: the vocabulary lacks 3 characters (--strict)' 'strict with both' "$@" score --model "$model" \
    --text --strict "t☃wo${tab}☃tu☃"
checks=$((checks + 1))
"$@" score --model "$model" --text "two${tab}☃tˈuː" >"$work/without" 2>"$work/err"
grep -q 'line 1: without 1 character that the vocabulary lacks' "$work/err" ||
    problem 'a target without a character: not told'
works 'that target' "$@" score --model "$model" --text "two${tab}tˈuː"
same 'a target without a character is another one' "$work/without"
input 'a\tb\nx\0377\tb\n'
fails 1 'line 2: the text is not valid UTF-8' 'no text to score' "$@" score --model "$model" --text
lines_are 'the line before has its score' 1
awk 'BEGIN { printf "a\t"; for (i = 0; i < 3000; i++) printf " a"; print "" }' >"$work/in"
fails 1 'line 1: 3000 source and target tokens, but the model takes at most' 'too long to score' "$@" score \
    --model "$gpt" --text
input ''

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
