#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The packages of this machine's architecture in a bare Debian 12: installed by apt with what they
# depend on, used as a newcomer would, and removed. The bare root is made once, by mmdebstrap, and
# kept in BUILD-DIR/package. Needs root, and the network. Where no root can be made this is skipped.
# Usage: test-install.sh SOURCE-DIR BUILD-DIR
set -eu
source=$1 build=$2
arch=$(dpkg --print-architecture)
began=$(date +%s)

say() { printf '%s\n' "test-install: $*"; }
skip() {
    say "SKIPPED: $*"
    say "SKIPPED: the packages were not installed anywhere"
    exit 0
}

[ "$(id -u)" -eq 0 ] || skip "making a root needs root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
unshare --mount true 2>/dev/null || skip "no mounts are allowed here"

# What a user brings: a compiler, a program that uses a BLAS, and NumPy.
archive=$build/package/root-$arch.tar
if [ ! -s "$archive" ]; then
    say "making a bare Debian 12 (once)"
    mkdir -p "$build/package"
    rm -f "$archive.new"
    mmdebstrap --quiet --format=tar --variant=apt --architectures="$arch" \
        --include=gcc,libc6-dev,pkgconf,libblas-dev,python3-numpy \
        bookworm "$archive.new" >"$build/package/mmdebstrap.log" 2>&1 ||
        skip "mmdebstrap failed, see $build/package/mmdebstrap.log"
    mv "$archive.new" "$archive"
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tar -xf "$archive" -C "$root" --exclude='./dev/*'
mkdir "$root/here"
cp "$build/packages/"*"_$arch.deb" "$source/packaging/in-root.sh" "$root/here"
cp "$source/tests/consumers/readme.c" "$source/tests/consumers/model.c" \
    "$source/tests/consumers/blas.c" "$source/tests/consumers/check.c" "$source/tests/consumers/readme_run.sh" "$root/here"
cp -R "$source/models/g2p-en" "$root/here/model"
cp -R "$source/tests/consumers/check" "$root/here/plugin"
cp /etc/resolv.conf "$root/etc/resolv.conf"

# A mount namespace of its own: nothing stays mounted.
# shellcheck disable=SC2016 # the inner shell expands it
unshare --mount sh -eu -c '
    mkdir -p "$1/dev" "$1/proc"
    mount --rbind /dev "$1/dev"
    mount -t proc proc "$1/proc"
    exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 sh -eu /here/in-root.sh
' sh "$root"
say "passed in $(($(date +%s) - began)) s"
