#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Debian packages of a build: what is installed is divided as debian/*.install say, each part gets
# its control files from Debian's own tools (dpkg-gensymbols, dpkg-shlibdeps, dpkg-gencontrol).
# SYSROOT, for another architecture than this one, is a folder with one unpacked package in each
# subfolder, its control files in DEBIAN/: the libraries that ours need.
# Usage: build-debs.sh SOURCE-DIR BUILD-DIR ARCHITECTURE OUTPUT-DIR [SYSROOT]
set -eu
source=$1 build=$2 arch=$3 output=$4 sysroot=${5-}

fail() {
    printf '%s\n' "build-debs.sh: $*" >&2
    exit 1
}

eval "$(dpkg-architecture -a"$arch" -s 2>/dev/null)" # DEB_HOST_GNU_TYPE, ...
cross=
[ "$arch" = "$(dpkg --print-architecture)" ] || cross=$DEB_HOST_GNU_TYPE-
work=$build/debian-build
rm -rf "$work"
mkdir -p "$work" "$output"
cp -R "$source/packaging/debian" "$work/debian"
cd "$work"
stage=$work/debian/tmp
version=$(dpkg-parsechangelog -S Version)
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -S Timestamp)
export SOURCE_DATE_EPOCH

DESTDIR=$stage cmake --install "$build" >"$work/install.log" 2>&1 || {
    tail -n 5 "$work/install.log" >&2
    fail "cmake --install failed"
}
libraries=usr/lib/$DEB_HOST_MULTIARCH
upstream=$(sed -n 's/^Version: //p' "$stage/$libraries/pkgconfig/isobit.pc")
[ "$upstream" = "${version%-*}" ] || fail "debian/changelog has $version, the library $upstream"
packages=$(sed -n 's/^Package: //p' debian/control)
if [ ! -e "$stage/$libraries/libisobit_blas.so" ]; then # a build without the BLAS
    packages=$(printf '%s\n' "$packages" | grep -v blas)
    # shellcheck disable=SC2016 # dpkg-gencontrol expands it
    sed -i 's/libisobit-blas0 (= ${binary:Version}),//' debian/control
fi

# Everything goes somewhere, and only once.
for package in $packages; do
    while read -r pattern; do
        for file in "$stage"/$pattern; do
            [ -e "$file" ] || [ -L "$file" ] || fail "$package: there is no $pattern"
            to=debian/$package${file#"$stage"}
            mkdir -p "${to%/*}"
            mv "$file" "$to"
        done
    done <"debian/$package.install"
done
left=$(find "$stage" ! -type d)
[ -z "$left" ] || fail "in no package: $left"

# Files as they are in packages: stripped, compressed, with plain permissions.
for package in $packages; do
    root=debian/$package
    find "$root" -type f \( -name '*.so.*' -o -path '*/bin/isobit' \) -exec \
        "${cross}strip" --remove-section=.comment --remove-section=.note --strip-unneeded {} +
    find "$root" -name '*.a' -exec "${cross}strip" --strip-debug --enable-deterministic-archives {} +
    doc=$root/usr/share/doc/$package
    mkdir -p "$doc" "$root/DEBIAN"
    cp debian/copyright "$doc/copyright"
    gzip -9n <debian/changelog >"$doc/changelog.Debian.gz"
    gzip -9n <"$source/CHANGELOG.md" >"$doc/changelog.gz"
    find "$root" -path '*/man/*' -type f -exec gzip -9n {} +
    find "$root" -type d -exec chmod 755 {} +
    find "$root" -type f ! -path '*/bin/*' -exec chmod 644 {} +
done

# The control files. Symbols first: the packages depend on each other.
for package in $packages; do
    root=debian/$package
    [ -e "debian/$package.symbols" ] || continue
    dpkg-gensymbols -c4 "-p$package" "-P$root" "-v${version%-*}" >"$work/symbols.log" 2>&1 || {
        cat "$work/symbols.log" >&2
        fail "the exported symbols are not those of debian/$package.symbols"
    }
    for library in "$root/$libraries"/lib*.so.?; do
        name=${library##*/}
        printf '%s %s %s (>= %s)\n' "${name%.so.*}" "${name##*.so.}" "$package" "${version%-*}"
    done >"$root/DEBIAN/shlibs"
    echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
done
set --
for dependency in ${sysroot:+"$sysroot"/*}; do
    set -- "$@" "-S$dependency"
    for directory in "$dependency/lib/$DEB_HOST_MULTIARCH" "$dependency/$libraries"; do
        [ ! -d "$directory" ] || set -- "$@" "-l$directory"
    done
done
for package in $packages; do
    set -- "$@" "-Sdebian/$package" "-ldebian/$package/$libraries"
done
for package in $packages; do
    root=debian/$package
    substvars=debian/$package.substvars
    binaries=$(find "$root" -type f \( -name '*.so.*' -o -path '*/bin/isobit' \))
    : >"$substvars"
    if [ -n "$binaries" ]; then
        # shellcheck disable=SC2086 # our file names have no spaces
        dpkg-shlibdeps "$@" "-T$substvars" $binaries 2>"$work/shlibdeps.log" || {
            cat "$work/shlibdeps.log" >&2
            fail "dpkg-shlibdeps, $package"
        }
    fi
    dpkg-gencontrol "-p$package" "-P$root" "-T$substvars" -fdebian/files \
        2>"$work/gencontrol.log" || {
        cat "$work/gencontrol.log" >&2
        fail "dpkg-gencontrol, $package"
    }
    (cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\n' | LC_ALL=C sort |
        xargs md5sum >DEBIAN/md5sums)
    find "$root/DEBIAN" -type f -exec chmod 644 {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "$output" >/dev/null
done
