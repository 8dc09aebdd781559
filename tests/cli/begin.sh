# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034 # what it sets is for those who source it
#
# The command line as its users meet it: exit codes, one clear line for each error, order and
# streaming of lines, equal hashes on every instruction set. What the scripts here begin with; they
# source it. Usage: SCRIPT SOURCE-DIR COMMAND [ARG...], where COMMAND runs isobit, perhaps through
# an emulator.
set -u

source=$1
shift
model=$source/models/g2p-en
gpt=$source/models/tiny-gpt2
if ! [ -f "$model/model.safetensors" ]; then
    echo "SKIPPED: $model/model.safetensors is not there"
    exit 77
fi
# shellcheck source=tests/command.sh
. "$source/tests/command.sh"

# What stdin will be; with escapes, bytes as \0 and octal digits.
input() { printf '%b' "$1" >"$work/in"; }

lines_are() {
    checks=$((checks + 1))
    [ "$(wc -l <"$work/out")" -eq "$2" ] || problem "$1: $(wc -l <"$work/out") lines, not $2"
}

# says TEXT TITLE: what the last command printed has such a line, blanks squeezed.
says() {
    checks=$((checks + 1))
    tr -s ' ' <"$work/out" | grep -q -x -F -e "$1" || problem "$2: no line '$1'"
}

# Under an emulator or the thread sanitizer much takes long, and says nothing new.
quick=false
if [ $# -eq 1 ] && [ -z "${ISOBIT_EMULATED:-}" ]; then
    quick=true
fi
input ''
