# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # others set some variables
#
# A part of run: the command lint.

# tracked PATTERN...: files of the project, also those that are not committed yet.
tracked() {
    git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
        [ ! -f "$file" ] || printf '%s\n' "$file"
    done | sort -u
}

problems=0
# complain TITLE: findings lie in $build/lint.txt; any line is a problem.
complain() {
    [ -s "$build/lint.txt" ] || return 0
    printf '%s\n' "lint: $1:" >&2
    sed 's/^/  /' "$build/lint.txt" >&2
    problems=$((problems + 1))
}

# tidy [ARG...]: the files that it reads.
tidy() {
    xargs -r -P "$jobs" -n 4 clang-tidy -p "$build/tidy" --quiet \
        --extra-arg=-Wno-ignored-optimization-argument "$@"
}

lint() {
    # shellcheck disable=SC2086 # lists of names
    need $packages_build $packages_lint git
    mkdir -p "$build"
    code=$(tracked '*.c' '*.h' '*.cc' '*.def')
    scripts=$(tracked '*.sh' run .ci/run)
    sources="$code $scripts $(tracked '*.py' '*.awk' '*.cmake' '*CMakeLists.txt' '*.map')"

    found=$build/lint.txt
    # grep finds nothing on a good day, and says so by its exit code: hence the "|| true".
    # shellcheck disable=SC2046,SC2086 # lists of names; there are no spaces in ours
    {
        say "clang-format"
        clang-format --dry-run -Werror $(tracked '*.c' '*.h' '*.cc') 2>&1 |
            sed -n 's/:[0-9]*:[0-9]*: error: .*//p' | sort -u >"$found" || true
        complain "not formatted (clang-format -i repairs it)"

        say "shellcheck"
        shellcheck $scripts >"$found" 2>&1 || true
        complain "shellcheck"

        say "rules"
        grep -L 'SPDX-License-Identifier: MIT' $sources >"$found" || true
        complain "no SPDX line"
        grep -n -E '[[:space:]]+$' $sources | cut -c1-100 >"$found" || true
        complain "white space at the end"
        grep -n "$(printf '\t')" $code $scripts | cut -c1-100 >"$found" || true
        complain "tabs"
        library=$(tracked 'include/*.h' 'kernels/*.[ch]' 'dispatch/*.[ch]' 'model/*.[ch]')
        prints='(^|[^_[:alnum:]])(exit|_exit|abort|printf|puts|fprintf|putchar|perror)[[:space:]]*\('
        grep -n -E "$prints" $library |
            grep -v -E '^[^:]*:[0-9]*:[[:space:]]*(/?\*|//)' >"$found" || true
        complain "the library exits or prints"
        includes='#[[:space:]]*include[[:space:]]*<([a-z]*intrin|arm_neon|arm_sve)\.h>'
        grep -n -E "$includes" $(tracked '*.c' '*.h' '*.cc' |
            grep -v -E '^(kernels/[a-z0-9]+|tests/consumers/check)/') >"$found" || true
        complain "intrinsics outside kernels/<isa>/"
    }

    say "mypy"
    (cd tools/perf && /usr/bin/python3 -m mypy --config-file mypy.ini --cache-dir "$root/$build/mypy" \
        isobit_perf) 2>&1 | grep -v '^Success' >"$found" || true
    complain "types of tools/perf"

    say "clang-tidy"
    cmake --preset release >"$build/build.log" 2>&1 || die "cmake failed, see $build/build.log"
    # Each file once, however many programs it is compiled for. The analyzer gives a function up after
    # a quarter of the states that it would look at: a large file takes 5 s instead of 20.
    few="--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=50000"
    # Tests and benchmarks took the analyzer most of its time; the sanitizers look at them instead.
    # ISOBIT_LONG: it looks, too.
    tests='-clang-analyzer-*'
    [ -z "${ISOBIT_LONG:-}" ] || tests=
    files=$(/usr/bin/python3 tools/run/tidy_commands.py "$build/compile_commands.json" "$build/tidy")
    # shellcheck disable=SC2086 # a list of arguments
    {
        printf '%s\n' "$files" | grep -v -F -e "$root/tests/" -e "$root/bench/" | tidy $few
        printf '%s\n' "$files" | grep -F -e "$root/tests/" -e "$root/bench/" | tidy $few --checks="$tests"
    } 2>/dev/null | grep -E '(warning|error):' | sort -u >"$found" || true
    complain "clang-tidy"
    rm -f "$found"

    [ "$problems" -eq 0 ] || die "$problems kinds of problems"
    say "lint is clean"
}
