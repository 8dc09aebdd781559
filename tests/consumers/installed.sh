#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The installed library, as those meet it who have pkg-config or CMake: programs linked with it both
# ways, the tool, and the messages when something is not there. The tree is moved after it was
# installed, and every program runs without LD_LIBRARY_PATH.
# Usage: installed.sh SOURCE-DIR BUILD-DIR CC COMPONENT...
set -eu
source=$1 build=$2 cc=$3
shift 3
unset LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    printf '%s\n' "installed.sh: $*"
    exit 1
}

mkdir "$work/first"
DESTDIR=$work/first cmake --install "$build" --prefix /opt/isobit >"$work/log" 2>&1 || {
    tail -n 5 "$work/log"
    exit 1
}
prefix=$work/moved
mv "$work/first/opt/isobit" "$prefix"
libraries=$(dirname "$(find "$prefix" -name libisobit.a)")
if grep -r -l -F -e /opt/isobit -e "$build" -e "$source" "$libraries/pkgconfig" \
    "$libraries/cmake"; then
    fail "these files know where they were"
fi

# The same without shared libraries: the linker takes the static ones.
cp -R "$prefix" "$work/static"
find "$work/static" -name '*.so*' -exec rm {} +

# run NAME: what the program NAME gives.
run() {
    case $1 in
    *model*) "$work/$1" "$source/models/g2p-en" ;;
    *check*) "$work/$1" --digest ;;
    *) "$work/$1" ;;
    esac >"$work/$1.out" 2>"$work/$1.notes"
}

for component in "$@"; do
    case $component in
    core) name=isobit example=readme words='^scalar *0x' ;;
    model) name=isobit_model example=model words='^isobit-transformer, [0-9]' ;;
    blas) name=isobit_blas example=blas words='^0x1.4cccccp+0 0x1.4cccccp+1 0x1.2666' ;;
    check) name=isobit_check example=check words='^swiglu  *[0-9a-f]*$' ;;
    esac
    PKG_CONFIG_PATH=$libraries/pkgconfig
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046 # flags are words
    "$cc" -std=c11 -Wall -Wextra -Werror -o "$work/shared-$name" \
        "$source/tests/consumers/$example.c" $(pkg-config --cflags --libs "$name") -lm \
        "-Wl,-rpath,$libraries"
    PKG_CONFIG_PATH=$(echo "$libraries" | sed "s,^$prefix,$work/static,")/pkgconfig
    # shellcheck disable=SC2046
    "$cc" -std=c11 -o "$work/static-$name" "$source/tests/consumers/$example.c" \
        $(pkg-config --static --cflags --libs "$name") -lm
    run "shared-$name"
    run "static-$name"
    grep -q "$words" "$work/shared-$name.out" || fail "$name: $(cat "$work/shared-$name.out")"
    cmp "$work/shared-$name.out" "$work/static-$name.out"
    readelf -d "$work/shared-$name" | grep -q "lib$name.so.0" || fail "$name: not shared"
    ! readelf -d "$work/static-$name" | grep -q libisobit || fail "$name: not static"
done

# find_package
configure() { # NAME PREFIX COMPONENTS [OPTION...]
    name=$1 where=$2 components=$3
    shift 3
    cmake -S "$source/tests/consumers/package" -B "$work/$name" -DCMAKE_PREFIX_PATH="$where" \
        -DCMAKE_C_COMPILER="$cc" -DCOMPONENTS="$components" "$@" >"$work/$name.log" 2>&1
}
all=$(IFS=';' && printf '%s' "$*")
if ! configure package "$prefix" "$all" -DISOBIT_VERSION=0.1 ||
    ! cmake --build "$work/package" >>"$work/package.log" 2>&1; then
    tail -n 20 "$work/package.log"
    exit 1
fi
for component in "$@"; do
    case $component in core) name=isobit ;; *) name=isobit_$component ;; esac
    run "package/$component"
    run "package/${component}_shared"
    cmp "$work/package/$component.out" "$work/shared-$name.out"
    cmp "$work/package/${component}_shared.out" "$work/shared-$name.out"
    readelf -d "$work/package/${component}_shared" | grep -q "lib$name.so.0" || fail "not shared"
    ! readelf -d "$work/package/$component" | grep -q libisobit || fail "not static"
done

refused() { # WORDS NAME PREFIX COMPONENTS [OPTION...]
    words=$1
    shift
    ! configure "$@" || fail "configured: $*"
    tr '\n' ' ' <"$work/$1.log" | tr -s ' ' | grep -q "$words" || {
        cat "$work/$1.log"
        fail "does not say: $words"
    }
}
refused "has no component 'fft'; the components are core, model, blas and check" odd "$prefix" "core;fft"
refused 'requested version "0.2"' version "$prefix" core -DISOBIT_VERSION=0.2
# The commands
if [ -x "$build/bin/isobit" ]; then
    "$prefix/bin/isobit" version
    [ -s "$prefix/share/man/man1/isobit.1" ] || fail "no isobit.1"
fi
case " $* " in
*" blas "*)
    "$prefix/bin/isobit-blas" --version
    [ -s "$prefix/share/man/man1/isobit-blas.1" ] || fail "no isobit-blas.1"
    ;;
esac

# An installation without the model layer.
find "$prefix" -name 'isobit-model*.cmake' -exec rm {} +
refused "the component 'model' is not installed: isobit was built with ISOBIT_MODEL=OFF" \
    lacking "$prefix" "core;model"
