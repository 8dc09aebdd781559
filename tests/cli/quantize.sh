#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Models with fewer bits: the table, the folder that is there whole or not at all.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

out=$work/new
# absent TITLE: neither the folder nor what it was before it was complete.
absent() {
    checks=$((checks + 1))
    if [ -e "$out" ] || [ -e "$out.partial" ]; then
        problem "$1: a folder is left"
        rm -rf "$out" "$out.partial"
    fi
}

# ----------------------------------------------------------------------------- what is asked for

fails 2 '--model' 'no model' "$@" quantize --to bf16 --out "$out"
fails 2 '--to TYPE is missing' 'no type' "$@" quantize --model "$model" --out "$out"
fails 2 '--to f8: give int8, int4, bf16 or f16' 'another type' "$@" quantize --model "$model" --to f8 --out "$out"
fails 2 '--group is for --to int4' 'groups of int8' "$@" quantize --model "$model" --to int8 \
    --group 32 --out "$out"
fails 2 '--group 48: give 32, 64 or 128' 'groups of 48' "$@" quantize --model "$model" --to int4 \
    --group 48 --out "$out"
fails 2 'whole number' 'groups of nothing' "$@" quantize --model "$model" --to int4 --group 0 \
    --out "$out"
fails 2 '--out DIR is missing' 'no folder to write' "$@" quantize --model "$model" --to bf16
fails 2 "found 'word'" 'an argument' "$@" quantize --model "$model" --to bf16 --out "$out" word
fails 2 'text that is not empty' 'keep nothing' "$@" quantize --model "$model" --to bf16 --out "$out" \
    --keep ''
fails 2 'scalar' 'unknown instruction set' "$@" quantize --model "$model" --to bf16 --out "$out" \
    --isa sse9
fails 1 'there is no file config.json' 'no folder to read' "$@" quantize --model "$work/none" \
    --to bf16 --out "$out"
fails 1 'gpt2.gguf is a GGUF file' 'a GGUF file' "$@" quantize --to bf16 --out "$out" \
    --model "$source/tests/data/gguf/gpt2.gguf"
fails 1 'cannot be made' 'no place' "$@" quantize --model "$model" --to bf16 --out "$work/none/new"
: >"$out"
fails 1 'exists, and is no folder' 'a file is there' "$@" quantize --model "$model" --to bf16 --out "$out"
rm "$out"
mkdir "$out"
: >"$out/mine"
fails 1 'exists, and is not empty' 'a full folder' "$@" quantize --model "$model" --to bf16 --out "$out"
[ -f "$out/mine" ] || problem 'a full folder: its file is gone'
rm "$out/mine"
works 'an empty folder' "$@" quantize --model "$model" --to bf16 --out "$out"
rm -r "$out"
mkdir "$out.partial"
: >"$out.partial/mine"
fails 1 'exists, and isobit has not left it' 'a partial folder of somebody' "$@" quantize \
    --model "$model" --to bf16 --out "$out"
[ -f "$out.partial/mine" ] || problem 'a partial folder of somebody: its file is gone'
rm -r "$out.partial"
absent 'what is asked for'

# ------------------------------------------------------------------------------------- the table

works 'bf16' "$@" quantize --model "$model" --to bf16 --out "$out"
lines_are 'bf16' 87
says 'tensor shape from to largest rms' 'bf16'
says 'model.shared.weight 77x192 F16 BF16 4.88e-04 1.7e-03' 'bf16'
says 'model.encoder.layers.0.fc1.bias 768 F16 F16 - -' 'bf16'
tail -n 1 "$work/out" >"$work/last"
grep -q '^85 tensors, 4.2 MB instead of 4.2 (100.0 %); errors: rms 1.7e-03 of the numbers that changed, largest 3.91e-03 in model\.' \
    "$work/last" || problem 'bf16: another last line'
works 'run with bf16' "$@" run --model "$out" 'attention'
lines_are 'run with bf16' 1
for file in config.json vocab.json README.md tokenizer_config.json; do
    cmp -s "$model/$file" "$out/$file" || problem "bf16: $file is not that of the model"
done
[ ! -e "$out/isobit-incomplete" ] || problem 'bf16: it says that it is not complete'
rm -r "$out"
works 'bf16 as JSON' "$@" quantize --model "$model" --to bf16 --out "$out" --json --keep shared \
    --keep decoder.layers.1
lines_are 'bf16 as JSON' 86
grep -q -x -F '{"tensor":"model.shared.weight","shape":[77,192],"from":"F16","to":"F16","from_bytes":29568,"bytes":29568,"largest_error":0.0,"relative_rms_error":0.0,"note":"kept"}' \
    "$work/out" || problem 'bf16 as JSON: no such line of the table'
[ "$(grep -c '"note":"kept"' "$work/out")" -eq 11 ] || problem 'bf16 as JSON: not 11 tensors kept'
if command -v python3 >/dev/null 2>&1; then
    checks=$((checks + 1))
    python3 -c 'import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert lines[-1]["tensors"] == len(lines) - 1 == 85
assert lines[-1]["bytes"] == sum(t["bytes"] for t in lines[:-1])
assert lines[-1]["largest_error"] == max(t["largest_error"] for t in lines[:-1]) > 0
' "$work/out" || problem 'bf16 as JSON: not that'
fi
rm -r "$out"
works 'f16, which it is' "$@" quantize --model "$model" --to f16 --out "$out"
works 'digest' "$@" run --model "$model" --digest 'photography' 'table'
cp "$work/out" "$work/digest"
works 'digest of the copy' "$@" run --model "$out" --digest 'photography' 'table'
same 'a copy in F16 computes something else' "$work/digest"
rm -r "$out"

# --------------------------------------------------------------------------- the same everywhere

"$@" quantize --isa none --model "$model" --to bf16 --out "$out" 2>"$work/err" >"$work/out"
isas=$(sed 's/.*it has: //; s/,//g' "$work/err")
for type in bf16 int8 int4; do
    works "$type" "$@" quantize --model "$model" --to "$type" --out "$work/first"
    for isa in $isas; do
        for threads in 1 3; do
            what="$type, $isa, $threads"
            works "$what" "$@" quantize --model "$model" --to "$type" --out "$out" --isa "$isa" \
                --threads "$threads"
            checks=$((checks + 1))
            cmp -s "$out/model.safetensors" "$work/first/model.safetensors" ||
                problem "$what: other bytes"
            rm -r "$out"
        done
    done
    mv "$work/first" "$work/$type"
done

# -------------------------------------------------------------------------------------- integers

works 'int8 when it is loaded' "$@" run --model "$model" --compute int8 --digest photography table
cp "$work/out" "$work/digest"
works 'int8 of the folder' "$@" run --model "$work/int8" --digest photography table
same 'int8: the folder computes something else' "$work/digest"
works 'info of int8' "$@" info --model "$work/int8"
says ' in int8 2079168 parameters, each row with a scale' 'info of int8'
fails 1 'the model is quantised already' 'int8 once more' "$@" quantize --model "$work/int8" --to int8 \
    --out "$out"
works 'int4 of the folder' "$@" run --model "$work/int4" photography
lines_are 'int4 of the folder' 1
cp "$work/out" "$work/word"
works 'int4 as floats' "$@" run --model "$work/int4" --widen photography
same 'int4: floats give something else' "$work/word"
works 'info of int4' "$@" info --model "$work/int4"
says ' in 8 bits 14784 parameters, in groups' 'info of int4'
says ' in 4 bits 2064384 parameters, in groups' 'info of int4'
pair=$(printf '5 6\t7 8')
works 'rows of int8' "$@" score --model "$work/int4" --hex --compute int4 "$pair"
cp "$work/out" "$work/rows"
works 'rows of f32' "$@" score --model "$work/int4" --hex "$pair"
cmp -s "$work/out" "$work/rows" && problem '--compute int4 changes no score'
for isa in $isas; do
    works "rows of int8 on $isa" "$@" score --model "$work/int4" --hex --compute int4 --isa "$isa" \
        --threads 2 "$pair"
    same "rows of int8 on $isa differ" "$work/rows"
done
ISOBIT_VERBOSE=1 "$@" score --model "$work/int4" --compute int4 "$pair" 2>"$work/calls" >"$work/out"
checks=$((checks + 1))
if ! grep -q ',linear_q_s8,' "$work/calls" || grep -q ',linear_q,' "$work/calls"; then
    problem '--compute int4: other calls' # of 4 bits, and the logits in 8
fi
works 'about rows of int8' "$@" info --model "$work/int4" --compute int4
says ' compute int4' 'about rows of int8'
works 'groups of 64' "$@" quantize --model "$model" --to int4 --group 64 --out "$out"
grep -q '^model.shared.weight  *77x192  *F16  *I32  *[0-9.]*e-0[34] ' "$work/out" ||
    problem 'groups of 64: the table has not 8 bits'
[ "$(wc -c <"$out/model.safetensors")" -lt "$(wc -c <"$work/int4/model.safetensors")" ] ||
    problem 'groups of 64 are not smaller'
rm -r "$out"
works 'int8 of a prompt' "$@" quantize --model "$gpt" --to int8 --out "$out"
grep -q '^transformer.wpe.weight  *128x192  *F16  *F16 ' "$work/out" || problem 'int8: positions'
works 'a prompt' "$@" run --model "$out" --sample --seed 3 --digest 'isobit:'
cp "$work/out" "$work/digest"
works 'a prompt, when it is loaded' "$@" run --model "$gpt" --compute int8 --sample --seed 3 --digest \
    'isobit:'
same 'int8: GPT-2 computes something else' "$work/digest"
rm -r "$out"

# ------------------------------------------------------------------- disks, signals, killed runs

cat >"$work/small" <<'END'
#!/bin/sh
ulimit -f 1000
exec "$@"
END
chmod +x "$work/small"
fails 1 '"model.safetensors" cannot be written' 'no room' "$work/small" "$@" quantize --model "$model" \
    --to bf16 --out "$out"
absent 'no room'
if [ -w /dev/full ]; then
    checks=$((checks + 1))
    "$@" quantize --model "$model" --to bf16 --out "$out" >/dev/full 2>"$work/err"
    if [ $? -ne 1 ] || ! grep -q '^isobit: cannot write' "$work/err"; then
        problem 'the table cannot be written'
    fi
    rm -rf "$out"
fi
# Nobody reads what it writes, so it waits in the middle; then it is told to stop.
mkfifo "$work/pipe"
exec 3<>"$work/pipe"
head -c 65536 /dev/zero >&3
checks=$((checks + 1))
timeout --preserve-status -k 20 -s INT 2 "$@" quantize --model "$model" --to bf16 --out "$out" --json \
    >&3 2>"$work/err"
code=$?
# An emulator has an exit code of its own.
if $quick && { [ "$code" -ne 130 ] || [ -s "$work/err" ]; }; then
    problem "Ctrl-C: exit code $code, or a word on stderr"
fi
absent 'Ctrl-C'
timeout -s KILL 2 "$@" quantize --model "$model" --to bf16 --out "$out" --json >&3 2>"$work/err"
exec 3>&-
if $quick; then
    checks=$((checks + 1))
    if [ -e "$out" ] || ! [ -f "$out.partial/isobit-incomplete" ]; then
        problem 'killed: not the incomplete folder alone'
    fi
fi
works 'the next run' "$@" quantize --model "$model" --to bf16 --out "$out"
checks=$((checks + 1))
[ ! -e "$out.partial" ] || problem 'the next run has left the incomplete folder'

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
