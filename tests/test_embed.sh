#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Encoders alone on the command line: the vectors and the tokens for masks that transformers gives,
# in every format, with the same bits on every instruction set; what cannot be done, and why.
# Usage: test_embed.sh SOURCE-DIR COMMAND [ARG...], where COMMAND runs isobit, perhaps through an
# emulator.
set -u

source=$1
shift
models=$source/tests/data/models
# shellcheck source=tests/command.sh
. "$source/tests/command.sh"
minilm=$models/minilm
texts=$minilm/texts.txt
: >"$work/in"

# close TITLE FILE: the numbers of the last output are those of FILE within 2e-5; all else is equal.
close() {
    checks=$((checks + 1))
    awk -v wanted="$2" '{
        if ((getline line <wanted) != 1 || split(line, w, " ") != NF)
            exit bad = 1
        for (i = 1; i <= NF; i++) {
            number = w[i] ~ /^-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$/
            if (number ? !($i - w[i] <= 2e-5 && w[i] - $i <= 2e-5) : $i "" != w[i] "")
                exit bad = 1
        }
    }
    END { exit bad || (getline line <wanted) == 1 }' "$work/out" || problem "$1"
}

# ------------------------------------------------------------------------------------- vectors

# The sixth text is longer than the 16 tokens of which the model makes vectors.
warning='isobit: 1 line was cut to 16 tokens, line 6 first'
# embeds TITLE WANTED OPTION...
embeds() {
    title=$1 wanted=$2
    shift 2
    checks=$((checks + 1))
    "$@" <"$work/in" >"$work/json" 2>"$work/err"
    got=$?
    if [ "$got" -ne 0 ] || [ "$(cat "$work/err")" != "$warning" ]; then
        cp "$work/json" "$work/out"
        problem "$title: exit code $got, or not the warning on stderr"
    fi
    grep -v -q -E '^\[-?[0-9][^]]*\]$' "$work/json" && problem "$title: a line is no array"
    sed 's/[][]//g; s/,/ /g' "$work/json" >"$work/out"
    close "$title: not the vectors of transformers" "$wanted"
}
for how in 'mean yes' 'mean no' 'cls yes' 'max no' 'pooler no'; do
    sed -n "s/^$how //p" "$minilm/vectors.txt" >"$work/wanted"
    embeds "$how" "$work/wanted" "$@" embed --model "$minilm" --pooling "${how% *}" \
        --normalize "${how#* }" --input "$texts"
done
sed -n 's/^mean yes //p' "$minilm/vectors.txt" >"$work/wanted"
cp "$texts" "$work/in"
embeds 'as the folder says, from stdin' "$work/wanted" "$@" embed --model "$minilm"
cp "$work/json" "$work/vectors"
: >"$work/in"
works 'arguments' "$@" embed --model "$minilm" 'The cat sat on the mat.' '' a
sed -n 1,3p "$work/vectors" >"$work/three"
same 'arguments give other vectors' "$work/three"
i=0
while [ "$i" -lt 40 ]; do
    cat "$work/three" >&3
    printf 'The cat sat on the mat.\n\na\n'
    i=$((i + 1))
done >"$work/in" 3>"$work/many"
works 'many lines' "$@" embed --model "$minilm" --threads 2
same 'many lines give other vectors' "$work/many"
: >"$work/in"
works 'no input' "$@" embed --model "$minilm"
[ ! -s "$work/out" ] || problem 'no input: there are vectors'

# White space around a line does not count, where tokens of bytes would tell it.
works 'no space' "$@" embed --model "$models/roberta-f16" --digest 'a cat'
cp "$work/out" "$work/bare"
works 'space around' "$@" embed --model "$models/roberta-f16" --digest \
    "$(printf ' \342\200\203\ta cat\302\240\343\200\200 ')"
same 'white space around a line changes its vector' "$work/bare"

# Exact formats: nine digits, hexadecimal floats and the bytes of the array are the same floats.
works 'hexadecimal' "$@" embed --model "$minilm" --hex 'The cat sat on the mat.' '' a
tr ' ' '\n' <"$work/out" >"$work/hex"
[ "$(grep -c '^-\{0,1\}0x' "$work/hex")" -eq 72 ] || problem 'hexadecimal: not 72 such floats'
works 'an array' "$@" embed --model "$minilm" --npy "$work/a.npy" \
    'The cat sat on the mat.' '' a
[ ! -s "$work/out" ] || problem 'an array: something on stdout'
printf "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (3, 24), }%57s\n" '' \
    >"$work/header"
head -c 128 "$work/a.npy" >"$work/out"
same 'an array: another header' "$work/header"
[ "$(wc -c <"$work/a.npy")" -eq $((128 + 3 * 24 * 4)) ] || problem 'an array: not as many bytes'
works 'an array of no rows' "$@" embed --model "$minilm" --npy "$work/b.npy"
grep -q -F "'shape': (0, 24), }" "$work/b.npy" || problem 'an array of no rows has some'
# printf of the shell may be less exact than a float: od shows what the array holds.
od -A n -v -t f4 -j 128 "$work/a.npy" | tr -s ' ' '\n' | grep . >"$work/values"
tr -d '[]' <"$work/three" | tr ',' '\n' >"$work/out"
close 'an array: other values than in text' "$work/values"
if command -v python3 >/dev/null 2>&1; then
    checks=$((checks + 1))
    python3 -c 'import json, struct, sys
bytes = open(sys.argv[1], "rb").read()[128:]
hex = [float.fromhex(line) for line in open(sys.argv[2])]
text = [x for line in open(sys.argv[3]) for x in json.loads(line)]
assert bytes == struct.pack("<72f", *text) == struct.pack("<72f", *hex)
' "$work/a.npy" "$work/hex" "$work/three" ||
        problem 'the formats are not the same floats'
fi

# ------------------------------------------------------------------------ behind the pooling

# Two Dense modules behind MiniLM, whose vectors then have 31 numbers instead of 24.
dense=$work/dense
cp -R "$minilm" "$dense"
chmod -R u+w "$dense"
cp -R "$models/minilm-dense/." "$dense"
for how in 'mean yes' 'max no'; do
    sed -n "s/^$how //p" "$models/minilm-dense/vectors.txt" >"$work/wanted"
    embeds "Dense, $how" "$work/wanted" "$@" embed --model "$dense" --pooling "${how% *}" \
        --normalize "${how#* }" --input "$texts"
done
sed -n 's/^mean yes //p' "$models/minilm-dense/vectors.txt" >"$work/wanted"
embeds 'Dense, as the folder says' "$work/wanted" "$@" embed --model "$dense" --input "$texts"
works 'Dense, an array' "$@" embed --model "$dense" --npy "$work/d.npy" 'The cat sat on the mat.' ''
grep -q -a -F "'shape': (2, 31), }" "$work/d.npy" || problem 'Dense: an array of another shape'
[ "$(wc -c <"$work/d.npy")" -eq $((128 + 2 * 31 * 4)) ] || problem 'Dense: not as many bytes'
works 'Dense, info' "$@" info --model "$dense"
tr -s ' ' <"$work/out" | grep -q -x ' vectors 31 numbers, of at most 16 tokens, with a pooler' ||
    problem 'Dense, info: another width'
tr -s ' ' <"$work/out" | grep -q -x 'model bert, 14056 parameters, .*' ||
    problem 'Dense, info: its weights do not count'
works 'Dense, info as JSON' "$@" info --model "$dense" --json
grep -q -F '"sentence_d":31' "$work/out" || problem 'Dense, info as JSON: another width'
sed -i 's/Tanh/Softplus/' "$dense/2_Dense/config.json"
fails 1 'module 2, "Dense", with activation_function "torch.nn.modules.activation.Softplus"' \
    'another activation' "$@" embed --model "$dense" a
works 'no Dense instead' "$@" embed --model "$dense" --pooling max --normalize no a
[ "$(tr ',' '\n' <"$work/out" | wc -l)" -eq 24 ] || problem 'no Dense instead: not 24 numbers'
sed -i 's/Softplus/Tanh/; s/24/23/' "$dense/2_Dense/config.json"
fails 1 '"in_features" is 23; the vectors that it gets have 24 numbers' 'another width' "$@" embed \
    --model "$dense" a
sed -i 's/23/24/' "$dense/2_Dense/config.json"
rm "$dense/3_Dense/model.safetensors"
fails 1 '3_Dense: there are no weights in' 'no weights' "$@" embed --model "$dense" a

# An encoder of T5 alone, with its tokenizer: each text ends with </s>, which is all of an empty one.
t5=$models/sentence-t5
for how in 'mean yes' 'max no'; do
    checks=$((checks + 1))
    sed -n "s/^$how //p" "$t5/vectors.txt" >"$work/wanted"
    "$@" embed --model "$t5" --pooling "${how% *}" --normalize "${how#* }" --input "$t5/texts.txt" \
        >"$work/json" 2>"$work/err" || problem "sentence-t5, $how: exit code $?"
    sed 's/[][]//g; s/,/ /g' "$work/json" >"$work/out"
    close "sentence-t5, $how: other vectors" "$work/wanted"
done
works 'sentence-t5, info' "$@" info --model "$t5"
for line in ' vectors 12 numbers, of at most 24 tokens, without a pooler' ' decoder none' \
    'commands embed bench'; do
    checks=$((checks + 1))
    tr -s ' ' <"$work/out" | grep -q -x -F -e "$line" || problem "sentence-t5, info: no line '$line'"
done

# -------------------------------------------------------------------------- the same everywhere

works 'digest' "$@" embed --model "$minilm" --digest 'The cat sat on the mat.' '' a
cp "$work/out" "$work/digest"
works 'digest of masks' "$@" fill --model "$models/bert" --digest --input "$models/bert/texts.txt"
cp "$work/out" "$work/filled"
"$@" embed --isa none --model "$minilm" 2>"$work/err" >"$work/out"
isas=$(sed 's/.*it has: //; s/,//g' "$work/err")
for isa in $isas; do
    works "digest on $isa" "$@" embed --model "$minilm" --digest --isa "$isa" \
        'The cat sat on the mat.' '' a
    same "the vectors differ on $isa" "$work/digest"
    works "digest of masks on $isa" "$@" fill --model "$models/bert" --digest --isa "$isa" \
        --input "$models/bert/texts.txt"
    same "the masks differ on $isa" "$work/filled"
done
works 'digest with another pooling' "$@" embed --model "$minilm" --digest --pooling cls \
    'The cat sat on the mat.' '' a
cmp -s "$work/out" "$work/digest" && problem 'the digest does not depend on the pooling'
works 'digest of another text' "$@" fill --model "$models/bert" --digest 'a [MASK]'
cmp -s "$work/out" "$work/filled" && problem 'the digest does not depend on the text'

# --------------------------------------------------------------------------------------- masks

for model in bert roberta-f16; do
    works "fill, $model" "$@" fill --model "$models/$model" --top 3 \
        --input "$models/$model/texts.txt"
    close "fill, $model: not the tokens of transformers" "$models/$model/fillings.txt"
done
works 'fill as JSON' "$@" fill --model "$models/bert" --json --top 1 '' 'a [MASK]'
cat >"$work/wanted" <<'END'
{"line":1,"masks":[],"text":""}
{"line":2,"masks":[{"position":2,"tokens":[{"id":3,"token":"[SEP]","text":"[SEP]","probability":P}]}],"text":"a"}
END
sed -i 's/0\.[0-9]*/P/' "$work/out"
same 'fill as JSON: other lines' "$work/wanted"
works 'more tokens than there are' "$@" fill --model "$models/bert" --top 51 'a [MASK]'
[ "$(wc -l <"$work/out")" -eq 51 ] || problem 'more tokens than there are: not all of them'
awk 'NR <= 50 && $1 > last && NR > 1 { bad = 1 } { last = $1 } END { exit bad }' "$work/out" ||
    problem 'the tokens are not sorted'
printf '[MASK]\na cat\n' >"$work/in"
fails 1 'line 2: has no mask; write [MASK]' 'no mask' "$@" fill --model "$models/bert"
[ "$(wc -l <"$work/out")" -eq 6 ] || problem 'no mask: the line before has no answer'
: >"$work/in"
fails 1 'line 1: has no mask; write <mask>' 'no mask of RoBERTa' "$@" fill \
    --model "$models/roberta-f16" 'a cat'
fails 1 'without the head of a masked' 'no head' "$@" fill --model "$minilm" '[MASK]'
fails 1 'without the head of a masked' 'fill with a decoder' "$@" fill --model "$models/bart" x

# -------------------------------------------------------------------------- other folders, info

# copy MODEL: a folder that may be changed.
copy() {
    rm -rf "$work/model"
    cp -R "$models/$1" "$work/model"
    chmod -R u+w "$work/model"
}
copy bert
sed -i 's/MASK/GAP/' "$work/model/vocab.txt"
fails 1 'no mask token' 'no mask token' "$@" fill --model "$work/model" a
copy bert
rm "$work/model/tokenizer_config.json" "$work/model/vocab.txt"
fails 1 'no file vocab.txt' 'no tokenizer' "$@" embed --model "$work/model" a
works 'info without a tokenizer' "$@" info --model "$work/model"
tr -s ' ' <"$work/out" | grep -q '^commands bench$' || problem 'info without a tokenizer: commands'
copy minilm
sed -i 's/mean_tokens/lasttoken/' "$work/model/1_Pooling/config.json"
fails 1 'lasttoken' 'a pooling that isobit lacks' "$@" embed --model "$work/model" a
works 'another pooling instead' "$@" embed --model "$work/model" --pooling cls --normalize no a
# What an encoder alone looks at.
works 'a picture' "$@" embed --model "$minilm" --attention "$work/e.svg" 'the cat sat'
grep -q -F '>Self-attention, encoder layer 2 of 2: 3 heads and their mean<' "$work/e.svg" ||
    problem 'a picture: of something else'
fails 2 "vectors are the encoder's" 'of a decoder' "$@" embed --model "$minilm" --of decoder \
    --attention "$work/e.svg" a

# What folders say of texts. A vector with it is that of the text to which it is done.
copy roberta-f16
echo '{"do_lower_case": true}' >"$work/model/sentence_bert_config.json"
works 'lower case' "$@" embed --model "$work/model" ' A CAT'
cp "$work/out" "$work/lower"
works 'in lower case' "$@" embed --model "$models/roberta-f16" 'a cat'
same 'do_lower_case: another vector' "$work/lower"
echo '{"do_lower_case": "yes"}' >"$work/model/sentence_bert_config.json"
fails 1 '"do_lower_case" must be true or false' 'do_lower_case' "$@" embed --model "$work/model" a
copy minilm
prompts=$work/model/config_sentence_transformers.json
echo '{"prompts": {"query": " the cat ", "": "a"}, "default_prompt_name": "query"}' >"$prompts"
works 'a prompt' "$@" embed --model "$work/model" 'sat' '' ' on the mat '
cp "$work/out" "$work/prompt"
works 'the same texts' "$@" embed --model "$minilm" 'the cat sat' 'the cat' 'the cat  on the mat'
same 'a prompt: another vector' "$work/prompt"
for prompt in '"none"' 3; do
    echo "{\"prompts\": {\"query\": \"q\"}, \"default_prompt_name\": $prompt}" >"$prompts"
    fails 1 "\"default_prompt_name\" is $prompt, which is none of" "the prompt $prompt" "$@" embed \
        --model "$work/model" a
done
echo '{"prompts": {"query": "q"}, "default_prompt_name": null}' >"$prompts"
works 'no prompt' "$@" embed --model "$work/model" 'sat'
echo '{"prompts": {"query": "q"}, "default_prompt_name": "query"}' >"$prompts"
sed -i 's/{/{"include_prompt": false, /' "$work/model/1_Pooling/config.json"
fails 1 'include_prompt false is not supported' 'a prompt outside of the mean' "$@" embed \
    --model "$work/model" a
copy minilm
sed -i 's/16/null/' "$work/model/sentence_bert_config.json"
sed -i 's/{/{"model_max_length": 12,/' "$work/model/tokenizer_config.json"
warning='isobit: 1 line was cut to 12 tokens, line 1 first'
sed -n 6p "$texts" >"$work/in"
"$@" embed --model "$work/model" --digest <"$work/in" >"$work/twelve" 2>"$work/out"
echo "$warning" >"$work/wanted"
same 'model_max_length: no warning' "$work/wanted"
sed -i 's/null/12/' "$work/model/sentence_bert_config.json"
sed -i 's/12,/9,/' "$work/model/tokenizer_config.json"
"$@" embed --model "$work/model" --digest <"$work/in" >"$work/out" 2>"$work/err"
same 'model_max_length: another vector than with max_seq_length' "$work/twelve"
: >"$work/in"
sed -i 's/12/null/' "$work/model/sentence_bert_config.json"
sed -i 's/9,/1000000000000000019884624838656,/' "$work/model/tokenizer_config.json"
works 'model_max_length of 1e30' "$@" info --model "$work/model"
grep -q 'vectors  *24 numbers, of at most 40 tokens' "$work/out" || problem 'model_max_length of 1e30: a limit'
sed -i 's/1000000000000000019884624838656,/-1,/' "$work/model/tokenizer_config.json"
fails 1 '"model_max_length" must be a whole number' 'model_max_length' "$@" embed --model "$work/model" a
copy minilm
sed -i 's/"bert"/"t5-base"/' "$work/model/config.json"
fails 1 't5-base' 'info of an unknown family' "$@" info --model "$work/model"

works 'info of an encoder' "$@" info --model "$minilm"
tr -s ' ' <"$work/out" >"$work/info"
for line in 'model bert, 11816 parameters, 0.1 MB in memory' ' decoder none' \
    ' vectors 24 numbers, of at most 16 tokens, with a pooler' ' masks no head for them' \
    'commands embed bench'; do
    checks=$((checks + 1))
    grep -q -x -F -e "$line" "$work/info" || problem "info of an encoder: no line '$line'"
done
works 'info as JSON' "$@" info --model "$models/bert" --json
for part in '"has_pooler":true,"text_error":null,"commands":["embed","fill","bench"]' \
    '"sentence_max_length":40,' '"family":"bert",'; do
    grep -q -F -e "$part" "$work/out" || problem "info as JSON: no $part"
done
works 'info of both stacks' "$@" info --model "$models/bart" --json
grep -q -F '"commands":["generate","score","bench"]' "$work/out" || problem 'info of both stacks'

# --------------------------------------------------------------------------------- what is wrong

for command in run generate score demo 'run --attention a.svg --layer 1'; do
    # shellcheck disable=SC2086 # words
    fails 1 'has no decoder' "$command with an encoder" "$@" $command --model "$minilm"
done
fails 1 'has no encoder' 'a decoder alone' "$@" embed --model "$models/gpt2" a
fails 2 'mean, cls, max or pooler' 'pooling' "$@" embed --model "$minilm" --pooling last a
fails 2 'yes or no' 'normalize' "$@" embed --model "$minilm" --normalize 1 a
fails 2 'whole number' 'top' "$@" fill --model "$models/bert" --top 0 a
fails 2 '--npy and --digest' 'two outputs' "$@" embed --model "$minilm" --npy "$work/c.npy" \
    --digest a
fails 2 '--npy and --hex' 'two formats' "$@" embed --model "$minilm" --npy "$work/c.npy" --hex a
fails 1 'no pooler' 'no pooler' "$@" embed --model "$models/roberta-f16" --pooling pooler a
printf 'a\na\0b\n' >"$work/in"
fails 1 'line 2: holds a NUL' 'NUL byte' "$@" embed --model "$minilm"
[ "$(wc -l <"$work/out")" -eq 1 ] || problem 'NUL byte: the line before has no vector'
echo 'what was here before' >"$work/c.npy"
fails 1 'line 2: holds a NUL' 'an array of a bad line' "$@" embed --model "$minilm" \
    --npy "$work/c.npy"
[ "$(cat "$work/c.npy")" = 'what was here before' ] || problem 'an array of a bad line: written'
: >"$work/in"
fails 1 'line 1: 26 tokens, but vectors are made of at most 16 (--strict)' 'too long, --strict' \
    "$@" embed --model "$minilm" --strict "$(sed -n 6p "$texts")"
fails 1 'line 1: the vocabulary lacks 1 character (--strict)' 'unknown, --strict' "$@" embed \
    --model "$minilm" --strict "$(sed -n 5p "$texts")"
fails 1 "cannot write $work/none/a.npy" 'nowhere to write' "$@" embed --model "$minilm" \
    --npy "$work/none/a.npy" a
if [ -w /dev/full ]; then
    fails 1 'cannot write /dev/full' 'a full device' "$@" embed --model "$minilm" --npy /dev/full a
    [ -c /dev/full ] || problem 'the device was replaced'
fi
checks=$((checks + 1))
# A file may not grow beyond a block or two, as on a disk that is full.
i=0
while [ "$i" -lt 99 ]; do
    echo a
    i=$((i + 1))
done >"$work/in"
(
    trap '' XFSZ
    ulimit -f 1
    "$@" embed --model "$minilm" --npy "$work/c.npy"
) <"$work/in" >"$work/out" 2>"$work/err"
if [ $? -ne 1 ] || ! grep -q "^isobit: cannot write $work/c.npy: " "$work/err" ||
    [ "$(wc -l <"$work/err")" -ne 1 ]; then
    problem 'an array on a full disk'
fi
[ "$(cat "$work/c.npy")" = 'what was here before' ] || problem 'a full disk: the old file is lost'
[ "$(find "$work" -name 'c.npy*' | wc -l)" -eq 1 ] || problem 'a full disk: a part is left behind'
works 'an array in place of another' "$@" embed --model "$minilm" --npy "$work/c.npy"
[ "$(wc -c <"$work/c.npy")" -eq $((128 + 99 * 24 * 4)) ] || problem 'the old file is not replaced'

# Who is told to stop leaves nothing behind.
echo 'what was here before' >"$work/k.npy"
for signal in TERM HUP; do
    rm -f "$work/enough"
    while ! [ -e "$work/enough" ]; do
        sleep 0.1
    done | "$@" embed --model "$minilm" --npy "$work/k.npy" >"$work/out" 2>"$work/err" &
    pid=$! waited=0
    while [ "$(find "$work" -name 'k.npy.*' | wc -l)" -eq 0 ] && [ "$waited" -lt 300 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    checks=$((checks + 1))
    [ "$waited" -lt 300 ] || problem "$signal: no file appears on the way"
    kill "-$signal" "$pid"
    : >"$work/enough" # some shells wait for all of a pipeline
    wait "$pid" 2>/dev/null
    [ $? -gt 128 ] || problem "$signal: the program does not die of it"
    [ "$(find "$work" -name 'k.npy*' | wc -l)" -eq 1 ] || problem "$signal: a part is left behind"
    [ "$(cat "$work/k.npy")" = 'what was here before' ] || problem "$signal: the old file is lost"
done

# A decoder alone: where its text ends by default, and what takes it.
gpt2=$models/gpt2
works 'info of a decoder alone' "$@" info --model "$gpt2"
for part in 'encoder none' 'at most 12 tokens after the prompt' 'commands generate score bench'; do
    tr -s ' ' <"$work/out" | grep -q "$part" || problem "info of a decoder alone: $part"
done
works 'info of a limit with the prompt' "$@" info --model "$models/qwen2-f16"
grep -q 'at most 30 tokens with the prompt' "$work/out" || problem 'info: no limit with the prompt'
works 'info of a part' "$@" info --model "$models/gemma3-part"
grep -q 'images *the part for them is not read' "$work/out" || problem 'info of a part'

# --------------------------------------------------------------------------------------- bench

if [ $# -eq 1 ] && [ -z "${ISOBIT_EMULATED:-}" ]; then
    works 'bench' "$@" bench --model "$minilm" --seconds 0.01
    grep -q '^encode 32 x 32 ' "$work/out" || problem 'bench: no encoding'
    grep -q '^decode ' "$work/out" && problem 'bench: decodes without a decoder'
    works 'bench of a decoder alone' "$@" bench --model "$gpt2" --seconds 0.01
    grep -q '^prompt 32 x 32 ' "$work/out" || problem 'bench: no prompts'
    grep -q '^decode 8, 4 beams ' "$work/out" || problem 'bench: no beams'
fi

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
