#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: run.sh PYTHON3 FILE [ARG...]
# One file of tests of isobit-perf, by pytest.
set -eu

python=$1
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
for module in scipy pytest; do
    "$python" -c "import $module" 2>/dev/null || {
        printf '%s\n' "SKIPPED: needs $module (apt install python3-$module)"
        exit 77
    }
done
PYTHONDONTWRITEBYTECODE=1
# Debian has no Apache Otava; ./run unpacks it there.
PYTHONPATH=$here/../../tools/perf:$here${ISOBIT_BUILD:+:$ISOBIT_BUILD/otava}
export PYTHONDONTWRITEBYTECODE PYTHONPATH
exec "$python" -m pytest -q -p no:cacheprovider "$@"
