# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # others set and use some variables
#
# A part of run: packages of Debian. What a command needs is installed; libraries of another
# architecture are unpacked into the build folder.

packages_build="gcc libc6-dev g++ make cmake pkgconf libsleef-dev
    libjansson-dev libsentencepiece-dev libutf8proc-dev libxxhash-dev libcmocka-dev libbenchmark-dev"
case $machine in x86_64) packages_build="$packages_build libcpuid-dev" ;; esac
packages_test="clang libclang-rt-14-dev binutils libxml2-utils qemu-user valgrind
    python3-numpy python3-pytest"
packages_python="python3 python3-numpy python3-pytest python3-pip python3-venv python3-setuptools
    python3-wheel binutils patchelf mypy"
# Suites that others wrote; without one of these its test is skipped, and says so.
packages_suites="libblas-test liblapack-test libblas3 liblapack3
    python3-numpy python3-pytest python3-hypothesis"
packages_perf="python3-scipy python3-matplotlib"
packages_fuzz="clang libclang-rt-14-dev"
packages_lint="clang clang-format clang-tidy shellcheck mypy python3-numpy"
packages_sysroot="libsleef3 libsleef-dev libjansson4
    libjansson-dev libutf8proc2 libutf8proc-dev libcmocka0 libcmocka-dev libxxhash0 libxxhash-dev"
packages_arm64_suites="libblas-test libblas3 libgfortran5 libsentencepiece0 libsentencepiece-dev"

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        die "must be root, or have sudo, to run: $*"
    fi
}

lacking() {
    for package in "$@"; do
        # shellcheck disable=SC2016 # dpkg-query expands it
        if ! dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null |
            grep -q '^install ok installed$'; then
            printf ' %s' "$package"
        fi
    done
}

install_packages() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

# need PACKAGE...: quiet when all are there. The lists are fetched only if they are too old.
need() {
    missing=$(lacking "$@")
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null 2>&1 || die "this is no Debian; please install:$missing"
    mkdir -p "$build"
    say "installing:$missing"
    # shellcheck disable=SC2086 # a list of names
    if ! install_packages $missing >"$build/install.log" 2>&1; then
        say "fetching the package lists first"
        as_root apt-get update -q >>"$build/install.log" 2>&1 ||
            say "some package lists could not be fetched, see $build/install.log"
        # shellcheck disable=SC2086
        install_packages $missing >>"$build/install.log" 2>&1 || {
            tail -n 5 "$build/install.log" >&2
            die "could not install:$missing (the whole log: $build/install.log)"
        }
    fi
}

# like PACKAGE...: those of them that are to be had; if not all, then one after the other. The
# reference BLAS and LAPACK become the system's only where it has no others.
like() {
    (need "$@") 2>/dev/null && return 0
    for package in "$@"; do
        (need "$package") 2>/dev/null || say "without $package some tests will be skipped"
    done
}

# like_python NAME REQUIREMENTS: packages of Python that Debian does not have, or not so, into a folder
# NAME of the build folder, from PyPI, by their hashes.
like_python() {
    [ ! -d "$build/$1" ] || return 0
    say "installing what $2 lists into $build/$1"
    rm -rf "$build/$1.new"
    mkdir -p "$build"
    if (need python3-pip) 2>/dev/null &&
        /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps \
            --only-binary :all: --require-hashes --target "$build/$1.new" -r "$2" \
            >"$build/$1.log" 2>&1; then
        mv "$build/$1.new" "$build/$1"
    else
        say "without it some tests will be skipped, see $build/$1.log"
    fi
}

# Libraries of another architecture go into a private folder, with lists and caches of their own:
# the system does not get a second architecture.
apt_foreign() { # DEBIAN-ARCHITECTURE ARG...
    foreign=$1
    shift
    apt-get -q -o APT::Architecture="$foreign" -o APT::Architectures="$foreign" \
        -o APT::Sandbox::User=root -o Debug::NoLocking=true \
        -o Dir::State="$root/$sysroot.apt/state" -o Dir::State::status=/dev/null \
        -o Dir::Cache="$root/$sysroot.apt/cache" "$@"
}

need_sysroot() { # DEBIAN-ARCHITECTURE
    sysroot=$build/sysroot-$1
    case $1 in arm64) liked=$packages_arm64_suites ;; *) liked= ;; esac
    # shellcheck disable=SC2086 # lists of names
    wanted=$(printf '%s ' $packages_sysroot $liked)
    if [ -f "$sysroot/.packages" ] && [ "$(cat "$sysroot/.packages")" = "$wanted" ]; then
        return 0
    fi
    say "unpacking libraries for $1 into $sysroot: $wanted"
    rm -rf "$sysroot" "$sysroot.apt"
    mkdir -p "$sysroot" "$sysroot.apt/state/lists/partial" \
        "$sysroot.apt/cache/archives/partial" "$sysroot.apt/deb"
    apt_foreign "$1" update >"$build/install.log" 2>&1 ||
        say "some package lists could not be fetched, see $build/install.log"
    # shellcheck disable=SC2086 # a list of names
    (cd "$sysroot.apt/deb" && apt_foreign "$1" download $packages_sysroot) \
        >>"$build/install.log" 2>&1 || {
        tail -n 5 "$build/install.log" >&2
        die "could not download the libraries for $1 (the whole log: $build/install.log)"
    }
    for package in $liked; do
        (cd "$sysroot.apt/deb" && apt_foreign "$1" download "$package") \
            >>"$build/install.log" 2>&1 ||
            say "without $package for $1 some tests will be skipped"
    done
    for deb in "$sysroot.apt/deb/"*.deb; do
        dpkg -x "$deb" "$sysroot" || die "could not unpack $deb"
    done
    rm -rf "$sysroot.apt"
    printf '%s' "$wanted" >"$sysroot/.packages"
}
