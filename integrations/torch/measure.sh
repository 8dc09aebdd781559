#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures PyTorch of Debian (python3-torch) with each BLAS, or with PYTHON=INTERPRETER the PyTorch that is
# installed there, with the BLAS that it brings; prints Markdown.
#
# usage: torch             PyTorch of Debian with each BLAS: nn.Transformer, training step
#
# Needs the packages python3-torch, and to compare with: libblas3, libopenblas0-pthread,
# libblis4-pthread. ISOBIT_BLAS names another libisobit_blas.so.0 than that of the release build.
set -eu
folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "torch: skipped: needs PyTorch for $python (of Debian: the package python3-torch)" >&2
    exit 77
fi
exec "$python" "$folder/measure.py"
