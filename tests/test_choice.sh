#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Which instruction set the command line chooses by itself, and that it then gives the committed
# bits. Usage: test_choice.sh SOURCE-DIR ISA COMMAND [ARG...]; ISA "best" asks for the first one
# that info reports as available. COMMAND runs isobit, perhaps on an emulated CPU.
set -eu

source=$1
expected=$2
shift 2
unset ISOBIT_ISA
info=$("$@" info --json)
chosen=$(printf '%s' "$info" | sed 's/.*"isa": "\([a-z0-9_]*\)".*/\1/')
if [ "$expected" = best ]; then
    expected=$(printf '%s' "$info" |
        sed 's/"available": true.*//;s/.*"name": "\([a-z0-9_]*\)", $/\1/')
fi
echo "chosen: $chosen, expected: $expected"
[ "$chosen" = "$expected" ]

golden=$source/tests/data/g2p-en.txt
if [ -n "${ISOBIT_EMULATED:-}" ]; then # slow: some of them
    some=$(mktemp)
    trap 'rm -f "$some"' EXIT
    awk 'NR % 4 == 1' "$golden" >"$some"
    golden=$some
fi
cut -f 1 "$golden" | "$@" run --model "$source/models/g2p-en" --beam 4 --scores --threads 1 |
    paste "$golden" - | awk -F '\t' '{
        if ($2 != $4 || $3 != $5) { print "not the committed bits: " $0; bad = 1 }
    } END { if (NR == 0 || bad) exit 1; print NR " words: the committed bits" }'
