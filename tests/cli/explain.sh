#!/bin/sh
# SPDX-License-Identifier: MIT
#
# isobit explain.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

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
works 'explain gemm' "$@" explain gemm 200x100x70 --threads 1 --isa scalar --seconds 0.001
says 'gemm 200x100x70: scalar, 1 thread' 'explain gemm'
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
    for isa in $("$@" info --json | python3 -c '
import json, sys
print(*[s["name"] for s in json.load(sys.stdin)["isas"] if s["available"]])'); do
        works "the peak of $isa" "$@" explain gemm 8x8x8 --isa "$isa" --threads 1 --seconds 0.001 --json
        python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["fma_peak"] > 1e8' \
            "$work/out" || problem "the peak of $isa: none"
    done
fi

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
