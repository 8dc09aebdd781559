#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures faiss (PyPI: faiss-cpu) with the OpenBLAS that it brings and with isobit: search in
# embeddings, and k-means; prints Markdown.
#
# usage: faiss             faiss of PYTHON=INTERPRETER with its own BLAS and with isobit: search
#
# ISOBIT_BLAS names another libisobit_blas.so.0 than that of the release build.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
name=faiss
. "$root/integrations/common.sh"
python_program faiss "PyPI: faiss-cpu"
