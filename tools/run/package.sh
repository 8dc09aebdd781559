# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # others set some variables
#
# A part of run: the command package.

packages_package="dpkg-dev binutils xz-utils lintian mmdebstrap qemu-user"
# What our libraries need, of another architecture: with their control files, which say the versions.
packages_foreign="libc6 libgcc-s1 libstdc++6 libsleef3 libjansson4 libsentencepiece0 libutf8proc2 libxxhash0"

need_foreign_packages() { # DEBIAN-ARCHITECTURE
    sysroot=$build/package/foreign-$1
    [ ! -f "$sysroot/.complete" ] || return 0
    say "unpacking packages for $1 into $sysroot: $packages_foreign"
    rm -rf "$sysroot" "$sysroot.apt"
    mkdir -p "$sysroot" "$sysroot.apt/state/lists/partial" \
        "$sysroot.apt/cache/archives/partial" "$sysroot.apt/deb"
    apt_foreign "$1" update >"$build/install.log" 2>&1 ||
        say "some package lists could not be fetched, see $build/install.log"
    # shellcheck disable=SC2086 # a list of names
    (cd "$sysroot.apt/deb" && apt_foreign "$1" download $packages_foreign) \
        >>"$build/install.log" 2>&1 || die "could not download packages for $1"
    for deb in "$sysroot.apt/deb/"*.deb; do
        dpkg-deb -R "$deb" "$sysroot/$(dpkg-deb -f "$deb" Package)" || die "could not unpack $deb"
    done
    rm -rf "$sysroot.apt"
    : >"$sysroot/.complete"
}

# debs DEBIAN-ARCHITECTURE MULTIARCH [CMAKE-ARG...]: its packages, into build/packages. With the
# harness of the tests, which `isobit check` is.
debs() {
    architecture=$1
    multiarch=$2
    shift 2
    dir=$build/package/$architecture
    mkdir -p "$dir"
    say "building for $architecture"
    if ! { cmake -S . -B "$dir" -DCMAKE_BUILD_TYPE=Release -DISOBIT_BENCH=OFF \
        -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$multiarch" \
        -DCMAKE_SKIP_INSTALL_RPATH=ON "$@" &&
        cmake --build "$dir" -j "$jobs" --target isobit isobit_shared isobit_model \
            isobit_model_shared isobit_blas isobit_blas_shared isobit_check isobit_check_shared \
            isobit_cli; } \
        >"$dir/build.log" 2>&1; then
        tail -n 20 "$dir/build.log" >&2
        die "the build failed, see $dir/build.log"
    fi
    foreign=
    if [ "$architecture" != "$(dpkg --print-architecture)" ]; then
        need_foreign_packages "$architecture"
        foreign=$root/$sysroot
    fi
    packaging/build-debs.sh "$root" "$root/$dir" "$architecture" "$root/$build/packages" "$foreign"
}

package() {
    # shellcheck disable=SC2086 # lists of names
    need $packages_build $packages_package
    rm -rf "$build/packages"
    case $machine in
    x86_64)
        debs amd64 x86_64-linux-gnu
        packages="gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross"
        # shellcheck disable=SC2086
        if (need $packages && need_sysroot arm64); then
            debs arm64 aarch64-linux-gnu -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64.cmake"
        else
            say "arm64: SKIPPED, its compiler or its libraries could not be had"
        fi
        ;;
    aarch64) debs arm64 aarch64-linux-gnu ;;
    *) die "packages are made on x86-64 and aarch64, not on $machine" ;;
    esac
    say "lintian"
    # root is fine here; lintian would say so each time.
    lintian --allow-root --fail-on error "$build/packages/"*.deb || die "lintian found errors"
    for deb in "$build/packages/"*.deb; do say "$deb"; done
    foreign=$build/package/foreign-arm64
    if [ "$machine" = x86_64 ] && ls "$build/packages/"*_arm64.deb >/dev/null 2>&1; then
        packaging/test-foreign.sh "$root" "$root/$build" arm64 "$root/$foreign"
    fi
    as_root packaging/test-install.sh "$root" "$root/$build"
}
