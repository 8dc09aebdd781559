#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The C example of README.md is tests/consumers/readme.c, which is compiled and run.
# Usage: readme.sh SOURCE-DIR
set -eu
shown=$(mktemp)
trap 'rm -f "$shown"' EXIT
# shellcheck disable=SC2016 # the back quotes are Markdown
sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$1/README.md" >"$shown"
# The file begins with its SPDX line, which the page does not need.
tail -n +2 "$1/tests/consumers/readme.c" | diff -u "$shown" -
