#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The installed library, as a user of pkg-config meets it: the example of README.md compiled
# against the shared and against the static library. Usage: installed.sh SOURCE-DIR BUILD-DIR CC
set -eu
source=$1 build=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >"$work/log" 2>&1 || {
    tail -n 5 "$work/log"
    exit 1
}
# The prefix of the .pc files is the one of the configuration.
libraries=$(dirname "$(find "$work/usr" -name 'libisobit.a')")
export PKG_CONFIG_PATH="$libraries/pkgconfig"
flags() { pkg-config "--define-variable=prefix=$work/usr" "$@"; }

# shellcheck disable=SC2046 # flags are words
"$cc" -std=c11 -Wall -Wextra -Werror -o "$work/shared" "$source/tests/consumers/readme.c" \
    $(flags --cflags --libs isobit)
# shellcheck disable=SC2046
"$cc" -std=c11 -o "$work/static" "$source/tests/consumers/readme.c" $(flags --cflags isobit) \
    "$libraries/libisobit.a" $(flags --static --libs isobit | sed 's/-lisobit\b//')
LD_LIBRARY_PATH=$libraries "$work/shared" >"$work/shared.out"
"$work/static" >"$work/static.out"
grep -q '^scalar *0x' "$work/shared.out"
cmp "$work/shared.out" "$work/static.out"
if [ -x "$work/usr/bin/isobit" ]; then
    "$work/usr/bin/isobit" version
fi
