#!/bin/sh
# SPDX-License-Identifier: MIT
#
# One plug-in on this x86-64 machine, on older CPUs and on other architectures, emulated: are the
# results those of this machine? For a job in CI (docs/cross-arch.md).
#
# Usage: matrix.sh PLUGIN.so SOURCE.c...     the sources of the plug-in for other architectures
#   RECORD     file to record into, or of another machine if it is there (default: recorded)
#   CPUS       for qemu-x86_64 (default: Nehalem Haswell)
#   MACHINES   for cross.sh (default: aarch64 armhf i386 s390x)
#   ISOBIT     the command (default: isobit)
#   CHECK_OPTIONS  of the recording (default: --quick, which emulators do in minutes)
# Exit code: 1 if results differ that are promised to be equal, or are wrong; 2: not usable.
set -eu

folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ $# -ge 2 ] || {
    echo "usage: matrix.sh PLUGIN.so SOURCE.c..." >&2
    exit 2
}
plugin=$1
shift
isobit=$(command -v "${ISOBIT:-isobit}") || {
    echo "matrix.sh: there is no command ${ISOBIT:-isobit}" >&2
    exit 2
}
record=${RECORD:-recorded}
options=${CHECK_OPTIONS---quick}
unset CHECK_OPTIONS
worst=0

# one NAME COMMAND...: its last lines; all of them where it fails.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
one() {
    name=$1 code=0
    shift
    "$@" >"$log" 2>&1 || code=$?
    if [ "$code" -eq 0 ]; then
        printf '%-8s %s\n' "$name" "$(tail -n 1 "$log")"
    else
        printf '%-8s exit code %s\n' "$name" "$code"
        cat "$log"
        [ "$code" -le "$worst" ] || worst=$code
    fi
}

if [ -e "$record" ]; then
    one here "$isobit" check --plugin "$plugin" --compare "$record"
else
    # shellcheck disable=SC2086 # a list of options
    one here "$isobit" check --plugin "$plugin" $options --record "$record"
fi
for cpu in ${CPUS-Nehalem Haswell}; do
    one "$cpu" qemu-x86_64 -cpu "$cpu" "$isobit" check --plugin "$plugin" --compare "$record"
done
for machine in ${MACHINES-aarch64 armhf i386 s390x}; do
    one "$machine" sh "$folder/cross.sh" "$record" "$machine" "$@"
done
exit "$worst"
