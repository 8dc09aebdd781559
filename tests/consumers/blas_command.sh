#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command isobit-blas: what it runs sees the library, in front of what was preloaded before.
# Usage: blas_command.sh BUILD-DIR
set -eu
build=$1
command=$build/bin/isobit-blas
library=$build/lib/libisobit_blas.so.0
unset LD_PRELOAD || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    printf '%s\n' "blas_command.sh: $*"
    exit 1
}
# gives STATUS COMMAND...: the exit status; the outputs lie in $work/out and $work/err.
gives() {
    wanted=$1 status=0
    shift
    "$@" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" -eq "$wanted" ] || fail "$* gives $status, not $wanted: $(cat "$work/err")"
}
one_line() { # WORDS: of the error
    if [ -s "$work/out" ] || [ "$(wc -l <"$work/err")" -ne 1 ] ||
        ! grep -q "^isobit-blas: .*$1" "$work/err"; then
        fail "wrong message: $(cat "$work/out" "$work/err")"
    fi
}

# shellcheck disable=SC2016 # the shell below expands it
print='printf "%s\n" "$LD_PRELOAD" "$@"'
gives 0 "$command" sh -c "$print" x "a b" ''
printf '%s\n' "$library" 'a b' '' | cmp - "$work/out"
gives 0 env LD_PRELOAD=libm.so.6 "$command" sh -c "$print" x
[ "$(head -n 1 "$work/out")" = "$library:libm.so.6" ] || fail "LD_PRELOAD: $(cat "$work/out")"
gives 0 "$command" -- sh -c 'grep -c libisobit_blas.so /proc/$$/maps'
[ ! -s "$work/err" ] || fail "$(cat "$work/err")"
gives 7 "$command" sh -c 'exit 7'

gives 2 "$command"
one_line 'no command is given; usage: isobit-blas COMMAND'
gives 2 "$command" --
one_line 'no command is given'
gives 2 "$command" --odd
one_line "no option '--odd'"
gives 127 "$command" no-such-command-here
one_line "no command 'no-such-command-here'"
gives 127 "$command" /no/such/command
one_line "no command '/no/such/command'"
gives 0 "$command" --version
grep -q '^isobit-blas [0-9]*\.[0-9]*\.[0-9]*$' "$work/out" || fail "version"
gives 0 "$command" --help
grep -q '^usage: isobit-blas COMMAND' "$work/out" || fail "help"

# By its own place: moved, reached through a link and through PATH, and without its library.
mkdir -p "$work/moved/bin" "$work/moved/lib/some-machine" "$work/link"
cp "$command" "$work/moved/bin"
gives 1 "$work/moved/bin/isobit-blas" true
one_line "no libisobit_blas.so.0 below $work/moved/lib"
ln -s "$library" "$work/moved/lib/some-machine/libisobit_blas.so.0"
ln -s ../moved/bin/isobit-blas "$work/link/isobit-blas"
gives 0 "$work/link/isobit-blas" sh -c "$print" x
[ "$(head -n 1 "$work/out")" = "$work/moved/lib/some-machine/libisobit_blas.so.0" ] ||
    fail "link: $(cat "$work/out")"
gives 0 env "PATH=$work/link:$PATH" isobit-blas sh -c "$print" x
[ "$(head -n 1 "$work/out")" = "$work/moved/lib/some-machine/libisobit_blas.so.0" ] ||
    fail "PATH: $(cat "$work/out")"
mv "$work/moved" "$work/with space"
gives 1 "$work/with space/bin/isobit-blas" true
one_line 'cannot hold white space'
