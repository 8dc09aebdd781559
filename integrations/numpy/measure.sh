#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures NumPy of Debian (python3-numpy) with each BLAS, or with PYTHON=INTERPRETER the NumPy that is
# installed there, with the BLAS that it brings; prints Markdown.
#
# usage: numpy             NumPy of Debian with each BLAS: products in shapes of Transformers
#
# Needs the packages python3-numpy, and to compare with: libblas3, libopenblas0-pthread,
# libblis4-pthread. ISOBIT_BLAS names another libisobit_blas.so.0 than that of the release build.
set -eu
folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "numpy: skipped: needs NumPy for $python (of Debian: the package python3-numpy)" >&2
    exit 77
fi
exec "$python" "$folder/measure.py"
