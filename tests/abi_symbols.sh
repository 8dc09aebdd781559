#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The symbols that a shared library exports are those of its list in packaging/debian/*.symbols (the
# form is Debian's: "NAME@VERSION SINCE" below "SONAME PACKAGE ..."). docs/abi.md says what may change.
# Usage: abi_symbols.sh LISTS-DIR LIBRARY...
set -eu
lists=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
for library in "$@"; do
    soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
    cat "$lists"/*.symbols | awk -v soname="$soname" '
        /^[^ *]/ { here = $1 == soname }
        here && /^ / { print $1 }' | LC_ALL=C sort >"$work/listed"
    # GNU readelf: number, value, size, type, bind, visibility, section, name.
    readelf --dyn-syms --wide "$library" | awk '
        $1 ~ /^[0-9]+:$/ && $5 != "LOCAL" && $7 != "UND" {
            sub(/@@/, "@", $8)
            version = $7 == "ABS" ? "@" $8 : "@Base" # a version is a symbol, too
            print $8 ($8 ~ /@/ ? "" : version)
        }' | LC_ALL=C sort >"$work/exported"
    if ! [ -s "$work/listed" ] || ! [ -s "$work/exported" ]; then
        echo "abi_symbols.sh: $library: no list for '$soname', or nothing exported"
        status=1
    fi
    LC_ALL=C comm -23 "$work/listed" "$work/exported" | sed "s/^/$soname: vanished: /" >"$work/report"
    LC_ALL=C comm -13 "$work/listed" "$work/exported" | sed "s/^/$soname: not listed: /" >>"$work/report"
    if [ -s "$work/report" ]; then
        cat "$work/report"
        status=1
    fi
done
exit $status
