#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The gate of docs/perf.md in a project of its own: a commit that makes a function take three times
# as long is found and named, one that changes a comment is not.
# usage: perf.sh SOURCE-FOLDER PYTHON3
set -eu

source=$1
python=$2
for module in scipy numpy; do
    "$python" -c "import $module" 2>/dev/null || {
        echo "SKIPPED: needs $module (apt install python3-$module)"
        exit 77
    }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
printf '#!/bin/sh\nISOBIT_PYTHON=%s exec %s/tools/perf/isobit-perf "$@"\n' "$python" "$source" \
    >"$work/bin/isobit-perf"
chmod +x "$work/bin/isobit-perf"
PATH=$work/bin:$PATH
CMAKE_ARGS=-DSHIM=$source/bench
export PATH CMAKE_ARGS

cp -r "$source/tests/consumers/perf" "$work/project"
cd "$work/project"
commit() {
    git add -A
    git -c user.name=test -c user.email=test@example.org commit -q -m "$1"
}
git init -q
commit 'totals'

gate() { # WANTED-STATUS
    code=0
    sh gate.sh HEAD~1 --quiet --first 8 --processes 12 >"$work/out" 2>&1 || code=$?
    if [ "$code" -ne "$1" ]; then
        echo "gate.sh: exit status $code, not $1:"
        cat "$work/out"
        exit 1
    fi
}

echo '/* The end. */' >>totals.c
commit 'totals: a comment'
gate 0

sed -i 's/^#define ROUNDS 1$/#define ROUNDS 3/' totals.c
commit 'totals: squares in three rounds'
gate 1
if ! grep -q 'total_squares/4096.*REGRESSION' "$work/out" ||
    grep -q 'total/4096.*REGRESSION' "$work/out"; then
    echo 'not total_squares alone is named:'
    cat "$work/out"
    exit 1
fi
grep -q 'REGRESSION' perf.md
[ -z "$(git worktree list | sed 1d)" ]
