#!/bin/sh
# SPDX-License-Identifier: MIT
#
# isobit check --plugin: what is found in operations that are broken on purpose, what is not found in
# good ones, that files and replay lines hold the findings, and that a plug-in which cannot be used
# gives one line and exit code 2. Usage: plugin.sh DEFECTS.so BAD.so EMPTY.so COMMAND [ARG...]
set -u

defects=$1 bad=$2 empty=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
emulated=${ISOBIT_EMULATED:-} # then one of eight
count=0
left_out() {
    count=$((count + 1))
    [ -n "$emulated" ] && [ $((count % 8)) -ne 0 ]
}
unset DEFECT PROMISES STACK_LIMIT TOLERANCE BAD

problem() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$1"
    head -qn 4 "$work/out" "$work/err"
}

# exits CODE TITLE COMMAND...
exits() {
    code=$1 title=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$code" ] || problem "$title: exit code $got instead of $code"
}

says() { grep -q -e "$1" "$work/out" || problem "$title: does not say '$1'"; }

# ------------------------------------------------------------------------------ good operations

if [ -z "$emulated" ]; then
    exits 0 "plain operations" "$@" --plugin "$defects" --quick --seed 1 --iters 400
    [ "$(grep -c ' PASS$' "$work/out")" -eq 48 ] || problem "not twelve, twice, on two variants"
else
    exits 0 "plain operations" "$@" --plugin "$defects" --quick --part 1/4
    [ "$(grep -c ' PASS$' "$work/out")" -eq 24 ] || problem "not twelve on two variants"
fi
exits 0 "an operation of its own" "$@" --plugin "$bad" --timing
says '^halve  *scalar .* PASS  .* GFLOP/s$'
cases=$(sed -n 's/^halve *scalar *\([0-9]*\) .*/\1/p' "$work/out")
exits 0 "list" "$@" --plugin "$bad" --list
[ "$(wc -l <"$work/out")" -eq "${cases:-0}" ] || problem "list: not the $cases cases of the plan"
exits 0 "coverage" "$@" --plugin "$bad" --coverage
[ "$(awk '$1 == "nan-at" { print $2 }' "$work/out")" -gt 2 ] || problem "coverage: no nan-at"
exits 0 "part" "$@" --plugin "$bad" --part 1/2
exits 0 "where" "$@" --plugin "$bad" --op halve --where n=23
exits 0 "digest" "$@" --plugin "$bad" --digest
says '^halve  *[0-9a-f]\{16\}$'
cp "$work/out" "$work/digest"
exits 0 "digest again" "$@" --plugin "$bad" --digest
cmp -s "$work/out" "$work/digest" || problem "digest: another one the second time"
exits 0 "write hashes" "$@" --plugin "$bad" --quick --update-golden "$work/hashes"
exits 0 "compare hashes" "$@" --plugin "$bad" --quick --golden "$work/hashes"
sed -i 's/[0-9a-f]$/z/; s/0z$/1/; s/z$/0/' "$work/hashes"
exits 1 "other hashes" "$@" --plugin "$bad" --quick --golden "$work/hashes"
says '^FAIL halve scalar: the bits are not those committed$'
BAD=absent
export BAD
exits 0 "a variant that is not here" "$@" --plugin "$bad"
says '^halve  *other  *SKIPPED: it is not here$'
unset BAD

# --------------------------------------------------------------------------------- what is found

# In this operation of the broken variant, and nothing else; and again from its line.
look() { # OPERATION DEFECT WORDS COMMAND...
    operation=$1 DEFECT=$2 words=$3
    shift 3
    export DEFECT
    exits 1 "$DEFECT" "$@" --plugin "$defects" --op "$operation" --quick
    grep -q "^FAIL $operation broken: .*$words" "$work/out" || problem "$DEFECT: not '$words'"
    grep -q "^$operation  *scalar .* PASS" "$work/out" || problem "$DEFECT: the good one failed"
    replay=$(sed -n "s/^  isobit check --plugin .* --replay '\(.*\)'\$/\1/p" "$work/out" | head -n 1)
    line=$(grep '^FAIL' "$work/out" | head -n 1)
    exits 1 "$DEFECT, replayed" "$@" --plugin "$defects" --replay "$replay"
    grep -q -F -x -e "$line" "$work/out" || problem "$DEFECT: the replay does not say: $line"
    unset DEFECT
}
PROMISES=4 # errors are looked for, not other bits
export PROMISES
while IFS='|' read -r operation defect words; do
    left_out || look "$operation" "$defect" "$words" "$@"
done <<'END'
gemm|gemm_forgets_k|times the bound
gemm|gemm_adds_to_c|did not write c\[0\]\[0\]
gemm|gemm_trusts_lda|c\[1\]\[0\]
gemm|gemm_writes_gap|wrote to the gap of c
gemv|gemv_reads_past|past the right end of x
gemv|gemv_skips_last|did not write y
gemv|gemv_writes_input|wrote to the input x
softmax|softmax_without_max|should be
softmax|softmax_swallows_nan|should be -\{0,1\}nan
logsumexp|logsumexp_is_log_sum|times the bound
layernorm|layernorm_one_pass|should be
rmsnorm|rmsnorm_without_eps|should be
attention|attention_sees_all|times the bound
attention|attention_other_scale|times the bound
gelu|gelu_is_tanh|times the bound
gelu_tanh|gelu_tanh_is_erf|times the bound
silu|silu_loses_bits|times the bound
relu|relu_of_nan_is_0|should be -\{0,1\}nan
embed|embed_next_row|y\[0\]
relu|relu_raises|raised DIVBYZERO on harmless input
relu|relu_crashes|fault at address
relu|relu_aborts|aborted
END
unset PROMISES
look relu relu_by_address "bits of y" "$@"
look silu silu_other_bits "bits of y" "$@"

# Where there is no way back, the case is named at least.
ends() { # TITLE WORDS PLUGIN COMMAND...
    title=$1 words=$2 plugin=$3
    shift 3
    exits 1 "$title" "$@" --plugin "$plugin" --quick --junit "$work/junit.xml"
    grep -q '<failure' "$work/junit.xml" || problem "$title: no failure in the junit file"
    grep -q '</testsuites>' "$work/junit.xml" || problem "$title: half a junit file"
    says "^FAIL .*: $words"
    replay=$(sed -n "s/^  isobit check --plugin .* --replay '\(.*\)'\$/\1/p" "$work/out")
    exits 1 "$title, replayed" "$@" --plugin "$plugin" --replay "$replay"
}
DEFECT=relu_exits
export DEFECT
ends "exit" "called exit" "$defects" "$@" --op relu
DEFECT=relu_thread_crashes
ends "a thread" "a thread of its own died: Segmentation fault" "$defects" "$@" --op relu
unset DEFECT
BAD=oracle
export BAD
ends "an oracle that crashes" "its suite died outside of the call: Seg" "$bad" "$@"
unset BAD

# A promise that is not given is not looked at; one that is, is.
kept() { # TITLE DEFECT OPERATION COMMAND...
    title=$1 DEFECT=$2 operation=$3
    shift 3
    export DEFECT
    exits 0 "$title" "$@" --plugin "$defects" --op "$operation" --quick
}
PROMISES=0
export PROMISES
kept "no promise of bits" silu_other_bits silu "$@"
says '^silu  *broken  *[0-9]* .* -  *PASS$'
kept "no promise of flags" relu_raises relu "$@"
kept "no promise of places" relu_by_address relu "$@"
PROMISES=1 # the same at all places, but not on all variants
kept "other bits on another variant" silu_other_bits silu "$@"
look relu relu_by_address "bits of y" "$@"
PROMISES=10
kept "no limit of the stack" relu_uses_stack relu "$@"
STACK_LIMIT=4096
export STACK_LIMIT
unset DEFECT
exits 0 "a limit that is kept" "$@" --plugin "$defects" --op relu --quick
grep -q '^NOTE: not checked .*stack' "$work/out" ||
    look relu relu_uses_stack "bytes of stack, more than 4096" "$@"
unset STACK_LIMIT
look relu relu_sets_errno "changed errno to" "$@"
unset PROMISES
TOLERANCE=100
export TOLERANCE DEFECT
kept "tolerance" silu_loses_bits silu env PROMISES=0 "$@"
unset TOLERANCE DEFECT
BAD=wrong
export BAD
exits 1 "an operation of its own that is wrong" "$@" --plugin "$bad" --max-fail 1000 \
    --junit "$work/junit.xml" --markdown "$work/table.md" --seed 5 --iters 60
says '^FAIL halve scalar: y\[.*\]\[6\] is'
sed -n 's/.* n=\([0-9]*\) .*/\1/p' "$work/out" | while read -r n; do
    [ $((n % 8)) -eq 7 ] || echo "$n"
done >"$work/others"
[ -s "$work/others" ] && problem "findings where n is $(tr '\n' ' ' <"$work/others")"
grep -q '^| halve | scalar | .*\*\*FAIL\*\*' "$work/table.md" || problem "markdown: no row that fails"
grep -q -- "--replay 'halve isa=scalar" "$work/table.md" || problem "markdown: no replay"
grep -q '<testsuite name="isobit check halving" tests="4" failures="4"' "$work/junit.xml" ||
    problem "junit: not four failures"
if command -v xmllint >/dev/null; then
    xmllint --noout --schema "$(dirname "$0")/../perf/junit.xsd" "$work/junit.xml" \
        >"$work/out" 2>&1 || problem "junit: not of its schema"
fi
exits 1 "json" "$@" --plugin "$bad" --json --quick
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
d = json.load(sys.stdin)
assert d["target"] == "halving" and d["result"] == "FAIL", d
assert [r["result"] for r in d["results"]] == ["FAIL", "FAIL"] and d["failures"][0]["replay"], d' \
        <"$work/out" 2>"$work/err" || problem "json: $(tail -n 1 "$work/err")"
fi
# The printed command is one that a shell can run.
odd="$work/it's \$mine.so"
cp "$bad" "$odd"
exits 1 "an odd name" "$@" --plugin "$odd" --quick
line=$(grep '^  isobit check' "$work/out" | head -n 1)
mkdir "$work/bin"
{
    echo '#!/bin/sh'
    echo shift # check
    printf 'exec'
    for word in "$@"; do printf " '%s'" "$word"; done
    # shellcheck disable=SC2016 # for the tool
    printf ' "$@"\n'
} >"$work/bin/isobit"
chmod +x "$work/bin/isobit"
exits 1 "the printed command" env "PATH=$work/bin:$PATH" sh -c "$line"
says '^FAIL halve scalar'
unset BAD

# ---------------------------------------------------------------------------------- bad plug-ins

# refused TITLE WORDS COMMAND...: exit code 2, one line on stderr, nothing on stdout.
refused() {
    title=$1 words=$2
    shift 2
    exits 2 "$title" "$@"
    sed -i '/^qemu: /d' "$work/err" # an emulator's own line about a child
    [ "$(wc -l <"$work/err")" -eq 1 ] || problem "$title: not one line"
    [ -s "$work/out" ] && problem "$title: something on stdout"
    grep -q "^isobit: check: .*$words" "$work/err" || problem "$title: does not say '$words'"
}
echo "this is no library" >"$work/text.so"
: >"$work/nothing.so"
head -c 2000 "$bad" >"$work/cut.so"
refused "no file" "No such file" "$@" --plugin "$work/none.so"
refused "a folder" "$work: .*directory" "$@" --plugin "$work"
refused "a text" "text.so: " "$@" --plugin "$work/text.so"
refused "an empty file" "nothing.so: " "$@" --plugin "$work/nothing.so"
refused "no entry" "it has no function iso_check_plugin" "$@" --plugin "$empty"
refused "no file named" "needs one file" "$@" --plugin
refused "two plug-ins" "needs one file" "$@" --plugin "$bad" --plugin "$bad"
refused "self-test" "is for isobit's kernels" "$@" --plugin "$bad" --self-test
refused "unknown operation" "no kernel" "$@" --plugin "$bad" --op softmax
refused "unknown variant" "no instruction set" "$@" --plugin "$bad" --isa avx9
refused "junit into nowhere" "none/junit.xml: " "$@" --plugin "$bad" --junit "$work/none/junit.xml"
refused "no hashes" "none.txt: " "$@" --plugin "$bad" --golden "$work/none.txt"
refused "no errors" "none.txt: " "$@" --plugin "$bad" --errors-file "$work/none.txt"
refused "hashes into nowhere" "none/h: " "$@" --plugin "$bad" --update-golden "$work/none/h"
refused "markdown into nowhere" "none/t.md: " "$@" --plugin "$bad" --markdown "$work/none/t.md"
if [ -z "${ISOBIT_SANITIZED:-}" ]; then # else the sanitizer has its say first
    refused "half a library" "cut.so: " "$@" --plugin "$work/cut.so"
    BAD=crash
    export BAD
    refused "crash" "it crashes when it is loaded: Segmentation fault" "$@" --plugin "$bad"
    BAD=wild
    refused "wild" "it crashes when it is loaded: " "$@" --plugin "$bad"
    BAD=abort
    refused "abort" "it crashes when it is loaded: Aborted" "$@" --plugin "$bad"
fi
while IFS='|' read -r BAD words; do
    export BAD
    left_out || refused "$BAD" "$words" "$@" --plugin "$bad"
done <<'END'
exit|it exits when it is loaded, with code 0
hang|it was not loaded within
null|it has no target
version|of version 2 of isobit/check.h, this is version 1
size|the size of its target is 8 bytes
no name|it has no name
odd name|it has no name
no variants|it has 0 variants
many variants|it has 17 variants
variant name|variant 1 has no name
variant table|variant other has no table
variant twice|two variants are called scalar
no suites|its suites are NULL
null suite|suite 0 is NULL
suite name|suite 0 is NULL or has no name
suite twice|two suites are called halve
params|suite halve: params is not a list
odd params|suite halve: params is not a list
setup|suite halve: setup is NULL
call|suite halve: call is NULL
reference|suite halve: reference is NULL
least|suite halve: least is above most for parameter 1
without|suite halve: without leaves no kind
no functions|its functions are NULL
no arguments|function 0 has no name or no arguments
arguments|function halve: its argument list is not of the form
structure|function halve: its argument list has a type
many arguments|function halve: its argument list has too many
offset|function halve: offset .* is not inside
small table|its tables have 8 bytes
tolerance|its tolerance is no number
nothing|it has no operation
END

[ "$failures" -eq 0 ] && echo "isobit check --plugin: as promised"
exit "$((failures > 0))"
