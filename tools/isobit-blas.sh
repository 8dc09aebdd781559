#!/bin/sh
# SPDX-License-Identifier: MIT
#
# isobit-blas COMMAND [ARGUMENT...]: runs a command with libisobit_blas in front of its BLAS.
# CMake writes the version in.
set -u

usage='usage: isobit-blas COMMAND [ARGUMENT...]'
soname=libisobit_blas.so.0

fail() { # STATUS MESSAGE
    printf '%s\n' "isobit-blas: $2" >&2
    exit "$1"
}

case ${1-} in
--help | -h)
    cat <<END
$usage

Runs COMMAND with isobit's single-precision matrix and vector routines (sgemm, sgemv, ...) in front
of those of the BLAS that it is linked with. All else stays with that BLAS.

environment:
  ISOBIT_ISA          the instruction set: scalar, avx2, avx512 or neon; same bits with each
  ISOBIT_NUM_THREADS  how many threads large calls use; else OMP_NUM_THREADS; else all
  LD_PRELOAD          kept, after the library

  --help, --version   this text; the version
END
    exit 0
    ;;
--version)
    echo 'isobit-blas @PROJECT_VERSION@'
    exit 0
    ;;
--) shift ;;
-*) fail 2 "there is no option '$1'; $usage" ;;
esac
[ $# -gt 0 ] || fail 2 "no command is given; $usage"

# The library of the same prefix, wherever that is.
case $0 in
*/*) self=$0 ;;
*) self=$(command -v -- "$0") || fail 1 "cannot find itself: $0" ;;
esac
self=$(readlink -f -- "$self") || fail 1 "cannot find itself: $0"
prefix=${self%/*/*}
library=
for file in "$prefix/lib/$soname" "$prefix/lib64/$soname" "$prefix"/lib/*/"$soname"; do
    if [ -e "$file" ]; then
        library=$file
        break
    fi
done
[ -n "$library" ] || fail 1 "there is no $soname below $prefix/lib"
case $library in
/usr/lib/* | /usr/lib64/*) library=$soname ;; # the loader picks that of the program's architecture
*[[:space:]:]*) fail 1 "LD_PRELOAD cannot hold white space or colons: $library" ;;
esac

case $1 in
*/*) [ -e "$1" ] || fail 127 "there is no command '$1'" ;;
*) command -v -- "$1" >/dev/null || fail 127 "there is no command '$1'" ;;
esac
LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}
export LD_PRELOAD
exec "$@"
