#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs kernels of one's own on another architecture, emulated, and compares each result with what
# `isobit check --plugin FILE.so --record RECORDED` wrote on this machine (docs/cross-arch.md).
# Sources are those of the plug-in: kernels and iso_check_plugin. They are linked with the harness
# into one static program, so that neither isobit nor any library is needed for the architecture.
#
# Usage: cross.sh RECORDED MACHINE SOURCE.c...
#   MACHINE        aarch64 armhf i386 s390x
#   CFLAGS         of the compiler (default: -O2 -ffp-contract=off, without which compilers fuse
#                  products with sums where the machine can, and the bits are others)
#   PROGRAM        where the program is to stay, for replays (default: nowhere)
#   CHECK_OPTIONS  more options of isobit check, as "--max-fail 20"
# Exit code: that of isobit check; 2: compiler, emulator or source are not usable, and why.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
die() {
    printf 'cross.sh: %s\n' "$*" >&2
    exit 2
}

[ $# -ge 3 ] || die "usage: cross.sh RECORDED MACHINE SOURCE.c..."
recorded=$1 machine=$2
shift 2
package=$machine-linux-gnu
case $machine in
aarch64) prefix=aarch64-linux-gnu emulator=qemu-aarch64 flags='' ;;
armhf) prefix=arm-linux-gnueabihf emulator=qemu-arm flags='' package=$prefix ;;
s390x) prefix=s390x-linux-gnu emulator=qemu-s390x flags='' ;;
# The x87 keeps more bits than a float has.
i386) prefix=i686-linux-gnu emulator=qemu-i386 flags="-msse2 -mfpmath=sse" package=$prefix ;;
*) die "there is no machine '$machine'; known are aarch64 armhf i386 s390x" ;;
esac
cc=$prefix-gcc
[ -f "$recorded" ] || die "there is no file $recorded"
command -v "$cc" >/dev/null 2>&1 ||
    die "there is no $cc; on Debian: apt-get install gcc-$package libc6-dev-$machine-cross"
command -v "$emulator" >/dev/null 2>&1 ||
    die "there is no $emulator; on Debian: apt-get install qemu-user"
header=${XXHASH_INCLUDE:-/usr/include}/xxhash.h
[ -f "$header" ] || die "there is no $header; on Debian: apt-get install libxxhash-dev"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/include" # the only header of /usr/include that another architecture may use
cp "$header" "$work/include"
cat >"$work/main.c" <<'SOURCE'
#include <isobit/check.h>
int main(int argc, char **argv) { return iso_check_main(iso_check_plugin(), argc, argv); }
SOURCE
for source in "$@"; do
    [ -f "$source" ] || die "there is no source $source"
done
program=${PROGRAM:-$work/check}
harness=$(find "$root/check" -path "$root/check/blas" -prune -o -name '*.[cS]' -print)
# shellcheck disable=SC2086 # lists of flags and files
if ! "$cc" -std=gnu11 ${CFLAGS--O2 -ffp-contract=off} $flags -static -D_GNU_SOURCE \
    -D_FILE_OFFSET_BITS=64 -DXXH_INLINE_ALL -I"$work/include" -I"$root/include" -I"$root/check" \
    $harness "$work/main.c" "$@" -lm -o "$program" \
    2>"$work/log"; then
    grep -m 5 -E 'error|undefined|cannot' "$work/log" >&2 || cat "$work/log" >&2
    die "the program could not be built"
fi
# shellcheck disable=SC2086 # options
"$emulator" "$program" --compare "$recorded" ${CHECK_OPTIONS-}
