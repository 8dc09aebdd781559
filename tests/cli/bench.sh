#!/bin/sh
# SPDX-License-Identifier: MIT
#
# isobit bench.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

# Under an emulator or the thread sanitizer it would take minutes, and say nothing.
if $quick; then
    input ''
    # A sanitizer sees what it does where a small model, and int8, do it.
    measured=$model
    [ -z "${ISOBIT_SANITIZED:-}" ] || measured=$source/tests/data/models/paper
    works 'bench' "$@" bench --model "$measured" --seconds 0.01
    for text in '^encode 1 x 128 .*%' '^encode 32 x 32 ' '^decode 1, greedy .* (GB|GFLOP)/s$' \
        '^decode 8, 4 beams ' 'linear *logits' '^peak memory '; do
        checks=$((checks + 1))
        grep -q -E -e "$text" "$work/out" || problem "bench: no line like '$text'"
    done
    works 'bench of int8' "$@" bench --model "$model" --compute int8 --seconds 0.01
    for text in '^model .* parameters, int8$' '^encode 32 x 32 .* %: int8 peak [0-9.]* GOP/s$' '^decode 1, greedy .* %: (reads|int8 peak) '; do
        checks=$((checks + 1))
        grep -q -E -e "$text" "$work/out" || problem "bench of int8: no line like '$text'"
    done
    works 'bench --json' "$@" bench --model "$source/tests/data/models/paper" \
        --seconds 0.01 --threads 2 --json
    if command -v python3 >/dev/null 2>&1; then
        checks=$((checks + 1))
        python3 -c 'import json, sys
bench = json.load(open(sys.argv[1]))
assert bench["threads"] == 2
assert bench["weight_bytes"] > 4 * bench["parameters"] - 2 * bench["parameters_16"]
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
