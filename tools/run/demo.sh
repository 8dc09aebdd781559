# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # others set some variables
#
# A part of run: the commands demo and drop-in.

demo() {
    # shellcheck disable=SC2086 # lists of names
    need $packages_build
    [ -f "$model/model.safetensors" ] || die "$model/model.safetensors is not there"
    say "building"
    configure_and_build release --target isobit_cli || exit 1
    echo
    "$build/bin/isobit" info | sed -n '/^CPU/p;/^instruction/,/^threads/{/^threads/d;p;}'
    echo
    set -- demo --model "$model" --attention attention.svg
    # Not older than the rest: else its hash could differ for a reason that is no defect.
    if [ "$machine" = x86_64 ] && [ -x "$build/aarch64/bin/isobit" ] &&
        command -v qemu-aarch64 >/dev/null 2>&1 &&
        configure_and_build aarch64 --target isobit_cli; then
        libraries=$build/sysroot-arm64/usr/lib/aarch64-linux-gnu:/usr/aarch64-linux-gnu/lib
        set -- "$@" --also "qemu-aarch64 -cpu cortex-a72 -L /usr/aarch64-linux-gnu -E \
LD_LIBRARY_PATH=$libraries $build/aarch64/bin/isobit"
    fi
    "$build/bin/isobit" "$@" || exit 1
    if [ -f "$tiny/model.safetensors" ]; then demo_definitions; fi
}

# Definitions of words that no dictionary has: drawn, but with one seed, so everywhere the same.
demo_definitions() {
    sets=$("$build/bin/isobit" info | awk '/^  [a-z0-9]+ +(chosen|available)$/ { print $1 }')
    set -- --model "$tiny" --sample --seed 4 -- 'isobit:' 'glimmerfish:' 'cloud soup:' 'rainology:' 'unwinterly:'
    printf '\n  %s\n\n' "What might these be? $tiny draws definitions, with seed 4:"
    "$build/bin/isobit" run --stream "$@" | sed -u 's/^/  /'
    printf '\n  %-42s  %s\n' 'instruction set' 'hash (XXH3) of all tokens and their probabilities'
    hashes=
    for isa in $sets; do
        hash=$("$build/bin/isobit" run --digest --isa "$isa" "$@") || exit 1
        printf '  %-42s  %s\n' "$isa" "$hash"
        hashes="$hashes $hash"
    done
    hash=$("$build/bin/isobit" run --digest --threads 1 "$@") || exit 1
    printf '  %-42s  %s\n\n' '1 thread' "$hash"
    for other in $hashes; do
        [ "$other" = "$hash" ] || die "the hashes differ: please report this with the output of isobit info"
    done
    printf '  %s\n' 'All of these hashes are equal, too.'
}

# Debian's Python and NumPy, not a line of them changed: first with the BLAS that it has, then with isobit's.
drop_in() {
    # shellcheck disable=SC2086 # lists of names
    need $packages_build python3-numpy
    say "building"
    configure_and_build release --target isobit_blas_shared --target isobit_cli || exit 1
    sets=$("$build/bin/isobit" info | awk '/^  [a-z0-9]+ +(chosen|available)$/ { print $1 }')
    demo=integrations/numpy/demo.py
    unset ISOBIT_ISA
    /usr/bin/python3 $demo --head
    /usr/bin/python3 $demo "NumPy as it is"
    hashes=
    for isa in $sets; do
        line=$(ISOBIT_ISA=$isa "$build/bin/isobit-blas" /usr/bin/python3 $demo "isobit-blas, $isa") || exit 1
        printf '%s\n' "$line"
        hashes="$hashes ${line##* }"
    done
    line=$(ISOBIT_NUM_THREADS=1 "$build/bin/isobit-blas" /usr/bin/python3 $demo "isobit-blas, 1 thread") || exit 1
    printf '%s\n' "$line"
    for hash in $hashes ${line##* }; do
        [ "$hash" = "${line##* }" ] || die "the hashes differ"
    done
    say "all results with isobit have the same bits"
}
