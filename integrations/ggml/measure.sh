#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures llama.cpp with each BLAS, runs ggml's own tests of its BLAS backend; prints Markdown.
#
# usage: ggml [SOURCE]     llama.cpp with each BLAS: a prompt for 120 M random weights, in float32
#
# SOURCE is a checkout of llama.cpp, or the source archive of the Python package llama-cpp-python,
# which pip fetches where none is named. Nothing of it is changed. Builds stay in
# build/integrations/ggml, so a second run only measures. Needs a C++ compiler, cmake and the
# packages libopenblas-pthread-dev and python3-numpy; to compare with: libblas3, libblis4-pthread.
# ISOBIT_BLAS names another libisobit_blas.so.0 than that of the release build.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$(dirname -- "$here")")
work=$root/build/integrations/ggml
source=${1:-}

say() { printf '%s\n' "ggml: $*" >&2; }
skip() {
    say "skipped: $*"
    exit 77
}

# quiet LOG COMMAND...: shows what a command printed only if it fails.
quiet() {
    log=$1
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        say "failed: $*"
        exit 1
    }
}

for tool in cmake c++ cc pkg-config tar; do
    command -v "$tool" >/dev/null 2>&1 || skip "needs $tool"
done
pkg-config --exists openblas || skip "needs the package libopenblas-pthread-dev"
/usr/bin/python3 -c 'import numpy' 2>/dev/null || skip "needs the package python3-numpy"

mkdir -p "$work"
if [ -z "$source" ]; then
    source=$(find "$work" -maxdepth 1 -name 'llama_cpp_python-*.tar.gz' | head -n 1)
    if [ -z "$source" ]; then
        say "fetching the source archive of llama-cpp-python"
        python3 -m pip download --quiet --no-deps --no-binary :all: \
            --dest "$work" llama-cpp-python >"$work/pip.log" 2>&1 || true
        source=$(find "$work" -maxdepth 1 -name 'llama_cpp_python-*.tar.gz' | head -n 1)
        [ -n "$source" ] || skip "llama-cpp-python was not to be had, see $work/pip.log"
    fi
fi
if [ -f "$source" ]; then
    archive=$source
    unpacked=$work/$(basename -- "$archive" .tar.gz)
    [ -d "$unpacked" ] || tar -x -z -f "$archive" -C "$work"
    source=$unpacked
fi
[ ! -d "$source/vendor/llama.cpp" ] || source=$source/vendor/llama.cpp
[ -f "$source/include/llama.h" ] || {
    say "there is no include/llama.h in $source"
    exit 2
}
source=$(CDPATH='' cd -- "$source" && pwd)

# build NAME TARGET OPTION...: only what is measured; found at run time by LD_LIBRARY_PATH.
build() {
    name=$1
    target=$2
    shift 2
    say "building $name"
    quiet "$work/$name.log" cmake -S "$source" -B "$work/$name" -DCMAKE_BUILD_TYPE=Release \
        -DGGML_NATIVE=ON -DCMAKE_SKIP_BUILD_RPATH=ON -DLLAMA_BUILD_COMMON=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_SERVER=OFF "$@"
    quiet "$work/$name.log" cmake --build "$work/$name" -j 2 --target "$target"
}
build with-openblas llama -DGGML_BLAS=ON -DGGML_BLAS_VENDOR=OpenBLAS
build without-blas ggml -DGGML_BLAS=OFF

libraries="-L$work/with-openblas/bin -Wl,-rpath-link,$work/with-openblas/bin"
# shellcheck disable=SC2086 # two words
quiet "$work/prompt.log" cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$source/include" \
    -I"$source/ggml/include" "$here/prompt.c" -o "$work/prompt" $libraries \
    -lllama -lggml -lggml-base
tests=$source/tests/test-backend-ops.cpp
if [ -f "$tests" ] && [ ! -x "$work/test-backend-ops" ]; then
    say "building test-backend-ops"
    # shellcheck disable=SC2086 # two words
    quiet "$work/tests.log" c++ -std=c++17 -O1 -I"$source/ggml/include" -I"$source/ggml/src" \
        -I"$source/common" -I"$source/tests" "$tests" -o "$work/test-backend-ops" $libraries \
        -lggml -lggml-base -lpthread
fi
exec /usr/bin/python3 "$here/measure.py" "$work"
