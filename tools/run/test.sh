# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # others set some variables
#
# A part of run: the command test, by stages.

passed=0
failed=0
skipped=0
began=$(date +%s)

attribute() { sed -n "s/.*<testsuite.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p;s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1; }

# Adds the numbers of one ctest run.
count() {
    tests=$(attribute tests "$1")
    bad=$(attribute failures "$1")
    left_out=$(attribute skipped "$1")
    disabled=$(attribute disabled "$1")
    left_out=$((${left_out:-0} + ${disabled:-0}))
    passed=$((passed + ${tests:-0} - ${bad:-0} - left_out))
    failed=$((failed + ${bad:-0}))
    skipped=$((skipped + left_out))
    [ "${tests:-0}" -gt 0 ]
}

# stage PRESET TITLE [CTEST-ARG...]: builds $programs, or everything.
stage() {
    preset=$1
    title=$2
    shift 2
    start=$(date +%s)
    dir=$(preset_dir "$preset")
    say "== $preset: $title"
    rm -f "$root/$dir/results.xml"
    # shellcheck disable=SC2086 # a list of names
    if configure_and_build "$preset" ${programs:+--target $programs}; then
        say "   built in $(($(date +%s) - start)) s"
        ctest --test-dir "$dir" -j "$jobs" --output-on-failure --output-junit \
            "$root/$dir/results.xml" "$@" || true
        if ! [ -f "$dir/results.xml" ] || ! count "$dir/results.xml"; then
            say "   no test ran"
            failed=$((failed + 1))
        fi
        loud_skips "$dir"
    else
        failed=$((failed + 1))
    fi
    say "   $preset took $(($(date +%s) - start)) s"
    echo
}

# What a test left out because the machine lacks it must not drown in the log of ctest. On emulated
# older CPUs it is the point of the test, and not worth a word.
loud_skips() {
    awk '/^[0-9]+\/[0-9]+ Testing: / { emulated = /Nehalem|SandyBridge|Haswell/ }
        /SKIPPED: / && !/"/ && !/no such function/ && !emulated {
            sub(/^.*[ \t]+[a-z0-9_]+[ \t]+SKIPPED: /, isa($0) " SKIPPED: ")
            print
        }
        function isa(line) {
            sub(/[ \t]+SKIPPED: .*/, "", line)
            sub(/^.*[ \t]/, "", line)
            return line
        }' "$1/Testing/Temporary/LastTest.log" 2>/dev/null | sort -u |
        while IFS= read -r line; do say "   $line"; done || true
}

# The tests that start threads, by name, and what they run.
threaded='^(threads|process|faults|model|parallel_load|sample|verbose|ops|blas)$'
threaded="$threaded|^cli_(model|score|bench|quantize|embed|marian)\$"
threaded_programs="isobit_cli test_threads test_process test_faults test_model
    test_parallel_load test_sample test_verbose test_ops test_blas"

# What computes, whose bits clang's optimiser might change; asan-ubsan has all else from clang.
computing='^(kernels|kernels\.(random|replay)|digest\..*|prove_objects|dispatch|oracle|ops'
computing="$computing|nodes|attention|w16|q|kv16|s8|b16|b16\.native|amx|ways|blas|threads|model|families|sample)\$"
computing_programs="isobit_shared isobit_model_shared isobit_blas_shared test_kernels test_dispatch
    test_oracle test_ops test_nodes test_attention test_w16 test_q test_kv16 test_s8 test_b16 test_ways
    test_blas test_threads test_model test_families test_sample"
case $machine in x86_64) computing_programs="$computing_programs test_amx" ;; esac

# What asks neither a compiler nor the CPU: words, refusals, files and hashes of the command line, which
# gcc's optimised build has, and clang's with sanitizers; and documents.
twice='^cli_(usage|score|options|same|gguf|output|explain|bench|quantize|embed|writers|marian|languages)$'
twice="$twice|^(record.command|consumer_readme_page|integration_measure)\$"
hashes='^cli_same$' # of the command line, set by set: not worth sanitizers
# What an emulator makes slow, and no instruction set changes: schedules and searches of models, files
# that are written, threads that load, other programs, and the scalar set, which is x86-64's.
elsewhere='^(quantize|long|batch|parallel_load|search|integration_(llmc|llama2c.*)|check_blas\.(scalar|broken)'
elsewhere="$elsewhere|blas\.netlib\.scalar)\$"
# Then these run everywhere.
[ -z "${ISOBIT_LONG:-}" ] || { twice='^$' && hashes='^$' && elsewhere='^$'; }

run_stage() {
    programs=
    case $1 in
    release) stage release "gcc, optimised: everything" ;;
    clang)
        if [ -n "${ISOBIT_LONG:-}" ]; then
            stage clang "clang, optimised: all but the emulated CPUs" \
                -E "\.(Nehalem|SandyBridge|Haswell)$|_qemu_"
        else
            programs=$computing_programs
            stage clang "clang, optimised: what computes" -R "$computing"
        fi
        ;;
    asan-ubsan)
        stage asan-ubsan "clang, address and undefined-behaviour sanitizers" -E "$hashes"
        ;;
    tsan)
        programs=$threaded_programs
        # A program with threads waits a second at its end for races to show; tests start hundreds.
        export TSAN_OPTIONS="atexit_sleep_ms=20${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
        stage tsan "thread sanitizer: what runs in threads" -R "$threaded"
        ;;
    aarch64)
        cross aarch64 arm64 "gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross" \
            "NEON, cross-compiled, under qemu-aarch64" -E "$twice|$elsewhere"
        ;;
    s390x)
        programs=$essential_programs
        cross s390x s390x "gcc-s390x-linux-gnu libc6-dev-s390x-cross" \
            "big-endian, cross-compiled, under qemu-s390x" -R "$essential"
        ;;
    i386)
        cross i386 i386 "gcc-i686-linux-gnu libc6-dev-i386-cross" \
            "32-bit x86, cross-compiled, run as it is"
        ;;
    armhf)
        programs=$essential_programs
        cross armhf armhf "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross" \
            "32-bit Arm, cross-compiled, under qemu-arm" -R "$essential"
        ;;
    esac
}

# What an emulator does in a few minutes: the numbers, and the files that are read.
essential='^(kernels|kernels.replay|ops|nodes|oracle|dispatch|loader|prove_objects)$'
essential_programs="test_kernels test_ops test_nodes test_oracle test_dispatch test_loader
    isobit_shared isobit_model_shared isobit_blas_shared"

need_cross() {
    # shellcheck disable=SC2086 # a list of names
    need $packages qemu-user && need_sysroot "$architecture"
}

# cross PRESET DEBIAN-ARCHITECTURE PACKAGES TITLE [CTEST-ARG...]: without compiler or libraries the
# stage counts as skipped.
cross() {
    name=$1
    architecture=$2
    packages=$3
    shift 3
    if [ "$machine" != x86_64 ]; then
        why="the cross builds are for x86-64 (here release is native $machine)"
    elif ! (need_cross); then
        why="its compiler or its libraries could not be had"
    else
        stage "$name" "$@"
        return
    fi
    say "== $name: SKIPPED, $why"
    echo
    skipped=$((skipped + 1))
}

stages="release clang asan-ubsan tsan aarch64 s390x"
more_stages="i386 armhf"

test_all() {
    # shellcheck disable=SC2086 # a list of names
    [ $# -gt 0 ] || set -- $stages
    for name in "$@"; do
        case " $stages $more_stages " in
        *" $name "*) ;;
        *)
            printf '%s\n' "run: there is no stage '$name'; the stages are: $stages $more_stages" >&2
            exit 2
            ;;
        esac
    done
    # shellcheck disable=SC2086 # lists of names
    need $packages_build $packages_test $packages_perf
    # shellcheck disable=SC2086 # a list of names
    like $packages_suites
    # The stage aarch64 needs them anyway; the tests of isobit-perf count instructions of NEON.
    case $machine in x86_64) like gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;; esac
    like_python otava tests/perf/requirements.txt
    like_python wheels tests/blas/requirements.txt
    for name in "$@"; do
        run_stage "$name"
    done
    seconds=$(($(date +%s) - began))
    say "all took $((seconds / 60)) min $((seconds % 60)) s"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
