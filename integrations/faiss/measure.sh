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
folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import faiss' 2>/dev/null; then
    echo "faiss: skipped: needs faiss for $python (PyPI: faiss-cpu); PYTHON names another Python" >&2
    exit 77
fi
PYTHON=$python exec "$python" "$folder/measure.py"
