#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The packages of another architecture, unpacked with what they depend on and run by qemu-user: no apt
# installs them, no maintainer script runs. The tool, the harness with isobit's kernels, the BLAS, a
# plug-in, and recorded files from here to there. SYSROOT is that of build-debs.sh.
# Usage: test-foreign.sh SOURCE-DIR BUILD-DIR ARCHITECTURE SYSROOT
set -eu
source=$1 build=$2 arch=$3 sysroot=$4
eval "$(dpkg-architecture -a"$arch" -s 2>/dev/null)" # DEB_HOST_GNU_TYPE, ...

say() { printf '%s\n' "test-foreign: $*"; }
fail() {
    say "$*"
    exit 1
}
qemu=qemu-$DEB_HOST_GNU_CPU
if ! command -v "$qemu" >/dev/null; then
    say "SKIPPED: $qemu is not installed"
    say "SKIPPED: the packages for $arch were built and inspected, but never run"
    exit 0
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
for package in "$sysroot"/*/; do cp -a "$package." "$root"; done
for deb in "$build/packages/"*"_$arch.deb"; do dpkg-deb -x "$deb" "$root"; done
libraries=$root/usr/lib/$DEB_HOST_MULTIARCH
isobit() { "$qemu" -L "$root" -E LD_LIBRARY_PATH="$libraries:$root/lib/$DEB_HOST_MULTIARCH" "$root/usr/bin/isobit" "$@"; }
# passes TITLE ARG...
passes() {
    title=$1
    shift
    isobit "$@" >"$root/out" 2>&1 || fail "$title: $(tail -n 20 "$root/out")"
}

passes version version
passes info info
passes model run --model "$source/models/g2p-en" attention
passes kernels check --op embed --quick
passes --record check --op softmax --quick --record "$root/kernels.record"
passes --compare check --compare "$root/kernels.record"
passes "--blas" check --blas "$libraries/libisobit_blas.so.0" --quick --threads 2
"$DEB_HOST_GNU_TYPE-gcc" -std=c11 -O2 -ffp-contract=off -shared -fPIC -I"$root/usr/include" \
    -o "$root/plugin.so" "$source/tests/consumers/check/plugin.c" \
    "$source/tests/consumers/check/softmax_scalar.c" -lm
passes --plugin check --plugin "$root/plugin.so" --quick --record "$root/there.record"
passes "--plugin --compare" check --plugin "$root/plugin.so" --compare "$root/there.record"
# A file of this machine's.
"$build/package/$(dpkg --print-architecture)/bin/isobit" check --op softmax --quick \
    --record "$root/here.record" >"$root/out" 2>&1 || fail "--record here: $(tail -n 5 "$root/out")"
passes "--compare with this machine" check --compare "$root/here.record"
grep -q '^machines: equal$' "$root/out" || fail "$(tail -n 5 "$root/out")"
say "$arch: unpacked and run by $qemu: passed; nowhere installed by apt"
