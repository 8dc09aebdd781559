#!/bin/sh
# SPDX-License-Identifier: MIT
#
# measure.sh ROOT: what `integrations/measure` says when it cannot begin.
set -eu

measure=$1/integrations/measure
fails() { # STATUS WORD ARG...
    status=$1
    word=$2
    shift 2
    got=0
    printed=$("$measure" "$@" 2>&1) || got=$?
    case $got:$printed in
    "$status:"*"$word"*) return ;;
    esac
    echo "FAILED: measure $*: exit code $got, not $status, or no word of '$word': $printed"
    exit 1
}
fails 2 "llmc FOLDER"
fails 2 "llama2c FOLDER" nothing
fails 2 usage ..
fails 1 "calls COMMAND" calls
for name in llmc llama2c; do
    fails 1 "$name FOLDER" "$name"
    fails 1 "in /nowhere" "$name" /nowhere
done
echo "usage and missing folders are told"
