#!/bin/sh
# SPDX-License-Identifier: MIT
#
# --record and --compare on an emulated machine, whose sets are others; test_record.sh, which looks at
# all that they say, would take minutes there. Usage: test_record_emulated.sh COMMAND [ARG...]
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$@" --quick --op softmax --iters 20 --seed 3 --record "$work/file" >"$work/out"
sets=$(sed -n 's/^softmax  *\([a-z0-9]*\) .* PASS$/\1/p' "$work/out" | sort -u)
[ -n "$sets" ]
for isa in $sets; do
    "$@" --isa "$isa" --compare "$work/file" >"$work/out"
    grep -q '^machines: equal$' "$work/out" || {
        tail -n 5 "$work/out"
        exit 1
    }
    echo "$isa: equal"
done
# A file that is cut is refused.
head -c 100 "$work/file" >"$work/cut"
status=0
"$@" --compare "$work/cut" >"$work/out" 2>&1 || status=$?
[ "$status" -eq 2 ]
