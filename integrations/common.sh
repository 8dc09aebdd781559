# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables of the scripts that source this
#
# What the scripts that measure programs have in common. They set `root` (this repository) and
# `name`, and source this file. CC and OBJCOPY may be set; results go to build/integrations/NAME.

CC=${CC:-gcc}
OBJCOPY=${OBJCOPY:-objcopy}
work=$root/build/integrations/$name

say() { printf '%s\n' "measure: $*" >&2; }
die() {
    say "$*"
    exit 1
}

# begin: an empty folder for the results.
begin() {
    rm -rf "$work"
    mkdir -p "$work"
}

# program FOLDER FILE: the path of a file of the user's checkout.
program() {
    [ -n "$1" ] || die "usage: integrations/measure $name FOLDER (a checkout of the program)"
    [ -f "$1/$2" ] || die "there is no $2 in $1"
    (CDPATH='' cd -- "$1" && printf '%s/%s\n' "$(pwd)" "$2")
}

# library: builds the static library, and sets isobit_flags and isobit_libs.
library() {
    say "building the library"
    mkdir -p "$root/build"
    log=$root/build/integrations/build.log
    if ! [ -f "$root/build/CMakeCache.txt" ]; then
        (cd "$root" && cmake --preset release) >"$log" 2>&1 || die "cmake failed, see $log"
    fi
    cmake --build "$root/build" -j 2 --target isobit >"$log" 2>&1 ||
        die "the library was not built, see $log"
    isobit_flags=-I$root/include
    isobit_libs="$root/build/lib/libisobit.a $(pkg-config --libs sleef)"
    if pkg-config --exists libcpuid; then
        isobit_libs="$isobit_libs $(pkg-config --libs libcpuid)"
    fi
    isobit_libs="$isobit_libs -lpthread -lm"
}

# python_program MODULE PACKAGE: measure.py, with the Python that PYTHON names or Debian's, if it has
# the module.
python_program() {
    python=${PYTHON:-/usr/bin/python3}
    if ! "$python" -c "import $1" 2>/dev/null; then
        echo "$name: skipped: needs $1 for $python ($2)" >&2
        exit 77
    fi
    exec "$python" "$here/measure.py"
}

# compile ARG...: a line of the compiler, quiet unless it fails.
compile() {
    "$CC" "$@" >"$work/cc.log" 2>&1 || {
        head -n 20 "$work/cc.log" >&2
        die "failed: $CC $*"
    }
}

# drive ARG...: a line of the compiler with our driver, which includes the program's source.
drive() { compile -w -D_GNU_SOURCE -DTESTING "-DPROGRAM=\"$source\"" "$here/driver.c" "$@"; }

# weaken OBJECT FUNCTION...: makes functions of an object weak, and looks whether they are.
weaken() {
    object=$1
    shift
    for function in "$@"; do
        "$OBJCOPY" --weaken-symbol="$function" "$object" || die "objcopy failed on $object"
        nm "$object" | grep -q " W $function\$" || die "$object does not define $function"
    done
}

# called FILE FUNCTION...: the shim's line of counts (ISOBIT_COUNT=1) in FILE names each function,
# and with more than 0 calls.
called() {
    counts=$1
    shift
    for function in "$@"; do
        grep -q "^isobit_.* $function [1-9]" "$counts" ||
            die "the shim's $function was not called: is the program's own one put inline?"
    done
}

# value KEY FILE: what follows KEY on its line.
value() { sed -n "s/^$1 //p" "$2" | head -n 1; }

# below A B: A is a number, and not above B.
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a ~ /^[-+.e0-9]+$/ && a + 0 <= b + 0) }'; }

# ratio A B: A / B with two digits behind the point.
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print "?" }'; }

# equal_bits COMMAND...: runs it on each instruction set that the machine has, with one thread and
# with two, and compares what it prints behind "hash". Prints what was equal.
equal_bits() {
    first=
    sets=
    for isa in scalar avx2 avx512 neon; do
        runs=yes
        for threads in 1 2; do
            if ! ISOBIT_ISA=$isa ISOBIT_NUM_THREADS=$threads "$@" >"$work/bits.txt" \
                2>"$work/bits.err"; then
                grep -q 'ISOBIT_ISA names no' "$work/bits.err" || {
                    cat "$work/bits.err" >&2
                    die "failed with $isa and $threads threads: $*"
                }
                runs=no
                break
            fi
            hash=$(value hash "$work/bits.txt")
            [ -n "$hash" ] || die "no hash was printed: $*"
            [ -n "$first" ] || first=$hash
            [ "$hash" = "$first" ] || die "other bits with $isa and $threads threads: $*"
        done
        [ "$runs" = no ] || sets="$sets, $isa"
    done
    printf 'yes: %s; 1 and 2 threads' "${sets#, }"
}

# row PROGRAM LINES AGAINST-DEFAULT AGAINST-BEST DIFFERENCE BITS: the table, with its head.
row() {
    echo "| program | lines changed | speed, its default build = 1 | its best build = 1 |" \
        "largest difference | equal bits |"
    echo "|---|---|---|---|---|---|"
    echo "| $1 | $2 | $3 | $4 | $5 | $6 |"
}
