#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures the products that any program calls a BLAS for, one by one, with each BLAS: runs
# COMMAND with isobit, notes its calls, and times each of them; prints Markdown.
#
# usage: calls COMMAND...  the products of any program, one by one, with each BLAS
#
# Needs the packages python3-numpy, and to compare with: libblas3, libopenblas0-pthread,
# libblis4-pthread. ISOBIT_BLAS names another libisobit_blas.so.0 than that of the release build;
# THREADS, how many threads (1).
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
name=calls
. "$root/integrations/common.sh"
[ $# -gt 0 ] || die "usage: integrations/measure calls COMMAND..."
begin
compile -O2 "-I$root/include" -o "$work/replay" "$here/replay.c" -ldl
exec /usr/bin/python3 "$here/measure.py" "$work/replay" "$@"
