# SPDX-License-Identifier: MIT
"""isobit/_c.py against the headers, as a C compiler reads them."""
import ctypes
import os
import shutil
import subprocess

import pytest

import isobit
from conftest import ROOT
from isobit import _c

HEADERS = os.path.join(ROOT, "include")
INCLUDES = "#include <isobit/model.h>\n#include <isobit/ops.h>\n#include <stdio.h>\n"


def compiler():
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    pytest.skip("no C compiler")


def compile_c(tmp_path, text, *options):
    source = tmp_path / "layout.c"
    source.write_text(INCLUDES + text)
    done = subprocess.run(
        [compiler(), "-std=c11", "-Wall", "-Werror", "-I" + HEADERS, *options, str(source)],
        capture_output=True, text=True, cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_structs_and_constants(tmp_path):
    wanted = {}
    for struct in _c.STRUCTS:
        name = struct.__name__
        wanted[f"sizeof({name})"] = ctypes.sizeof(struct)
        for field, _ in struct._fields_:
            wanted[f"offsetof({name}, {field})"] = getattr(struct, field).offset
            member = f"(({name} *)0)->{field}"
            wanted[f"sizeof({member})"] = getattr(struct, field).size
    for status in isobit.Status:
        wanted[f"ISOBIT_{status.name}"] = int(status)
    for python, c in [(None, "NONE"), ("relu", "RELU"), ("silu", "SILU"), ("gelu", "GELU_ERF"),
                      ("gelu_tanh", "GELU_TANH"), ("tanh", "TANH")]:
        wanted[f"ISOBIT_ACT_{c}"] = _c.ACTIVATIONS[python]
    for name, value in _c.W16.items():
        wanted[f"ISOBIT_{name.upper()}"] = value
    for name, value in _c.SCALES.items():
        wanted[f"ISOBIT_SCALE_{name.upper()}"] = value
    for early, c in [(None, "DEFAULT"), (False, "FALSE"), (True, "TRUE"), ("never", "NEVER")]:
        wanted[f"ISOBIT_EARLY_{c}"] = _c.EARLY_STOPPING[early]
    lines = "".join(f'printf("%s\\t%zu\\n", "{name}", (size_t)({name}));\n' for name in wanted)
    compile_c(tmp_path, f"#include <stddef.h>\nint main(void) {{\n{lines}return 0;\n}}\n")
    output = subprocess.run([tmp_path / "a.out"], capture_output=True, text=True, check=True)
    found = dict(line.split("\t") for line in output.stdout.splitlines())
    assert {name: int(value) for name, value in found.items()} == wanted
    assert len(wanted) > 150


def test_every_member_and_status_is_there():
    text = open(os.path.join(HEADERS, "isobit", "isobit.h")).read()
    codes = text[text.index("typedef enum iso_status") : text.index("} iso_status;")]
    assert codes.count("ISOBIT_") == len(isobit.Status)
    assert isobit.__version__ == isobit.version()


C_NAMES = {
    ctypes.c_int: "i",
    ctypes.c_uint: "u",  # an enumeration
    ctypes.c_float: "x",
    ctypes.c_size_t: "z",
    ctypes.c_void_p: "p",
    ctypes.c_char_p: "s",
    ctypes.POINTER(ctypes.c_size_t): "&z",
    ctypes.POINTER(ctypes.c_void_p): "p",  # the handles are structs that the header hides
    ctypes.POINTER(ctypes.POINTER(_c.iso_generation)): "&generation",
}
C_RESULTS = {ctypes.c_int: "int", ctypes.c_size_t: "size_t", ctypes.c_char_p: "const char *",
             ctypes.c_void_p: "const void *", None: None}


@pytest.mark.parametrize("prototypes", [_c.CORE, _c.MODEL])
def test_functions(tmp_path, prototypes):
    """Calls that are compiled, not run: a wrong count or a wrong kind of argument is an error."""
    calls = []
    for name, (result, arguments) in prototypes.items():
        given = []
        for argument in arguments:
            if argument in C_NAMES:
                given.append(C_NAMES[argument])
            else:
                given.append(f"({argument._type_.__name__} *)p")
        call = f"{name}({', '.join(given)})"
        if result is None:
            calls.append(f"{call};")
        elif result in C_RESULTS:
            kind = C_RESULTS[result]
            cast = "(int)" if kind == "int" else ""  # an enumeration
            calls.append(f"{{ {kind} r = {cast}{call}; (void)r; }}")
        else:
            calls.append(f"{{ const {result._type_.__name__} *r = {call}; (void)r; }}")
    body = "\n".join(calls).replace("iso_strerror(i)", "iso_strerror((iso_status)i)")
    head = (
        "void f(int i, unsigned u, float x, size_t z, void *p, char *s, "
        "iso_generation *generation)"
    )
    compile_c(
        tmp_path,
        f"{head};\n{head} {{\n"
        f"(void)i, (void)u, (void)x, (void)z, (void)s, (void)generation, (void)p;\n{body}\n}}\n",
        "-c", "-Wconversion", "-Wno-unused-parameter",
    )
