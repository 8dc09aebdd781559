#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check/cross.sh and matrix.sh (docs/cross-arch.md): sums recorded here have the same bits on an
# emulated Arm, and others once the compiler fuses products with sums; what they cannot use.
# Usage: test_cross.sh SOURCE-DIR PLUGIN.so PLUGIN.c TEST_KERNELS
set -u

check=$1/check plugin=$2 source=$3 kernels=$4
for command in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $command >/dev/null || {
        echo "SKIPPED: there is no $command"
        exit 77
    }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# exits CODE WORDS TITLE COMMAND...
exits() {
    code=$1 words=$2 title=$3
    shift 3
    "$@" >"$work/out" 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -q -- "$words" "$work/out"; then
        failures=$((failures + 1))
        printf 'FAILED: %s: exit code %s instead of %s, or not "%s"\n' "$title" "$got" "$code" "$words"
        tail -n 20 "$work/out"
    fi
}

# The command `isobit` that matrix.sh calls, with fewer cases than --quick has.
printf '#!/bin/sh\nshift\nexec "%s" "$@"\n' "$kernels" >"$work/isobit"
chmod +x "$work/isobit"
export ISOBIT="$work/isobit" CHECK_OPTIONS="--quick --part 1/8" RECORD="$work/recorded" CPUS=''

export CFLAGS="-O1 -ffp-contract=off"
exits 0 '^aarch64  machines: equal$' "the same code" \
    env MACHINES=aarch64 sh "$check/matrix.sh" "$plugin" "$source"
unset CHECK_OPTIONS
export CFLAGS="-O1 -fexpensive-optimizations"
exits 1 '^DIFFERS gemv plain: other bits than in the file, within the bound' "fused products" \
    env MACHINES=aarch64 sh "$check/matrix.sh" "$plugin" "$source"
grep -q '^here .*machines: equal$' "$work/out" || exits 0 equal "the recorded file again" cat "$work/out"
grep -q '^aarch64  exit code 1$' "$work/out" || exits 0 'code 1' "the line of a machine" cat "$work/out"

exits 2 "no machine 'vax'" "unknown machine" sh "$check/cross.sh" "$RECORD" vax "$source"
exits 2 'no file' "no file" sh "$check/cross.sh" "$work/none" aarch64 "$source"
exits 2 'no source' "no source" sh "$check/cross.sh" "$RECORD" aarch64 "$work/none.c"
exits 2 'usage' "no source at all" sh "$check/cross.sh" "$RECORD" aarch64
exits 2 'usage' "nothing" sh "$check/matrix.sh"
exits 2 'no command' "no isobit" env ISOBIT="$work/none" sh "$check/matrix.sh" "$plugin" "$source"
exits 2 'apt-get install libxxhash-dev' "no header" \
    env XXHASH_INCLUDE="$work" sh "$check/cross.sh" "$RECORD" aarch64 "$source"

[ "$failures" -eq 0 ] && echo "other architectures: as promised"
exit "$((failures > 0))"
