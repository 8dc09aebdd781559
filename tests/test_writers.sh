#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Output that cannot be written: the tool exits with 1 and says so in one line, and a file that was
# there before stays as it was. Usage: test_writers.sh SOURCE-DIR COMMAND [ARG...], where COMMAND
# runs isobit, perhaps through an emulator.
set -u

source=$1
shift
model=$source/models/g2p-en
if ! [ -f "$model/model.safetensors" ]; then
    echo "SKIPPED: $model/model.safetensors is not there"
    exit 77
fi
# shellcheck source=tests/command.sh
. "$source/tests/command.sh"

# judge TITLE CODE: 1, and one line on stderr.
judge() {
    checks=$((checks + 1))
    if [ "$2" -ne 1 ]; then
        problem "$1: exit code $2 instead of 1"
    elif [ "$(wc -l <"$work/err")" -ne 1 ] || ! grep -q '^isobit: cannot write' "$work/err"; then
        problem "$1: no single line 'isobit: cannot write ...' on stderr"
    fi
}

# limited COMMAND...: no file may grow beyond a block or two; the signal for that is ignored, as
# on a disk that is full.
limited() (
    trap '' XFSZ
    ulimit -f 1
    "$@"
)

if [ -w /dev/full ]; then
    for format in --json --scores --digest; do
        "$@" run --model "$model" "$format" word another >/dev/full 2>"$work/err"
        judge "run $format on a full device" $?
    done
    "$@" info >/dev/full 2>"$work/err"
    judge 'info on a full device' $?
    "$@" info --json >/dev/full 2>"$work/err"
    judge 'info --json on a full device' $?
    "$@" run --model "$model" --attention /dev/full word >"$work/out" 2>"$work/err"
    judge 'picture on a full device' $?
    checks=$((checks + 1))
    [ -c /dev/full ] || problem 'the device was replaced'
fi

# Many words, so that the output is more than a block.
i=0
while [ "$i" -lt 400 ]; do
    echo 'word another third'
    i=$((i + 1))
done >"$work/in"
limited "$@" run --model "$model" --json <"$work/in" >"$work/json" 2>"$work/err"
judge 'run --json on a full disk' $?

# The picture: what was there stays, nothing else is left behind.
mkdir "$work/pictures"
echo 'what was here before' >"$work/pictures/a.svg"
chmod 640 "$work/pictures/a.svg"
limited "$@" run --model "$model" --attention "$work/pictures/a.svg" word >"$work/out" 2>"$work/err"
judge 'picture on a full disk' $?
checks=$((checks + 3))
[ "$(cat "$work/pictures/a.svg")" = 'what was here before' ] || problem 'the old picture is lost'
[ "$(ls -A "$work/pictures")" = a.svg ] || problem 'a file was left behind'
limited "$@" run --model "$model" --attention "$work/pictures/b.svg" word >"$work/out" 2>"$work/err"
judge 'new picture on a full disk' $?
[ "$(ls -A "$work/pictures")" = a.svg ] || problem 'a part of a picture was left behind'

# With room it is replaced, and keeps its mode; a link stays a link.
checks=$((checks + 3))
ln -s a.svg "$work/pictures/link.svg"
"$@" run --model "$model" --attention "$work/pictures/link.svg" word >"$work/out" 2>"$work/err" ||
    problem 'picture through a link'
tail -n 1 "$work/pictures/a.svg" | grep -q '^</svg>$' || problem 'the picture is not complete'
[ "$(stat -c %a "$work/pictures/a.svg")" = 640 ] || problem 'the mode of the picture changed'
[ -L "$work/pictures/link.svg" ] || problem 'the link was replaced'

printf '%s checks, %s failed\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
