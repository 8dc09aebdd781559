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
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
name=torch
. "$root/integrations/common.sh"
python_program torch "of Debian: the package python3-torch"
