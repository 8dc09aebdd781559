#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The harness as a command: exit codes, hashes, JSON, and that a failure can be replayed from the
# line it prints. Usage: test_check.sh GOLDEN-FILE COMMAND [ARG...], where COMMAND runs the harness,
# perhaps through an emulator.
set -u

golden=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

problem() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$1"
    head -n 12 "$work/out"
}

# exits CODE TITLE COMMAND...
exits() {
    code=$1 title=$2
    shift 2
    "$@" >"$work/out" 2>&1
    got=$?
    [ "$got" -eq "$code" ] || problem "$title: exit code $got instead of $code"
}

exits 0 "help" "$@" --help
exits 2 "unknown option" "$@" --no-such-option
exits 2 "unknown kernel" "$@" --op no_such_kernel
exits 2 "unknown set" "$@" --isa no_such_set
exits 2 "number missing" "$@" --iters many
exits 2 "part beyond the whole" "$@" --part 3/2
exits 2 "parameter of no kernel" "$@" --where d=5
exits 2 "unknown parameter" "$@" --op embed --where dimension=5
exits 2 "broken line" "$@" --replay 'embed count=1 d=x'

# One kernel: its hash is the committed one; a changed file is found.
want=$(sed -n 's/^embed [0-9]* //p' "$golden")
exits 0 "digest" "$@" --op embed --digest
grep -q "^embed  *$want\$" "$work/out" || problem "digest: not the committed hash"
sed 's/^\(embed [0-9]* \)./\1z/' "$golden" | sed 's/z/0/' >"$work/other"
cmp -s "$golden" "$work/other" && sed 's/^\(embed [0-9]* \)./\1f/' "$golden" >"$work/other"
exits 0 "once" "$@" --op embed --quick --once
awk '$1 == "embed" && $3 != "SKIPPED:" && $3 != $4 { exit 1 }' "$work/out" || problem "once: more calls than cases"
exits 1 "tampered hash" "$@" --op embed --quick --golden "$work/other"
grep -q 'the bits are not those committed' "$work/out" || problem "tampered hash: not said"

# Random cases: the same seed gives the same bits, another one others.
exits 0 "random" "$@" --op embed --digest --seed 7 --iters 20
cp "$work/out" "$work/first"
exits 0 "random again" "$@" --op embed --digest --seed 7 --iters 20
cmp -s "$work/out" "$work/first" || problem "random: the same seed gave other bits"
exits 0 "random, other seed" "$@" --op embed --digest --seed 8 --iters 20
cmp -s "$work/out" "$work/first" && problem "random: another seed gave the same bits"

# A failure can be replayed: this case must overflow on purpose, and says so (kind 8: it may not).
line='unary isa=scalar at=right function=100 n=5 inplace=0 first=1120403456 step=1 fill=uniform'
exits 1 "replay" "$@" --replay "$line kind=8 seed=1 offset=3"
grep -q 'raised OVERFLOW' "$work/out" || problem "replay: another failure"
again=$(sed -n "s/^  isobit check --replay '\(.*\)'\$/\1/p" "$work/out" | head -n 1)
exits 1 "replay of the replay" "$@" --replay "$again"
exits 0 "replay of a case that passes" "$@" --replay "$line kind=0 seed=1 offset=3"

# Parts: together they are the whole plan.
exits 0 "list" "$@" --op embed --quick --list
whole=$(wc -l <"$work/out")
parts=0
for part in 1/3 2/3 3/3; do
    exits 0 "part $part" "$@" --op embed --quick --isa scalar --part "$part"
    cases=$(sed -n 's/ cases, .*//p' "$work/out")
    parts=$((parts + cases))
done
[ "$parts" -eq "$whole" ] || problem "parts: $parts cases of $whole"

exits 0 "cases of one parameter" "$@" --op embed --where d=17
grep -q '^embed .* PASS' "$work/out" || problem "--where: no row"
cases=$(sed -n 's/^embed *[a-z0-9_]*  *\([0-9][0-9]*\) .*/\1/p' "$work/out" | head -n 1)
[ "${cases:-0}" -gt 0 ] || problem "--where: no cases"
[ "${cases:-0}" -lt 30 ] || problem "--where: $cases cases"

# Calibrated errors: what --update-errors writes is what the committed file holds.
exits 0 "errors" "$@" --op embed --update-errors "$work/errors"
grep '^embed' "$(dirname "$golden")/errors.txt" >"$work/committed"
grep '^embed' "$work/errors" | cmp -s - "$work/committed" || problem "errors: not those committed"
sed 's/^\(embed quick plain [0-9]*\) [0-9.]*/\1 0.001/' "$work/errors" >"$work/other"
exits 1 "errors beyond the calibrated ones" "$@" --op embed --quick --errors-file "$work/other"
grep -q 'rms error of the group plain' "$work/out" || problem "calibrated errors: not said"
exits 0 "coverage" "$@" --coverage
grep -q '^nan-at ' "$work/out" || problem "coverage: a fill is missing"

exits 0 "json" "$@" --op embed --quick --json
grep -q '"result": "PASS"}$' "$work/out" || problem "json: no result"

[ "$failures" -eq 0 ] && echo "isobit check: as promised"
exit "$((failures > 0))"
