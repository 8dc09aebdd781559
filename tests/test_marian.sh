#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A Marian folder, text in and text out, as the command line gives it: the translations that
# transformers gives, from arguments, a pipe and a file; the progress line; folders that are damaged.
# Usage: test_marian.sh SOURCE-DIR ON|OFF COMMAND [ARG...], OFF: a build without SentencePiece.
set -u

source=$1
data=$source/tests/data/text/marian
with=$2
shift 2
# shellcheck source=tests/command.sh
. "$source/tests/command.sh"

# gives FILE TITLE COMMAND...: prints what FILE has, and nothing on stderr.
gives() {
    wanted=$1 title=$2
    shift 2
    checks=$((checks + 1))
    "$@" <"$work/in" >"$work/out" 2>"$work/err"
    got=$?
    if [ "$got" -ne 0 ] || [ -s "$work/err" ]; then
        problem "$title: exit code $got, or something on stderr"
    elif ! cmp -s "$work/out" "$wanted"; then
        problem "$title: other text than expected"
    fi
}

: >"$work/in"
if [ "$with" != ON ]; then
    fails 1 'without SentencePiece' 'a build without SentencePiece' "$@" run --model "$data" fox
    printf '%s checks, %s failed\n' "$checks" "$failures"
    exit "$failures"
fi

# One line leaves characters out, and says so. The others are silent.
grep -v -x -F -e 'The >>fra<< fox.' "$data/input.txt" >"$work/lines"
number=$(grep -n -x -F -e 'The >>fra<< fox.' "$data/input.txt" | cut -d : -f 1)
for how in greedy beam; do
    beams=1
    [ "$how" = greedy ] || beams=4
    sed "${number}d" "$data/$how.txt" >"$work/$how"
    cp "$work/lines" "$work/in"
    gives "$work/$how" "$how, stdin" "$@" run --model "$data" --beam "$beams"
    : >"$work/in"
    gives "$work/$how" "$how, file" "$@" run --model "$data" --beam "$beams" --input "$work/lines"
    gives "$work/$how" "$how, a stream" "$@" run --model "$data" --beam "$beams" --stream \
        --input "$work/lines"
done
sed -n 1,2p "$work/greedy" >"$work/two"
gives "$work/two" 'arguments' "$@" run --model "$data" --beam 1 "$(sed -n 1p "$work/lines")" \
    "$(sed -n 2p "$work/lines")"

# A file larger than a batch, with empty lines in it, and one after the other: the same text.
i=0
: >"$work/many"
: >"$work/many.want"
while [ "$i" -lt 8 ]; do
    { cat "$work/lines" && printf '\n  \n'; } >>"$work/many"
    { cat "$work/greedy" && printf '\n\n'; } >>"$work/many.want"
    i=$((i + 1))
done
gives "$work/many.want" 'batches' "$@" run --model "$data" --beam 1 --input "$work/many"
gives "$work/many.want" 'batches, one thread' "$@" run --model "$data" --beam 1 --threads 1 \
    --input "$work/many"

# Scores as PyTorch has them.
tab=$(printf '\t')
works 'scores' "$@" score --model "$data" --text "The quick brown fox${tab}a lazy dog." \
    "The quick brown fox${tab}>>fra<< lazy"
near 'scores' '-67.6570516 8 4708.53193
-48.6427898 5 16790.3227'

# ------------------------------------------------------------------- characters that are lacking

printf 'a fox\nThe >>fra<< fox.\n' >"$work/in"
checks=$((checks + 1))
if ! "$@" run --model "$data" --beam 1 <"$work/in" >"$work/out" 2>"$work/err" ||
    [ "$(wc -l <"$work/out")" -ne 2 ] || [ "$(cat "$work/err")" != \
    'isobit: line 2: without 7 characters that the vocabulary lacks' ]; then
    problem 'characters that are left out: no line and number'
fi
fails 1 'line 2: the vocabulary lacks 7 characters (--strict)' 'left out, --strict' \
    "$@" run --model "$data" --strict
[ "$(wc -l <"$work/out")" -eq 1 ] || problem 'left out, --strict: the line before has no answer'
printf 'a fox\n\346\227\245\346\234\254\n' >"$work/in"
fails 1 'line 2: the vocabulary lacks 2 characters (--strict)' 'unknown, --strict' \
    "$@" run --model "$data" --strict
fails 1 'not valid UTF-8 at byte 1' 'invalid UTF-8' "$@" run --model "$data" "$(printf 'a\377')"
: >"$work/in"
i=0
while [ "$i" -lt 12 ]; do
    echo 'a >>b<< c' >>"$work/in"
    i=$((i + 1))
done
checks=$((checks + 1))
"$@" run --model "$data" --beam 1 --max-length 4 <"$work/in" >"$work/out" 2>"$work/err"
if [ "$(wc -l <"$work/err")" -ne 11 ] || ! grep -q 'in all, 12 lines without 60' "$work/err"; then
    problem 'many lines that lack characters'
fi

# ------------------------------------------------------------------------------ the progress line

sed -n 1p "$work/lines" >"$work/in"
cat >"$work/slow" <<'END'
line=$(cat "$1/in")
out=$2
shift 2
{ printf '%s\n' "$line" && sleep 1.3 && printf '%s\n' "$line"; } | "$@" >"$out"
END
if command -v script >/dev/null 2>&1; then
    checks=$((checks + 1))
    TERM=xterm script -qec "sh $work/slow $work $work/out $* run --model $data --beam 1" \
        "$work/err" >"$work/terminal" 2>&1 </dev/null
    if ! grep -q '2 lines, [0-9]* lines/s' "$work/terminal"; then
        cp "$work/terminal" "$work/err"
        problem 'no progress line on a terminal'
    fi
fi
checks=$((checks + 1))
sh "$work/slow" "$work" "$work/out" "$@" run --model "$data" --beam 1 2>"$work/err"
[ ! -s "$work/err" ] || problem 'a progress line where there is no terminal'

# ------------------------------------------------------------------------------- wrong usage

: >"$work/in"
fails 2 'exclude each other' 'file and arguments' "$@" run --model "$data" --input "$work/in" fox
fails 1 "cannot open $work/none" 'no such file' "$@" run --model "$data" --input "$work/none"
fails 1 'cannot read' 'a folder as file' "$@" run --model "$data" --input "$work"
fails 1 'line 1: ' 'too long' "$@" run --model "$data" \
    "$(i=0 && while [ $i -lt 99 ]; do printf ' q%s' "$i" && i=$((i + 1)); done)"

# ----------------------------------------------------------------------------- damaged folders

isobit=$*
# damaged TEXT TITLE SHELL-COMMAND: after the command, in a copy of the folder, the message has TEXT.
damaged() {
    rm -rf "$work/bad"
    cp -R "$data" "$work/bad"
    chmod -R u+w "$work/bad"
    (cd "$work/bad" && eval "$3")
    # shellcheck disable=SC2086 # the command, in words
    fails 1 "$1" "$2" $isobit run --model "$work/bad" fox
}
damaged 'no file source.spm' 'no source.spm' 'rm source.spm'
damaged 'no file target.spm' 'no target.spm' 'rm target.spm'
damaged 'no file vocab.json' 'no vocab.json' 'rm vocab.json'
damaged 'no file target_vocab.json' 'no second vocabulary' \
    'echo "{\"separate_vocabs\": true}" >tokenizer_config.json'
damaged 'tokenizer_class "XLNetTokenizer" is none' 'another tokenizer' \
    'echo "{\"tokenizer_class\": \"XLNetTokenizer\"}" >tokenizer_config.json'
damaged 'source.spm: not a SentencePiece model' 'cut off' \
    'head -c 3001 source.spm >x && mv x source.spm'
damaged 'source.spm: not a SentencePiece model' 'text' 'cp config.json source.spm'
damaged 'target.spm: not a SentencePiece model' 'empty' ': >target.spm'
damaged 'target.spm: not a SentencePiece model' 'zeros' 'head -c 500 /dev/zero >target.spm'
damaged 'source.spm and vocab.json contradict each other: 2 of 258 ' 'another vocabulary' \
    'sed -i "s/^\"\([^<>]\)/\"@@\1/" vocab.json'
damaged '339 tokens, but the source vocabulary of the model has 340' 'a short vocabulary' \
    'sed -i "/: 338,\$/d; s/: 339\$/: 338/" vocab.json'
damaged 'is not a whole number below 339' 'a hole in the vocabulary' \
    'sed -i "/: 338,\$/d" vocab.json'
damaged 'vocab.json has no token "<unk>"' 'no unknown token' 'sed -i s/unk/unknown/ vocab.json'
damaged 'vocab.json has no token "<pad>"' 'no padding' 'sed -i s/pad/padding/ vocab.json'
damaged 'vocab.json, line ' 'no JSON' 'sed -i 5d vocab.json && sed -i 1d vocab.json'

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
