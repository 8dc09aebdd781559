# SPDX-License-Identifier: MIT
"""Of an installed wheel only: it uses what it carries, and nothing of the system but libc."""
import os
import re
import subprocess

import pytest

import isobit
from conftest import MODEL, ROOT, run_python

FOLDER = os.path.join(os.path.dirname(isobit.__file__), "libraries")
# Of the C++ library, too, every Linux has one that is new enough (PEP 600); SentencePiece wants it.
SYSTEM = re.compile(
    r"(linux-vdso|libc|libm|libpthread|libdl|librt|libstdc\+\+|libgcc_s|ld-linux[-\w]*)\.so\.\d+$"
)

pytestmark = pytest.mark.skipif(
    not os.path.isdir(FOLDER), reason="the package was not installed from a wheel"
)


def libraries():
    return sorted(name for name in os.listdir(FOLDER) if ".so" in name)


def test_it_is_the_installed_one():
    assert not isobit.__file__.startswith(os.path.join(ROOT, "python") + os.sep)
    assert "ISOBIT_LIBRARY" not in os.environ
    assert {"libisobit.so.0", "libisobit_model.so.0"} < set(libraries())
    assert os.path.exists(os.path.join(os.path.dirname(FOLDER), "py.typed"))


def test_everything_is_found_in_the_wheel():
    for name in libraries():
        path = os.path.join(FOLDER, name)
        dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True,
                                 check=True).stdout
        for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            assert needed in libraries() or SYSTEM.match(needed), (name, needed)
        assert re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic) == ["$ORIGIN"]
        found = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        assert "not found" not in found
        for needed, place in re.findall(r"(\S+) => (\S+)", found):
            assert SYSTEM.match(needed) or os.path.realpath(place).startswith(
                os.path.realpath(FOLDER) + os.sep
            ), (name, needed, place)


def test_a_process_loads_these():
    code = f"""
import isobit
print(isobit.Model.load({MODEL!r}).translate(["attention"])[0])
for line in open("/proc/self/maps"):
    if any(word in line for word in ("isobit", "sleef", "cpuid", "jansson")):
        print(line.split(None, 5)[5].strip())
"""
    lines = run_python(code).stdout.splitlines()
    assert lines[0] == "ɐtˈɛnʃən"
    folders = {os.path.dirname(line) for line in lines[1:]}
    assert folders == {FOLDER}
    names = {os.path.basename(line) for line in lines[1:]}
    assert names == {name for name in libraries() if "blas" not in name}


def test_the_licences_are_there():
    with open(os.path.join(FOLDER, "LICENCES.txt"), encoding="utf-8") as file:
        text = file.read()
    for name in libraries():
        assert name in text
    for words in ("Boost Software License", "THIS SOFTWARE IS PROVIDED BY", "Petri Lehtinen"):
        assert words in text
