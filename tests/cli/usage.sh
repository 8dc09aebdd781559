#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage, help, and the table of environment variables.
set -u

# shellcheck source=tests/cli/begin.sh
. "${0%/*}/begin.sh"

input ''
checks=$((checks + 1))
"$@" <"$work/in" >"$work/out" 2>"$work/err"
if [ $? -ne 2 ] || [ -s "$work/out" ] || ! grep -q '^usage: isobit COMMAND' "$work/err" ||
    ! grep -q '^  run  *text in' "$work/err"; then
    problem "no command: not the usage on stderr and exit code 2"
fi
fails 2 'run, generate, score' 'unknown command' "$@" frobnicate
fails 2 "'--frobnicate'" 'unknown option before a command' "$@" --frobnicate
fails 2 "'--frobnicate'" 'unknown option' "$@" run --frobnicate
fails 2 "'-x'" 'unknown letter' "$@" run -x
fails 2 "'--top'" 'an option of another command' "$@" run --model "$model" --top 3
fails 2 "'--from'" 'an option of another command' "$@" fill --model "$model" --from en
fails 2 "'--beam'" 'option without its value' "$@" run --model "$model" --beam
fails 2 'whole number' 'zero beams' "$@" run --model "$model" --beam 0
fails 2 'whole number' 'number with rubbish' "$@" run --model "$model" --threads 2x
fails 2 '--model' 'no model' "$@" run word
fails 2 'word' 'argument where none belongs' "$@" info word
fails 2 '--model' 'bench without a model' "$@" bench
fails 2 'exclude each other' 'bench of two models' "$@" bench --base --model "$model"
fails 2 'seconds above 0' 'no time to measure' "$@" bench --base --seconds 0
fails 2 'seconds above 0' 'time that is no number' "$@" bench --base --seconds 1x
fails 2 'scalar' 'bench on an unknown instruction set' "$@" bench --model "$model" --isa sse9
fails 1 "$work/nowhere" 'no place for the weights' env TMPDIR="$work/nowhere" "$@" bench --base
fails 2 'decoder layers' 'layer out of range' "$@" run --model "$model" --attention "$work/a.svg" \
    --layer 99 word
fails 2 'scalar' 'unknown instruction set lists the valid ones' "$@" run --model "$model" \
    --isa sse9 word
ISOBIT_ISA=sse9
export ISOBIT_ISA
fails 2 'ISOBIT_ISA=sse9' 'unknown instruction set in the environment' "$@" run \
    --model "$model" word
unset ISOBIT_ISA
ISOBIT_NUMERICS=nativ
export ISOBIT_NUMERICS
for command in "run --model $model word" version 'check --op embed' "demo --model $model"; do
    # shellcheck disable=SC2086 # some words
    fails 2 'fixed and native' "unknown numerics in the environment, $command" "$@" $command
done
works 'info with unknown numerics' "$@" info
says 'numerics ISOBIT_NUMERICS=nativ: there are fixed and native' 'unknown numerics'
works 'info --env with unknown numerics' "$@" info --env
says 'ISOBIT_NUMERICS invalid nativ (neither fixed nor native: products with BF16 weights are refused)' \
    'unknown numerics'
ISOBIT_NUMERICS=native
works 'version in native numerics' "$@" version
grep -q -E '\(numerics ([0-9]+|native \([a-z0-9_]+\))\)$' "$work/out" || problem 'version: no numerics'
unset ISOBIT_NUMERICS
for command in '' run generate score embed fill demo explain quantize info version; do
    # shellcheck disable=SC2086 # empty for the program itself
    works "$command --help" "$@" $command --help
    grep -q usage "$work/out" || problem "$command --help: no usage"
done
works version "$@" version
works 'info' "$@" info
works 'info --json' "$@" info --json
if command -v python3 >/dev/null 2>&1; then
    python3 -m json.tool "$work/out" >/dev/null || problem 'info --json: not valid JSON'
fi

# ------------------------------------------------------------------------ info --env, as a table

# A program, which `timeout` can run, and no function.
cat >"$work/bare" <<'END'
#!/bin/sh
exec env -u ISOBIT_NUMERICS -u ISOBIT_VERBOSE -u ISOBIT_VERBOSE_FILE -u ISOBIT_NUM_THREADS -u OMP_NUM_THREADS "$@"
END
chmod +x "$work/bare"
works 'info --env' "$work/bare" "$@" info --env
says 'ISOBIT_ISA default the best that can run' 'info --env'
says 'ISOBIT_NUMERICS default fixed' 'info --env'
says 'ISOBIT_VERBOSE default 0' 'info --env'
says 'ISOBIT_NUM_THREADS default OMP_NUM_THREADS' 'info --env'
says ' libisobit: the instruction set of all calls that name none' 'info --env'
works 'values of the environment' "$work/bare" env ISOBIT_ISA=scalar ISOBIT_VERBOSE=2 OMP_NUM_THREADS=4,2 \
    ISOBIT_VERBOSE_FILE="$work/v" "$@" info --env
says 'ISOBIT_ISA environment scalar' 'valid value'
says 'ISOBIT_VERBOSE environment 2' 'valid value'
says "ISOBIT_VERBOSE_FILE environment $work/v" 'valid value'
says 'OMP_NUM_THREADS environment 4,2' 'valid value'
works 'invalid values' "$work/bare" env ISOBIT_ISA=mmx ISOBIT_VERBOSE=3 ISOBIT_NUM_THREADS=0 \
    OMP_NUM_THREADS=two "$@" info --env
says 'ISOBIT_ISA invalid mmx (no instruction set that can run here: calls are refused)' 'invalid'
says 'ISOBIT_VERBOSE invalid 3 (none of 0 1 2: counts as 0)' 'invalid'
says 'ISOBIT_NUM_THREADS invalid 0 (no number of threads: counts as not set)' 'invalid'
says 'OMP_NUM_THREADS invalid two (no number of threads: counts as not set)' 'invalid'
works 'empty values' "$work/bare" env ISOBIT_ISA= ISOBIT_VERBOSE= ISOBIT_NUM_THREADS= "$@" info --env
says 'ISOBIT_ISA default the best that can run' 'empty value'
says 'ISOBIT_VERBOSE default 0' 'empty value'
works 'info --env --json' "$work/bare" env ISOBIT_VERBOSE=3 ISOBIT_VERBOSE_FILE='a"\b' "$@" info --env \
    --json
lines_are 'info --env --json' 1
for part in '"name": "ISOBIT_VERBOSE", "value": "3", "source": "invalid"' \
    '"name": "ISOBIT_VERBOSE_FILE", "value": "a\"\\b", "source": "environment"' \
    '"name": "ISOBIT_NUM_THREADS", "value": null, "source": "default", "problem": null'; do
    checks=$((checks + 1))
    grep -q -F -e "$part" "$work/out" || problem "info --env --json: no $part"
done
if command -v python3 >/dev/null 2>&1; then
    python3 -m json.tool "$work/out" >/dev/null || problem 'info --env --json: not valid JSON'
fi
# The table names what the sources read, all of it and nothing else.
checks=$((checks + 1))
(cd "$source" && grep -r -h -o -E '(getenv|read_count)\("[A-Z_]+"\)' blas dispatch model tools) |
    sed 's/.*"\(.*\)".*/\1/' | sort -u >"$work/in"
sed -n 's/^ENV(\([A-Z_]*\),.*/\1/p' "$source/dispatch/env.def" | sort >"$work/table"
cp "$work/table" "$work/out"
cmp -s "$work/in" "$work/table" || problem 'dispatch/env.def is not what the sources read'
input ''

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
