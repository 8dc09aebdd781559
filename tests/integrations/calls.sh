#!/bin/sh
# SPDX-License-Identifier: MIT
#
# calls.sh REPLAY LIBRARY PROGRAM: the lines that ISOBIT_VERBOSE prints of a program's calls of the
# BLAS are calls that integrations/calls can repeat; other lines are an error.
set -eu

replay=$1
library=$2
program=$3
fail() {
    echo "FAILED: $*"
    exit 1
}
lines=$(ISOBIT_VERBOSE=1 "$program" 2>&1 |
    sed -n 's/^iso_verbose,1,exec,\(sgem[mv]\),[^,]*,\([^,]*\),thr.*/\1 \2/p' | sort -u)
for call in "sgemm m1n2k3:nt:lda3:ldb4:ldc5" "sgemm m3n2k1:tn:lda3:ldb2:ldc2:alpha:beta" \
    "sgemv n5k6:n:lda7:incx1:incy-2" "sgemv n5k6:t:lda5:incx-2:incy1:beta" \
    "ssyrk n4k6:lower:n:lda6:ldc4" "ssyrk n4k6:upper:t:lda4:ldc5:beta"; do
    lines="$lines
$call"
done
case $lines in *sgemm*:nt:*sgemm*) ;; *) fail "the program calls no sgemm: $lines" ;; esac
printed=$(printf '%s\n' "$lines" | LD_PRELOAD=$library ISOBIT_VERBOSE=1 "$replay" 1 2>&1)
times=$(printf '%s\n' "$printed" | grep -c '^[0-9.]* [0-9.]*$') || :
[ "$times" -eq "$(printf '%s\n' "$lines" | wc -l)" ] || fail "$times times of these calls: $lines"
# What it calls is what the lines say.
printf '%s\n' "$lines" | while read -r routine shape; do
    case $printed in
    *"exec,$routine,"*",$shape,thr"*) ;;
    *) fail "$routine $shape was not called" ;;
    esac
done
for bad in "sgemm m1n2k3:nt" "sgemm m0n2k3:nt:lda3:ldb4:ldc5" "sger m1" "sgemv" ""; do
    if printf '%s\n' "$bad" | LD_PRELOAD=$library "$replay" 1 >/dev/null 2>&1; then
        fail "'$bad' was taken for a call"
    fi
done
if "$replay" 0 </dev/null >/dev/null 2>&1; then
    fail "0 MiB were taken"
fi
echo "$times calls repeated"
