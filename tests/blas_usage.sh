#!/bin/sh
# SPDX-License-Identifier: MIT
#
# isobit check --blas: what is no BLAS, bad options and bad replay lines end with 2 and one line;
# JSON, JUnit and Markdown are well-formed and say what the table says.
# usage: blas_usage.sh LIBRARY OTHER-LIBRARY CHECK-COMMAND...
lib=$1 other=$2
shift 2
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL $1"
    cat "$work/out" "$work/err"
    failed=$((failed + 1))
}

# refused WORDS ARGUMENTS...: exit code 2, one line on stderr with these words, nothing on stdout
refused() {
    words=$1
    shift
    "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code = 2 ] || fail "exit code $code instead of 2: $*"
    if [ "$(wc -l <"$work/err")" != 1 ] || [ -s "$work/out" ]; then fail "not one line: $*"; fi
    grep -F -e "$words" "$work/err" >/dev/null || fail "no '$words': $*"
}

echo "int main(void) {}" >"$work/text"
mkdir "$work/folder"
: >"$work/empty"
refused 'cannot open' "$@" --blas /nonexistent/libblas.so
refused 'file too short' "$@" --blas "$work/text"
refused 'file too short' "$@" --blas "$work/empty"
refused 'directory' "$@" --blas "$work/folder"
refused 'has none of the BLAS routines' "$@" --blas "$other"
refused 'unknown option, or without its value: --blas' "$@" --blas
refused 'unknown option, or without its value: --frobnicate' "$@" --blas "$lib" --frobnicate
refused 'unknown option, or without its value: --threads' "$@" --blas "$lib" --threads 17
refused 'unknown option, or without its value: --seconds' "$@" --blas "$lib" --seconds 0
refused 'unknown option, or without its value: --op' "$@" --blas "$lib" --op
refused 'No such file' "$@" --blas "$lib" --op sdot --junit /nonexistent/file
refused 'Is a directory' "$@" --blas "$lib" --op sdot --markdown "$work/folder"
refused 'unknown option, or without its value: --junit' "$@" --blas "$lib" --junit
refused 'there is no routine dgemm' "$@" --blas "$lib" --op dgemm
while IFS='|' read -r word line; do
    refused "cannot replay $word" "$@" --blas "$lib" --replay "$line"
done <<'END'
an empty line|
dgemm|dgemm m=1
m=-1|sgemm m=-1
m=1e3|sgemm m=1e3
m=99999999999|sgemm m=99999999999
q=1|sgemm q=1
m|sgemm m
incx=1|sgemm incx=1
incx=0|sdot incx=0
trans=N|sgemm trans=N
trans=NX|sgemm trans=NX
trans=NTN|sgemm trans=NTN
uplo=X|ssyrk uplo=X
check=all|sgemm check=all
api=pascal|sgemm api=pascal
fill=none|sgemm fill=none
alpha=|sgemm alpha=
bad=7|sgemm bad=7
bad=1|sgemm api=fortran bad=1
offset=64|sgemm offset=64
seed=x|sgemm seed=x
api of another routine|sdot api=cblas-row
api of another routine|sgemv api=dnnl
sizes that are too large|sgemm m=4096 n=4096 k=1
END
refused 'does not have what is to be replayed' "$@" --blas "$lib" \
    --replay 'sgemm api=dnnl m=1 n=1 k=1'

# Well-formed, with a finding in it that wants escaping.
export BROKEN=wrong-number
"$@" --blas "$lib" --quick --no-bits --op sgemm --json >"$work/json" 2>"$work/err"
code=$?
[ $code = 1 ] || fail "exit code $code instead of 1: --json"
[ ! -s "$work/err" ] || fail "stderr: --json"
"$@" --blas "$lib" --quick --no-bits --op sgemm --junit "$work/junit" --markdown "$work/markdown" \
    >"$work/table" 2>"$work/err"
code=$?
[ $code = 1 ] || fail "exit code $code instead of 1: --junit"
[ ! -s "$work/err" ] || fail "stderr: --junit"
/usr/bin/python3 - "$work" >"$work/out" 2>&1 <<'END' || fail "formats"
import json
import sys
import xml.etree.ElementTree as tree

work: str = sys.argv[1]
with open(f"{work}/json", encoding="utf-8") as file:
    results = json.load(file)["results"]
with open(f"{work}/table", encoding="utf-8") as file:
    lines = [line for line in file if line.startswith("sgemm ")]
with open(f"{work}/markdown", encoding="utf-8") as file:
    markdown = file.read()
cases = list(tree.parse(f"{work}/junit").getroot().iter("testcase"))
assert len(results) == len(lines) == len(cases) > 10, (len(results), len(lines), len(cases))
bad = [r for r in results if r["result"] == "FAIL"]
assert [r["property"] for r in bad] == ["bad arguments"], bad
assert "--replay 'sgemm check=bad" in bad[0]["replay"], bad
failures = [c for c in cases if c.find("failure") is not None]
assert [c.get("name") for c in failures] == ["bad arguments"]
assert failures[0].find("failure").text == bad[0]["replay"]
assert bad[0]["replay"] in markdown and "| bad arguments | **no** |" in markdown
END
unset BROKEN
"$@" --blas "$lib" --op sdot --quick --no-bits >"$work/out" 2>&1 || fail "a correct one"
grep bits: "$work/out" && fail "--no-bits has bits"
if [ -e /dev/full ]; then
    "$@" --blas "$lib" --op sdot --quick --no-bits >/dev/full 2>"$work/err"
    code=$?
    [ $code = 2 ] || fail "exit code $code instead of 2: a full disk"
    "$@" --blas "$lib" --op sdot --quick --no-bits --junit /dev/full >"$work/out" 2>"$work/err"
    code=$?
    [ $code = 2 ] || fail "exit code $code instead of 2: a full disk for --junit"
fi
"$@" --blas "$lib" --help | grep 'usage: isobit check --blas' >/dev/null || fail "--help"

echo "$failed failures"
[ $failed = 0 ]
