#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The tests of the Python package. Exits with 77 where Python lacks NumPy or pytest.
#   run.sh PYTHON LIBRARY-FOLDER TOOL    this tree's package on the libraries of a build
#   run.sh PYTHON installed TOOL         the package that PYTHON finds, a wheel's
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
python=$1
ISOBIT_CLI=$3
PYTHONDONTWRITEBYTECODE=1
PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 # what else the machine has is no part of the test
export ISOBIT_CLI PYTHONDONTWRITEBYTECODE PYTEST_DISABLE_PLUGIN_AUTOLOAD
unset ISOBIT_ISA ISOBIT_NUMERICS ISOBIT_LIBRARY PYTHONPATH || true
if ! missing=$("$python" -c 'import numpy, pytest' 2>&1); then
    echo "python SKIPPED: $python: $(printf '%s\n' "$missing" | tail -n 1)"
    exit 77
fi
if [ "$2" = installed ]; then
    set -- "$here"
else
    ISOBIT_LIBRARY=$2
    PYTHONPATH=$here/..
    export ISOBIT_LIBRARY PYTHONPATH
    set -- --ignore="$here/test_wheel.py" "$here"
fi
cd / # not where a folder isobit would be taken for the package
exec "$python" -m pytest -q -rs -p no:cacheprovider "$@"
