#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Pictures, and output that cannot be written.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

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

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
