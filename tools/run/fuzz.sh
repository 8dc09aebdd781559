# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # others set some variables
#
# A part of run: the commands fuzz and mutate.

fuzz_targets="safetensors bin gguf config model tokenizer spm family pipeline wordpiece bpe ops record"

# What a target finds lies in build/fuzz/found; what it learnt, in build/fuzz/corpus, stays.
fuzz() {
    seconds=${1:-600}
    case $seconds in
    '' | *[!0-9]* | 0*)
        printf '%s\n' "run: fuzz takes a number of seconds, not '$seconds'" >&2
        exit 2
        ;;
    esac
    # shellcheck disable=SC2086 # lists of names
    need $packages_build $packages_fuzz
    dir=$build/fuzz
    mkdir -p "$dir/found"
    say "building with clang, libFuzzer, address and undefined-behaviour sanitizers"
    if ! { cmake -S . -B "$dir" -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
        -DCMAKE_BUILD_TYPE=Release -DISOBIT_FUZZ=ON -DISOBIT_BENCH=OFF -DISOBIT_TOOLS=OFF &&
        cmake --build "$dir" -j "$jobs" --target isobit_fuzz; } >"$dir/build.log" 2>&1; then
        tail -n 20 "$dir/build.log" >&2
        die "the build failed, see $dir/build.log"
    fi
    "$dir/bin/tests/fuzz_seeds" "$dir/seeds"
    # Freed memory is kept for 2 MB, more than any input frees: 256 MB would push all else out of the
    # caches. Short inputs hold all that these readers know.
    export ASAN_OPTIONS="quarantine_size_mb=2${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
    for name in $fuzz_targets; do
        case $name in
        bin | bpe | model | wordpiece) longest=1024 ;;
        pipeline) longest=2048 ;;
        gguf) longest=3072 ;;
        *) longest=65536 ;;
        esac
        mkdir -p "$dir/corpus/$name"
        log=$dir/$name.log
        if ! "$dir/bin/tests/fuzz_$name" -max_total_time="$seconds" -max_len="$longest" \
            -rss_limit_mb=1024 -timeout=1 -print_final_stats=1 -dict=tests/fuzz/fuzz.dict \
            -artifact_prefix="$root/$dir/found/$name-" "$dir/corpus/$name" \
            "$dir/seeds/fuzz_$name" >"$log" 2>&1; then
            grep -E 'ERROR|SUMMARY|runtime error|does not hold' "$log" | head -n 5 >&2 || true
            found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
            die "fuzz_$name failed; the input: ${found:-none}, the whole log: $log"
        fi
        say "fuzz_$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions," \
            "no finding"
    done
}

# Copies, builds and results lie in build/mutate; a second run goes on where the first one stopped.
mutate() {
    # shellcheck disable=SC2086 # a list of names
    need $packages_build git python3 qemu-user
    case ${1:-} in
    constants)
        shift
        configure_and_build release --target constants_probe || exit 1
        exec python3 tests/mutate/constants.py "$@"
        ;;
    flips)
        shift
        configure_and_build release --target flip || exit 1
        exec "$build/bin/tests/flip" "$@"
        ;;
    esac
    exec python3 tests/mutate/mutate.py "$@"
}
