#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command line as its users meet it: exit codes, one clear line for each error, order and
# streaming of lines, equal hashes on every instruction set. Usage: test_cli.sh SOURCE-DIR COMMAND
# [ARG...], where COMMAND runs isobit, perhaps through an emulator.
set -u

source=$1
shift
model=$source/models/g2p-en
if ! [ -f "$model/model.safetensors" ]; then
    echo "SKIPPED: $model/model.safetensors is not there"
    exit 77
fi
# shellcheck source=tests/command.sh
. "$source/tests/command.sh"

# What stdin will be; with escapes, bytes as \0 and octal digits.
input() { printf '%b' "$1" >"$work/in"; }

lines_are() {
    checks=$((checks + 1))
    [ "$(wc -l <"$work/out")" -eq "$2" ] || problem "$1: $(wc -l <"$work/out") lines, not $2"
}

# ------------------------------------------------------------------------------ usage and help

input ''
checks=$((checks + 1))
"$@" <"$work/in" >"$work/out" 2>"$work/err"
if [ $? -ne 2 ] || [ -s "$work/out" ] || ! grep -q '^usage: isobit COMMAND' "$work/err" ||
    ! grep -q '^  run  *text in' "$work/err"; then
    problem "no command: not the usage on stderr and exit code 2"
fi
fails 2 'run, generate, score' 'unknown command' "$@" frobnicate
fails 2 "'--frobnicate'" 'unknown option before a command' "$@" --frobnicate
fails 2 "'--frobnicate'" 'unknown option' "$@" run --frobnicate
fails 2 "'-x'" 'unknown letter' "$@" run -x
fails 2 "'--top'" 'an option of another command' "$@" run --model "$model" --top 3
fails 2 "'--from'" 'an option of another command' "$@" fill --model "$model" --from en
fails 2 "'--beam'" 'option without its value' "$@" run --model "$model" --beam
fails 2 'whole number' 'zero beams' "$@" run --model "$model" --beam 0
fails 2 'whole number' 'number with rubbish' "$@" run --model "$model" --threads 2x
fails 2 '--model' 'no model' "$@" run word
fails 2 'word' 'argument where none belongs' "$@" info word
fails 2 '--model' 'bench without a model' "$@" bench
fails 2 'exclude each other' 'bench of two models' "$@" bench --base --model "$model"
fails 2 'seconds above 0' 'no time to measure' "$@" bench --base --seconds 0
fails 2 'seconds above 0' 'time that is no number' "$@" bench --base --seconds 1x
fails 2 'scalar' 'bench on an unknown instruction set' "$@" bench --model "$model" --isa sse9
fails 1 "$work/nowhere" 'no place for the weights' env TMPDIR="$work/nowhere" "$@" bench --base
fails 2 'decoder layers' 'layer out of range' "$@" run --model "$model" --attention "$work/a.svg" \
    --layer 99 word
fails 2 'scalar' 'unknown instruction set lists the valid ones' "$@" run --model "$model" \
    --isa sse9 word
ISOBIT_ISA=sse9
export ISOBIT_ISA
fails 2 'ISOBIT_ISA=sse9' 'unknown instruction set in the environment' "$@" run \
    --model "$model" word
unset ISOBIT_ISA
for command in '' run generate score embed fill demo explain info version; do
    # shellcheck disable=SC2086 # empty for the program itself
    works "$command --help" "$@" $command --help
    grep -q usage "$work/out" || problem "$command --help: no usage"
done
works version "$@" version
works 'info' "$@" info
works 'info --json' "$@" info --json
if command -v python3 >/dev/null 2>&1; then
    python3 -m json.tool "$work/out" >/dev/null || problem 'info --json: not valid JSON'
fi

# says TEXT TITLE: what the last command printed has such a line, blanks squeezed.
says() {
    checks=$((checks + 1))
    tr -s ' ' <"$work/out" | grep -q -x -F -e "$1" || problem "$2: no line '$1'"
}

# ------------------------------------------------------------------------ info --env, as a table

bare() {
    env -u ISOBIT_VERBOSE -u ISOBIT_VERBOSE_FILE -u ISOBIT_NUM_THREADS -u OMP_NUM_THREADS "$@"
}
works 'info --env' bare "$@" info --env
says 'ISOBIT_ISA default the best that can run' 'info --env'
says 'ISOBIT_VERBOSE default 0' 'info --env'
says 'ISOBIT_NUM_THREADS default OMP_NUM_THREADS' 'info --env'
says ' libisobit: the instruction set of all calls that name none' 'info --env'
works 'values of the environment' bare env ISOBIT_ISA=scalar ISOBIT_VERBOSE=2 OMP_NUM_THREADS=4,2 \
    ISOBIT_VERBOSE_FILE="$work/v" "$@" info --env
says 'ISOBIT_ISA environment scalar' 'valid value'
says 'ISOBIT_VERBOSE environment 2' 'valid value'
says "ISOBIT_VERBOSE_FILE environment $work/v" 'valid value'
says 'OMP_NUM_THREADS environment 4,2' 'valid value'
works 'invalid values' bare env ISOBIT_ISA=mmx ISOBIT_VERBOSE=3 ISOBIT_NUM_THREADS=0 \
    OMP_NUM_THREADS=two "$@" info --env
says 'ISOBIT_ISA invalid mmx (no instruction set that can run here: calls are refused)' 'invalid'
says 'ISOBIT_VERBOSE invalid 3 (none of 0 1 2: counts as 0)' 'invalid'
says 'ISOBIT_NUM_THREADS invalid 0 (no number of threads: counts as not set)' 'invalid'
says 'OMP_NUM_THREADS invalid two (no number of threads: counts as not set)' 'invalid'
works 'empty values' bare env ISOBIT_ISA= ISOBIT_VERBOSE= ISOBIT_NUM_THREADS= "$@" info --env
says 'ISOBIT_ISA default the best that can run' 'empty value'
says 'ISOBIT_VERBOSE default 0' 'empty value'
works 'info --env --json' bare env ISOBIT_VERBOSE=3 ISOBIT_VERBOSE_FILE='a"\b' "$@" info --env \
    --json
lines_are 'info --env --json' 1
for part in '"name": "ISOBIT_VERBOSE", "value": "3", "source": "invalid"' \
    '"name": "ISOBIT_VERBOSE_FILE", "value": "a\"\\b", "source": "environment"' \
    '"name": "ISOBIT_NUM_THREADS", "value": null, "source": "default", "problem": null'; do
    checks=$((checks + 1))
    grep -q -F -e "$part" "$work/out" || problem "info --env --json: no $part"
done
if command -v python3 >/dev/null 2>&1; then
    python3 -m json.tool "$work/out" >/dev/null || problem 'info --env --json: not valid JSON'
fi
# The table names what the sources read, all of it and nothing else.
checks=$((checks + 1))
(cd "$source" && grep -r -h -o -E '(getenv|read_count)\("[A-Z_]+"\)' blas dispatch model tools) |
    sed 's/.*"\(.*\)".*/\1/' | sort -u >"$work/in"
sed -n 's/^ENV(\([A-Z_]*\),.*/\1/p' "$source/dispatch/env.def" | sort >"$work/table"
cp "$work/table" "$work/out"
cmp -s "$work/in" "$work/table" || problem 'dispatch/env.def is not what the sources read'
input ''

# ----------------------------------------------------------------------------------- the model

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

# --------------------------------------------------------------------------------------- input

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
gpt=$source/models/tiny-gpt2
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
# Under an emulator or the thread sanitizer these take long, and say nothing new.
quick=false
if [ $# -eq 1 ] && [ -z "${ISOBIT_EMULATED:-}" ]; then
    quick=true
fi
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

# ---------------------------------------------------------------------------------------- stops

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
    gpt=$source/models/tiny-gpt2
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
# The type of a tensor follows its name, its rank and two sizes; 2 is Q4_0.
at=$(grep -a -b -o 'blk.0.attn_output.weight' "$gguf/gpt2.gguf" | head -n 1 | cut -d : -f 1)
cp "$gguf/gpt2.gguf" "$work/quantised.gguf"
chmod u+w "$work/quantised.gguf"
printf '\002' | dd of="$work/quantised.gguf" bs=1 seek=$((at + 24 + 4 + 16)) conv=notrunc 2>/dev/null
fails 1 'quantised.gguf: tensor "blk.0.attn_output.weight" has type Q4_0, which isobit does not read' \
    'info of a quantised file' "$@" info --model "$work/quantised.gguf"
rm "$work/quantised.gguf"
fails 1 'line 1: 42 source tokens, but the model takes at most 40' 'a prompt longer than the context' "$@" run \
    --model "$gguf/gpt2.gguf" 'the band and the end and the band and the end and the band and the end'
fails 1 'and up to 3999 may follow; the model has 40 positions' 'more than the context asked for' "$@" run \
    --model "$gguf/gpt2.gguf" --max-length 4000 the
fails 1 'there is no file none.gguf' 'no GGUF file' "$@" info --model "$work/none.gguf"

fails 2 '--env and --model exclude' 'info of two things' "$@" info --env --model "$model"
fails 1 'config.json' 'info of no model' "$@" info --model "$work"
input 'the quick brown fox jumps over the lazy dog\nattention is all you need\n'

# Slow writers get each answer at once, in the same order and with the same bits as fast ones.
"$@" run --model "$model" --scores <"$work/in" >"$work/fast" 2>&1
while IFS= read -r line; do
    printf '%s\n' "$line"
    sleep 0.3
done <"$work/in" | "$@" run --model "$model" --scores >"$work/out" 2>"$work/err"
same 'a slow pipe changes the output' "$work/fast"

# ------------------------------------------------------------------------------------- outputs

works 'attention' "$@" run --model "$model" --attention "$work/a.svg" 'attention matters'
if command -v xmllint >/dev/null 2>&1; then
    xmllint --noout "$work/a.svg" || problem 'the picture is not well-formed XML'
else
    tail -n 1 "$work/a.svg" | grep -q '^</svg>$' || problem 'the picture is not complete'
fi
# picture TITLE SUBTITLE QUERIES KEYS HEADS COMMAND...: and not more cells than that makes with the mean.
picture() {
    what=$1 subtitle=$2 cells=$(($3 * $4 * ($5 + 1)))
    shift 5
    rm -f "$work/p.svg"
    works "$what" "$@" --attention "$work/p.svg"
    checks=$((checks + 1))
    grep -q -F -e ">$subtitle<" "$work/p.svg" || problem "$what: not '$subtitle'"
    found=$(grep -o '<rect' "$work/p.svg" | wc -l)
    # White cells are not drawn. There are also the page, the legend and the frames, fewer than 40.
    if [ "$found" -lt $((cells / 2)) ] || [ "$found" -ge $((cells + 40)) ]; then
        problem "$what: $found rectangles for $cells cells"
    fi
}
# "two" is t w o and the end; its pronunciation has four sounds and the end.
picture 'cross-attention' 'Cross-attention, decoder layer 2 of 2: 4 heads and their mean' 5 4 4 \
    "$@" run --model "$model" two
cp "$work/p.svg" "$work/cross.svg"
picture 'the same, asked for' 'Cross-attention, decoder layer 2 of 2: 4 heads and their mean' 5 4 4 \
    "$@" run --model "$model" --of cross two
cmp -s "$work/p.svg" "$work/cross.svg" || problem '--of cross is not the default'
picture 'self-attention of the encoder' 'Self-attention, encoder layer 1 of 2: 4 heads and their mean' 4 4 4 \
    "$@" run --model "$model" --of encoder --layer 1 two
cp "$work/p.svg" "$work/first.svg"
picture 'its second layer' 'Self-attention, encoder layer 2 of 2: 4 heads and their mean' 4 4 4 \
    "$@" run --model "$model" --of encoder --layer 2 two
cmp -s "$work/p.svg" "$work/first.svg" && problem 'two layers have one picture'
picture 'self-attention of the decoder' 'Self-attention, decoder layer 2 of 2: 4 heads and their mean' 5 5 4 \
    "$@" run --model "$model" --of decoder two
picture 'self-attention of ids' 'Self-attention, encoder layer 2 of 2: 4 heads and their mean' 3 3 4 \
    "$@" generate --model "$model" --of encoder '5 6 2'
picture 'a decoder alone' 'Self-attention, decoder layer 4 of 4: 4 heads and their mean' 7 7 4 \
    "$@" run --model "$source/models/tiny-gpt2" --beam 1 --max-length 8 'transformer:'
fails 2 '--of x: give encoder, decoder or cross' 'attention of something' "$@" run --model "$model" \
    --attention "$work/p.svg" --of x word
fails 2 '--of cross: the model (gpt2) has no encoder' 'cross-attention of one stack' "$@" run \
    --model "$source/models/tiny-gpt2" --attention "$work/p.svg" --of cross word
fails 2 'the model has 2 encoder layers' 'layer of the encoder' "$@" run --model "$model" \
    --attention "$work/p.svg" --of encoder --layer 3 word
fails 2 '--of needs --attention' 'of what' "$@" run --model "$model" --of encoder word
input '\n'
fails 1 'nothing to draw' 'nothing to draw' "$@" run --model "$model" --attention "$work/b.svg"
fails 1 "$work/none/b.svg" 'picture where none can be written' "$@" run --model "$model" \
    --attention "$work/none/b.svg" word
if [ -w /dev/full ]; then
    checks=$((checks + 1))
    : >"$work/out"
    "$@" run --model "$model" word >/dev/full 2>"$work/err"
    if [ $? -ne 1 ] || ! grep -q '^isobit: cannot write' "$work/err"; then
        problem 'full disk'
    fi
fi
checks=$((checks + 1))
{
    "$@" run --model "$model" word another word
    echo $? >"$work/code"
} 2>"$work/err" | true
# The reader may be gone late enough for everything to fit into the pipe: 0 is right then.
case $(cat "$work/code") in
0 | 1) ;;
*) problem "closed pipe: exit code $(cat "$work/code")" ;;
esac

# ------------------------------------------------------------------------------------- explain
fails 2 'explain gemm 16x512x512' 'explain without a shape' "$@" explain gemm
fails 2 "not 'softmax'" 'explain of an unknown operation' "$@" explain softmax 1x2
fails 2 "found '16x512'" 'two numbers of three' "$@" explain gemm 16x512
fails 2 "found '16x0x512'" 'a product of nothing' "$@" explain gemm 16x0x512
fails 2 "found '16x5y2x2'" 'a shape of letters' "$@" explain gemm 16x5y2x2
fails 2 "found '99999999x99999999x99999999'" 'a huge shape' "$@" explain gemm \
    99999999x99999999x99999999
fails 2 'bt is for gemm' 'packed weights and --bt' "$@" explain linear 1x16x16 --bt
fails 2 'causal is for attention' 'a causal product' "$@" explain gemm 1x16x16 --causal
fails 2 'causal is for attention' 'more queries than keys' "$@" explain attention 1x1x9x8x4 --causal
fails 2 'scalar' 'explain on an unknown instruction set' "$@" explain gemm 1x16x16 --isa sse9
fails 1 "$work/nowhere" 'no place for lines' env TMPDIR="$work/nowhere" "$@" explain gemm 2x2x2
works 'explain gemm' "$@" explain gemm 130x100x70 --threads 1 --isa scalar --seconds 0.001
says 'gemm 130x100x70: scalar, 1 thread' 'explain gemm'
grep -q '^  why     B of 27 KiB from L2' "$work/out" || problem 'explain: no reason'
grep -q '^  here    [0-9.e-]* ms, ' "$work/out" || problem 'explain: no time'
works 'explain of a larger product' "$@" explain gemm 2x1024x1024 --threads 1 --isa scalar \
    --seconds 0.001
grep -q '^  why     B of 4096 KiB from L3' "$work/out" || problem 'explain: 4 MiB are not in L2'
works 'explain linear' "$@" explain linear 4x64x64 --threads 2 --seconds 0.001
grep -q '^  plan    packed B; tasks ' "$work/out" || problem 'explain linear: no plan'
works 'explain attention' "$@" explain attention 1x2x300x300x8 --threads 1 --seconds 0.001 --causal
grep -q '^  why     keys are used by many blocks' "$work/out" || problem 'attention: no reason'
works 'explain --json' "$@" explain gemm 8x300x700 --bt --threads 1 --seconds 0.001 --json
if command -v python3 >/dev/null 2>&1; then
    python3 -c '
import json, sys
explained = json.load(open(sys.argv[1]))
assert explained["plan"].startswith("transposed"), explained
assert explained["flops"] == 2 * 8 * 300 * 700 and explained["threads"] == 1
assert explained["transposed_b"] is True and explained["seconds"] > 0
' "$work/out" || problem 'explain --json: wrong'
fi

# --------------------------------------------------------------------------------------- bench

# Under an emulator or the thread sanitizer it would take minutes, and say nothing.
if [ $# -eq 1 ] && [ -z "${ISOBIT_EMULATED:-}" ]; then
    input ''
    works 'bench' "$@" bench --model "$model" --seconds 0.01
    for text in '^encode 1 x 128 .*%' '^encode 32 x 32 ' '^decode 1, greedy .* (GB|GFLOP)/s$' \
        '^decode 8, 4 beams ' 'linear *logits' '^peak memory '; do
        checks=$((checks + 1))
        grep -q -E -e "$text" "$work/out" || problem "bench: no line like '$text'"
    done
    works 'bench --json' "$@" bench --model "$model" --seconds 0.01 --threads 2 --json
    if command -v python3 >/dev/null 2>&1; then
        checks=$((checks + 1))
        python3 -c 'import json, sys
bench = json.load(open(sys.argv[1]))
assert bench["threads"] == 2 and bench["weight_bytes"] > 4 * bench["parameters"]
assert bench["peak_memory_bytes"] > bench["weight_bytes"]
assert len(bench["cases"]) == 6
for case in bench["cases"]:
    assert abs(sum(case["percent_of_time"].values()) - 100) < 0.01, case
    assert case["tokens_per_second"] > 0 and case["percent_of_bound"] > 0, case
    steps = "step_seconds" in case
    assert steps == case["name"].startswith("decode"), case
    assert case["percent_of_time"]["logits"] > 0 or not steps, case
' "$work/out" || problem 'bench --json: wrong'
    fi
    mkdir "$work/full"
    # shellcheck disable=SC2016 # the inner shell expands
    fails 1 'cannot write the weights' 'weights that do not fit' sh -c 'ulimit -f 1000
        TMPDIR=$1 "$2" bench --base' sh "$work/full" "$1"
    [ -z "$(ls "$work/full")" ] || problem 'bench --base: leaves files behind where they do not fit'
else
    echo 'bench is left out: too slow here'
fi

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
