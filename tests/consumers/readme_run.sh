#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the example of README.md: every instruction set prints the same numbers.
# Usage: readme_run.sh COMMAND [ARG...]
set -eu
output=$("$@")
printf '%s\n' "$output"
[ "$(printf '%s\n' "$output" | sed 's/^[^ ]* *//' | sort -u | wc -l)" -eq 1 ]
printf '%s\n' "$output" | grep -q '^scalar *0x'
