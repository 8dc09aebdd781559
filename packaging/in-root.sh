#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The part of test-install.sh that runs inside the bare root; /here has the packages and programs.
set -eu
cd /here
say() { printf '%s\n' "in the root: $*"; }
fail() {
    say "$*"
    exit 1
}
export DEBIAN_FRONTEND=noninteractive
alternatives() { update-alternatives --query "libblas.so.3-$(uname -m)-linux-gnu"; }
before=$(alternatives)
find / -xdev -path /proc -prune -o -path /here -prune -o -name '*isobit*' -print >files.before

apt-get update -q >apt.log 2>&1 || say "some package lists could not be fetched"
apt-get install -q -y --no-install-recommends ./*.deb >>apt.log 2>&1 || {
    tail -n 20 apt.log
    fail "apt could not install the packages"
}
say "installed: $(dpkg-query -W -f '${Package} ${Version}, ' '*isobit*')"

# The tool
isobit version
isobit info >information
grep -q "^CPU" information
[ -n "$(isobit run --model model attention)" ]
[ -s /usr/share/man/man1/isobit.1.gz ] || grep -q man /etc/dpkg/dpkg.cfg.d/* || fail "no man page"

# The example of the README, and one for models
# shellcheck disable=SC2046 # flags are words
gcc -std=c11 -Wall -Wextra -Werror -o readme readme.c $(pkg-config --cflags --libs isobit)
sh readme_run.sh ./readme
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror -o model.bin model.c $(pkg-config --cflags --libs isobit_model)
./model.bin model

# The harness: isobit's kernels, a program of one's own, and plug-ins, one of them wrong.
isobit check --op embed >check.out || fail "isobit check: $(cat check.out)"
isobit check --op softmax --record kernels.record >check.out || fail "--record: $(cat check.out)"
isobit check --compare kernels.record >check.out || fail "--compare: $(cat check.out)"
grep -q '^machines: equal$' check.out || fail "--compare: $(cat check.out)"
isobit check --blas libisobit_blas.so.0 --quick >check.out || fail "--blas: $(cat check.out)"
# Debian's reference BLAS: docs/checked.md has its findings.
! isobit check --blas libblas.so.3 --quick --op ssyrk >check.out || fail "--blas has no finding"
grep -q '^ssyrk *bad arguments .* FAILS$' check.out || fail "--blas: $(cat check.out)"
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror -o own check.c $(pkg-config --cflags --libs isobit_check) -lm
./own --digest >own.out 2>own.notes
grep -q '^swiglu ' own.out || fail "the program with libisobit_check: $(cat own.out)"
for plugin in right wrong; do
    define=
    [ "$plugin" = right ] || define=-DSOFTMAX_IS_WRONG
    sources='plugin/plugin.c plugin/softmax_scalar.c'
    [ "$(uname -m)" != x86_64 ] || sources="$sources plugin/softmax_avx2.c -mavx2 -mfma"
    # shellcheck disable=SC2046,SC2086
    gcc -std=c11 -O2 -ffp-contract=off -shared -fPIC $define $(pkg-config --cflags isobit_check) \
        -o "$plugin.so" $sources -lm
done
isobit check --plugin right.so >check.out || fail "a good plug-in: $(cat check.out)"
isobit check --plugin right.so --record right.record >check.out || fail "--record: $(cat check.out)"
isobit check --plugin right.so --compare right.record >check.out || fail "--compare: $(cat check.out)"
grep -q '^machines: equal$' check.out || fail "--compare: $(cat check.out)"
if grep -q 'avx2 .* PASS' check.out; then
    ! isobit check --plugin wrong.so >check.out || fail "a wrong plug-in passed"
    grep -q '^FAIL softmax avx2: .* times the bound' check.out || fail "$(cat check.out)"
    ! isobit check --plugin wrong.so --compare right.record >check.out || fail "--compare: equal"
    grep -q '^machines: wrong$' check.out || fail "--compare: $(cat check.out)"
fi
# What cannot be used: one line, exit code 2.
head -c 100 right.record >cut.record
for use in "--blas check.c" "--plugin check.c" "--plugin right.so --compare cut.record"; do
    status=0
    # shellcheck disable=SC2086 # words
    isobit check $use >check.out 2>check.err || status=$?
    [ "$status" -eq 2 ] || fail "$use: exit code $status"
    [ "$(wc -l <check.err)" -eq 1 ] || fail "$use: $(cat check.err)"
done

if command -v isobit-blas >/dev/null; then
    # shellcheck disable=SC2046
    gcc -std=c11 -Wall -Wextra -Werror -o blas blas.c $(pkg-config --cflags --libs isobit_blas)
    ./blas >blas.out
    # A program for any BLAS, linked with that of Debian.
    # shellcheck disable=SC2046
    gcc -std=c11 -o plain blas.c $(pkg-config --cflags isobit_blas) -lblas
    ./plain >plain.out
    LD_DEBUG=bindings ./plain 2>plain.bindings >/dev/null
    ! grep -q libisobit plain.bindings || fail "isobit is there unasked"
    isobit-blas ./plain >interposed.out
    cmp blas.out interposed.out
    LD_DEBUG=bindings isobit-blas ./plain 2>&1 >/dev/null |
        grep -q './plain .* to .*libisobit_blas.so.0 .*cblas_sgemm' || fail "sgemm is not ours"

    # NumPy: the same bits with every instruction set, and not those of the BLAS beneath.
    cat >product.py <<'END'
import hashlib
import numpy
x = numpy.random.default_rng(1).standard_normal((2, 300, 300), dtype=numpy.float32)
product = x[0] @ x[1]
assert abs(product - x[0].astype(float) @ x[1].astype(float)).max() < 1e-3
print(hashlib.sha256(product.tobytes()).hexdigest())
END
    plain=$(python3 product.py)
    hashes=
    for isa in scalar avx2 avx512 neon; do
        if ISOBIT_ISA=$isa isobit run --model model a >/dev/null 2>&1; then # it can
            hash=$(ISOBIT_ISA=$isa isobit-blas python3 product.py)
            say "NumPy, $isa: $hash"
            hashes="$hashes$hash
"
        fi
    done
    [ "$(printf %s "$hashes" | sort -u | wc -l)" -eq 1 ] || fail "NumPy: not the same bits"
    [ "$(printf %s "$hashes" | sort -u)" != "$plain" ] || fail "NumPy did not use isobit"

    status=0
    isobit-blas 2>/dev/null || status=$?
    [ "$status" -eq 2 ] || fail "isobit-blas alone gives $status"
fi
# Installed or not, the BLAS of the system is what it was.
[ "$(alternatives)" = "$before" ] || fail "libblas.so.3 has changed: $(alternatives)"

apt-get purge -q -y '*isobit*' >>apt.log 2>&1 || {
    tail -n 20 apt.log
    fail "apt could not remove the packages"
}
find / -xdev -path /proc -prune -o -path /here -prune -o -name '*isobit*' -print >files.after
cmp files.before files.after || fail "these files stay: $(diff files.before files.after)"
