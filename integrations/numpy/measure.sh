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
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
name=numpy
. "$root/integrations/common.sh"
python_program numpy "of Debian: the package python3-numpy"
