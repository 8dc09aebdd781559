#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures PyTorch of Debian (python3-torch) with each BLAS; prints Markdown.
#
# usage: torch             PyTorch of Debian with each BLAS: nn.Transformer, training step
#
# Needs the packages python3-torch, and to compare with: libblas3, libopenblas0-pthread,
# libblis4-pthread. ISOBIT_BLAS names another libisobit_blas.so.0 than that of the release build.
set -eu
folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "torch: skipped: needs the package python3-torch" >&2
    exit 77
fi
exec /usr/bin/python3 "$folder/measure.py"
