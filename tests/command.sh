# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# What tests of the command line share; they source it, "$@" being how isobit is started. $work is a
# folder that goes away, $work/in what the commands read; $checks and $failures count. A command may
# take $limit seconds.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset ISOBIT_ISA ISOBIT_NUMERICS
failures=0
checks=0
limit=${ISOBIT_TEST_LIMIT:-240}
chances=1
[ $# -gt 1 ] && chances=2 # an emulator and its arguments

problem() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$1"
    sed 's/^/    stdout: /' "$work/out" 2>/dev/null | cut -c1-300 | head -n 5
    sed 's/^/    stderr: /' "$work/err" 2>/dev/null | cut -c1-300 | head -n 5
}

# ran TITLE COMMAND...: $got becomes its exit code. A command that does not end is killed and counts as
# failed. Under an emulator it gets a second chance: one hung in CI there (QEMU 7.2), none without.
ran() {
    title=$1
    shift
    got=127
    for _ in $(seq "$chances"); do
        timeout -k 5 "$limit" "$@" <"$work/in" >"$work/out" 2>"$work/err"
        got=$?
        if [ "$got" -ne 124 ] && [ "$got" -ne 137 ]; then
            return
        fi
        printf 'HUNG: %s: killed after %s seconds: %s\n' "$title" "$limit" "$*"
    done
}

# fails CODE TEXT TITLE COMMAND...: exits so, with one line on stderr that contains TEXT; stdin
# comes from $work/in.
fails() {
    code=$1 text=$2 title=$3
    shift 3
    checks=$((checks + 1))
    ran "$title" "$@"
    if [ "$got" -ne "$code" ]; then
        problem "$title: exit code $got instead of $code"
    elif [ "$(wc -l <"$work/err")" -ne 1 ] || ! grep -q '^isobit: ' "$work/err"; then
        problem "$title: no single line 'isobit: ...' on stderr"
    elif ! grep -q -F -e "$text" "$work/err"; then
        problem "$title: the message lacks '$text'"
    fi
}

# works TITLE COMMAND...: exits with 0 and is silent on stderr.
works() {
    title=$1
    shift
    checks=$((checks + 1))
    ran "$title" "$@"
    if [ "$got" -ne 0 ]; then
        problem "$title: exit code $got"
    elif [ -s "$work/err" ]; then
        problem "$title: wrote to stderr"
    fi
}

# same TITLE FILE: what the last command printed.
same() {
    checks=$((checks + 1))
    cmp -s "$work/out" "$2" || problem "$1"
}

# near TITLE WANTED: what the last command printed has these numbers, almost, and no others.
near() {
    checks=$((checks + 1))
    printf '%s\n' "$2" | awk -v got="$work/out" '{
        if ((getline line <got) != 1 || split(line, g, " ") != NF)
            exit bad = 1
        for (i = 1; i <= NF; i++)
            if (!((g[i] - $i) ^ 2 <= 1e-10 * $i ^ 2))
                exit bad = 1
    }
    END { exit bad || (getline line <got) == 1 }' || problem "$1"
}
