# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # others set some variables
#
# A part of run: the command python.

# The wheel, in an environment of its own that sees Debian's NumPy and pytest.
python_package() {
    # shellcheck disable=SC2086 # lists of names
    need $packages_build $packages_python
    say "building the libraries"
    configure_and_build release --target isobit_shared isobit_model_shared isobit_cli || exit 1
    # Where the build has the BLAS library, the wheel carries it.
    if cmake --build "$build" --target help | grep ' isobit_blas_shared$' >/dev/null; then
        configure_and_build release --target isobit_blas_shared || exit 1
    fi
    say "mypy"
    (cd python && /usr/bin/python3 -m mypy --cache-dir "$root/$build/mypy" isobit) || exit 1
    say "building the wheel"
    mkdir -p "$build/python"
    wheel=$(/usr/bin/python3 python/build_wheel.py --libraries "$build/lib" \
        --output "$build/python") || exit 1
    environment=$root/$build/python/environment
    rm -rf "$environment"
    /usr/bin/python3 -m venv --system-site-packages "$environment"
    "$environment/bin/python" -m pip install --quiet --no-index --no-deps "$wheel"
    sh python/tests/run.sh "$environment/bin/python" installed "$root/$build/bin/isobit"
    say "the wheel: $wheel"
}
