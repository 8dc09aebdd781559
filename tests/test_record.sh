#!/bin/sh
# SPDX-License-Identifier: MIT
#
# --record and --compare as a command: every instruction set against one file, exit codes, altered
# files, what cannot be read or written.
# Usage: test_record.sh TEST_RECORD PLUGIN COMMAND [ARG...], where COMMAND runs the harness.
set -u

tool=$1
plugin=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

problem() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$1"
    tail -n 12 "$work/out"
}

# exits CODE TITLE COMMAND...
exits() {
    code=$1 title=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$code" ] || problem "$title: exit code $got instead of $code"
}

# refuses TITLE WORDS COMMAND...: exit code 2, one line that says why, and not a case has run.
refuses() {
    title=$1 words=$2
    shift 2
    exits 2 "$title" "$@"
    [ "$(wc -l <"$work/err")" -eq 1 ] || problem "$title: more or less than one line"
    grep -q -- "$words" "$work/err" || problem "$title: $(cat "$work/err")"
    ! grep -q PASS "$work/out" || problem "$title: ran all the same"
}

says() { grep -q -- "$1" "$work/out" || problem "$title: does not say '$1'"; }

# The whole quick plan, and each instruction set on its own.
exits 0 "record" "$@" --quick --record "$work/file"
says '^recorded [0-9]* results in'
[ "$(wc -c <"$work/file")" -lt 450000 ] || problem "record: the file is too large"
sets=$(sed -n 's/^embed  *\([a-z0-9]*\) .* PASS$/\1/p' "$work/out")
for isa in $sets; do
    exits 0 "compare $isa" "$@" --isa "$isa" --compare "$work/file"
    says '^machines: equal$'
    says ' 0 different, 0 different where only the bound is promised, 0 wrong$'
    ! grep -q '^NOTE: .* did not run' "$work/out" || problem "compare $isa: not all cases ran"
done

# One kernel and random cases: the file knows which. Another seed would give other cases.
exits 0 "a part" "$@" --compare "$work/file" --op embed --part 2/5
says '^machines: equal$'
! grep -q 'did not run' "$work/out" || problem "$title: counts what was not asked for"
part=$(sed -n 's/^compared \([0-9]*\) results.*/\1/p' "$work/out")
exits 0 "the whole" "$@" --compare "$work/file" --op embed
whole=$(sed -n 's/^compared \([0-9]*\) results.*/\1/p' "$work/out")
[ "$part" -gt 0 ] || problem "$title: no result of part 2/5"
[ "$part" -lt $((whole / 4)) ] || problem "$title: $part of $whole results of part 2/5"

small() { exits 0 "record embed" "$@" --quick --op embed --part 2/3 --iters 9 --seed 4 --record "$work/one"; }
small "$@"
cases=$(sed -n 's/^recorded \([0-9]*\) .*/\1/p' "$work/out")
exits 0 "compare embed" "$@" --compare "$work/one"
sets_count=$(printf '%s\n' "$sets" | wc -l)
says "^compared $((cases * sets_count)) results: $((cases * sets_count)) equal,"
cp "$work/one" "$work/first"
small "$@"
cmp -s "$work/one" "$work/first" || problem "record: another file the second time"
exits 0 "json" "$@" --json --compare "$work/one"
says '"compared": {"equal": [1-9].*"verdict": "equal"}'
exits 0 "json without a comparison" "$@" --json --quick --op embed
says '"compared": null'
exits 0 "some of the cases" "$@" --compare "$work/one" --op embed --where d=50
! grep -q 'did not run' "$work/out" || problem "$title: counts what was not asked for"

# altered WHAT: the file of one kernel, changed.
altered() {
    cp "$work/first" "$work/one"
    "$tool" alter "$work/one" "$1" || problem "alter $1"
}
altered hash
exits 1 "other bits" "$@" --max-fail 1 --compare "$work/one"
says '^DIFFERS embed [a-z0-9]*: other bits than in the file, within the bound: .* by up to 3 ULP'
says '^machines: different within the bound$'
says "^compared .*, $sets_count different, 0 different"
line=$(sed -n "s/^  isobit check --compare .* --replay '\(.*\)'\$/\1/p" "$work/out" | head -n 1)
exits 1 "replay of a difference" "$@" --compare "$work/one" --replay "$line"
says "^compared $sets_count results: 0 equal, $sets_count different"
exits 1 "json of a difference" "$@" --json --compare "$work/one"
says '"verdict": "different within the bound"'
altered wrong
exits 1 "wrong in the file" "$@" --compare "$work/one"
says 'wrong where the file was recorded'
says '^machines: wrong$'
altered numerics
exits 0 "other numerics" "$@" --compare "$work/one"
says '^NOTE: numerics are [0-9]* in the file, here'
altered newer
refuses "newer file" 'version 2 of the format, of a newer isobit' "$@" --compare "$work/one"
altered target
refuses "other kernels" 'has the kernels of other' "$@" --compare "$work/one"
altered keys
exits 2 "no case in common" "$@" --compare "$work/one"
grep -q 'none of its cases has run' "$work/err" || problem "no case in common: not said"

# A plug-in that gives other bits elsewhere: an error where it promises equal ones. Its replay line
# says the same again; results beyond the bound are wrong whatever is promised.
sums() {
    title=$1 order=$2 promise=$3 code=$4
    shift 4
    exits "$code" "$title" env ORDER="$order" PROMISE="$promise" "$@" --plugin "$plugin"
}
for promise in bits bound; do
    sums "plug-in: record" forward "$promise" 0 "$@" --quick --record "$work/sums"
    sums "plug-in: the same" forward "$promise" 0 "$@" --compare "$work/sums"
    says '^machines: equal$'
    sums "plug-in: wrong" wrong "$promise" 1 "$@" --compare "$work/sums"
    says '^machines: wrong$'
    says '^compared .* 0 different, 0 different where only the bound is promised, [1-9][0-9]* wrong$'
    [ "$promise" = bits ] && code=1 word=DIFFERS || code=0 word=NOTE
    sums "plug-in: other order" backward "$promise" "$code" "$@" --compare "$work/sums"
    says "^$word gemv plain: other bits than in the file, within the bound: .* by up to [0-9]"
    line=$(sed -n "s/^  .* --plugin .* --replay '\(.*\)'\$/\1/p" "$work/out" | head -n 1)
    sums "plug-in: replay" backward "$promise" "$code" "$@" --compare "$work/sums" --replay "$line"
    says '^compared 1 results: 0 equal'
done
sums "plug-in: record what is wrong" wrong bits 1 "$@" --quick --record "$work/wrong"
says 'those that are wrong too$'
sums "plug-in: compare with what was wrong" forward bits 1 "$@" --compare "$work/wrong"
says 'wrong where the file was recorded'
refuses "plug-in: the kernels' file" 'has the kernels of isobit' \
    "$@" --plugin "$plugin" --compare "$work/first"

# Files that are none, and usage.
head -c 100 "$work/first" >"$work/one"
refuses "cut file" 'cut: it has 100 of' "$@" --compare "$work/one"
refuses "no file" 'No such file' "$@" --compare "$work/none"
refuses "folder" 'not a regular file' "$@" --compare "$work"
refuses "other file" 'not a file that isobit' "$@" --compare "$0"
refuses "no such folder" 'cannot be written: No such' "$@" --record "$work/none/file"
if [ -c /dev/full ]; then
    exits 2 "full disk" "$@" --quick --op embed --record /dev/full
    grep -q 'No space left' "$work/err" || problem "full disk: not said"
fi
refuses "both" 'exclude' "$@" --record "$work/one" --compare "$work/one"
refuses "part of a part" 'is of a part' "$@" --compare "$work/first" --part 1/2
refuses "seed" 'from the file' "$@" --compare "$work/first" --seed 3
refuses "plan" 'from the file' "$@" --compare "$work/first" --quick
refuses "self-test" 'from the file' "$@" --compare "$work/first" --self-test
refuses "time box" 'goes with' "$@" --record "$work/one" --time-box 3
refuses "exhaustive" 'goes with' "$@" --record "$work/one" --exhaustive
refuses "no name" 'without its value' "$@" --record
[ "$(find "$work" -name 'one.*' -o -name 'file.*' | wc -l)" -eq 0 ] || problem "something was left behind"

[ "$failures" -eq 0 ] && echo "record and compare: as promised"
exit "$((failures > 0))"
