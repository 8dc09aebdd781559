# SPDX-License-Identifier: MIT
"""Where the libraries are looked for, and what is said when they are not there."""
import json
import os
import shutil

import numpy as np
import pytest

import isobit
from conftest import ISAS, MODEL, run_python
from isobit import _library

SHOW = "import isobit; print(isobit.get_isa())"


def loaded():
    """The files of the libraries of this process."""
    with open("/proc/self/maps") as file:
        paths = {line.split(None, 5)[5].strip() for line in file if "libisobit" in line}
    return {os.path.basename(p).split(".so")[0]: p for p in paths}


@pytest.fixture
def copied(tmp_path):
    """A folder with copies of both libraries, under their sonames."""
    folder = tmp_path / "lib"
    folder.mkdir()
    for name, path in loaded().items():
        shutil.copy(path, folder / (name + ".so.0"))
    # A wheel's libraries find their own beside them.
    for name in os.listdir(os.path.dirname(loaded()["libisobit"])):
        if ".so" in name and "isobit" not in name:
            shutil.copy(os.path.join(os.path.dirname(loaded()["libisobit"]), name), folder)
    return folder


WHERE = """
import isobit
from test_library import loaded
print(*sorted(loaded().values()))
"""


def test_a_folder_and_a_file(copied):
    core, model = copied / "libisobit.so.0", copied / "libisobit_model.so.0"
    for place in (copied, core):
        done = run_python(WHERE, ISOBIT_LIBRARY=str(place))
        assert done.stdout.split() == [str(core), str(model)], done.stderr
    other = copied / "other-name.so"
    core.rename(other)
    done = run_python(SHOW, ISOBIT_LIBRARY=str(other))
    assert done.stdout.split() == [isobit.get_isa()], done.stderr


def one_import_error(done):
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("ImportError")]
    assert len(lines) == 1 and done.stderr.rstrip().endswith(lines[0]), done.stderr
    return lines[0]


def test_a_missing_library(tmp_path):
    text = one_import_error(run_python(SHOW, ISOBIT_LIBRARY=str(tmp_path / "nothing")))
    assert f"cannot load libisobit.so.0: ISOBIT_LIBRARY={tmp_path}/nothing" in text
    text = one_import_error(run_python(SHOW, ISOBIT_LIBRARY=str(tmp_path)))
    assert f"{tmp_path}/libisobit.so.0" in text
    (tmp_path / "libisobit.so.0").write_text("no library")
    assert "cannot load" in one_import_error(run_python(SHOW, ISOBIT_LIBRARY=str(tmp_path)))
    # A library, but another one.
    (libc,) = {line.split()[-1] for line in open("/proc/self/maps") if "/libc.so" in line}
    assert "iso_version" in one_import_error(run_python(SHOW, ISOBIT_LIBRARY=libc))


def test_nothing_anywhere(tmp_path):
    package = tmp_path / "isobit"
    shutil.copytree(os.path.dirname(isobit.__file__), package,
                    ignore=shutil.ignore_patterns("libraries"))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SHOW}"
    done = run_python(code, ISOBIT_LIBRARY=None)
    if done.returncode == 0:
        pytest.skip("the system has an isobit of its own")
    assert "ISOBIT_LIBRARY is not set, nothing in" in one_import_error(done)
    # Then that of the package, then that of the system (here by LD_LIBRARY_PATH).
    own = os.path.dirname(loaded()["libisobit"])
    done = run_python(code, ISOBIT_LIBRARY=None, LD_LIBRARY_PATH=own)
    assert done.stdout.split() == [isobit.get_isa()], done.stderr
    if not os.path.exists(os.path.join(own, "libisobit.so")):  # a build tree's would be no copy
        shutil.copytree(own, package / "libraries")
        done = run_python(code, ISOBIT_LIBRARY="")
        assert done.stdout.split() == [isobit.get_isa()], done.stderr


def test_without_the_model_library(copied):
    (copied / "libisobit_model.so.0").unlink()
    code = f"""
import isobit, numpy
print(isobit.relu(numpy.float32([-1, 2])))
isobit.Model.load({MODEL!r})
"""
    done = run_python(code, ISOBIT_LIBRARY=str(copied))
    assert done.stdout == "[0. 2.]\n"
    assert "cannot load libisobit_model.so.0" in one_import_error(done)


def test_another_copy_in_the_process(copied):
    """Then the models would use that one: so does everything else."""
    code = f"""
import numpy, isobit
from isobit import _library
isobit.set_isa("scalar")
a = _library.lib, _library._model
assert _library._address(a[0], "iso_gemm_f32") == _library._address(a[1], "iso_gemm_f32")
isobit.set_num_threads(2)
print(isobit.Model.load({MODEL!r}).translate(["attention"]))
"""
    done = run_python(code, LD_PRELOAD=str(copied / "libisobit.so.0"))
    assert done.stdout == "['ɐtˈɛnʃən']\n", done.stderr


@pytest.mark.parametrize("name", ISAS)
def test_the_environment_chooses_the_instruction_set(name):
    code = SHOW + "; isobit.set_isa('scalar'); isobit.set_isa(None); print(isobit.get_isa())"
    assert run_python(code, ISOBIT_ISA=name).stdout.split() == [name, name]


def test_an_impossible_choice_of_the_environment():
    code = """
import isobit, numpy
for call in (isobit.get_isa, lambda: isobit.relu(numpy.ones(3, numpy.float32))):
    try:
        call()
        print("no error")
    except ValueError as error:
        print(error.status.name, error)
isobit.set_isa("scalar")
print(isobit.relu(numpy.float32([-1])))
"""
    lines = run_python(code, ISOBIT_ISA="sse9").stdout.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["E_ISA", "E_ISA"]
    assert "relu: " in lines[1]
    assert all("ISOBIT_ISA=sse9; this machine has: " in line for line in lines[:2]), lines
    assert lines[2] == "[0.]"


def test_info():
    info = isobit.info()
    assert info["versions"]["isobit"] == isobit.version()
    assert info["versions"]["numerics"] == isobit.numerics_version() >= 2
    assert [i["name"] for i in info["isas"]] == [i.name for i in isobit.isas()]
    assert info["isa"] == isobit.get_isa() == ISAS[0]
    assert ISAS[-1] == "scalar" and all(i.missing for i in isobit.isas() if i.name not in ISAS)


def test_importing_starts_nothing_and_prints_nothing():
    code = """
import os, numpy
before = len(os.listdir("/proc/self/task"))
import isobit
assert len(os.listdir("/proc/self/task")) == before
isobit.relu(numpy.ones(4, numpy.float32))
assert len(os.listdir("/proc/self/task")) == before
"""
    done = run_python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_status_texts_are_the_library_s():
    texts = {_library.strerror(s) for s in isobit.Status}
    assert len(texts) == len(isobit.Status)
    with pytest.raises(ValueError) as caught:
        isobit.rmsnorm(np.ones(3, np.float32), eps=-1)
    assert _library.strerror(isobit.Status.E_OPTION) in str(caught.value)


def module(*arguments, **environment):
    code = f"""
import runpy, sys
sys.argv = ["isobit", *{list(arguments)!r}]
runpy.run_module("isobit", run_name="__main__")
"""
    return run_python(code, **environment)


def test_as_a_command(copied):
    done = module()
    assert done.returncode == 0 and json.loads(done.stdout) == isobit.info()
    done = module("--help")
    assert done.returncode == 2 and done.stderr.startswith("usage:") and not done.stdout
    done = module("--blas", ISOBIT_LIBRARY=str(copied))
    assert done.returncode == 1 and "libisobit_blas.so.0" in done.stderr


def test_the_blas_library():
    path = isobit.blas_library()
    if path is None:
        pytest.skip("it was not built")
    assert module("--blas").stdout == path + "\n"
    code = """
import ctypes, numpy
config = ctypes.CDLL(None).openblas_get_config
config.restype = ctypes.c_char_p
print(config().decode())
import isobit
a = numpy.ones((8, 8), numpy.float32)
print((a @ a).sum(), isobit.gemm(a, a).sum())
"""
    done = run_python(code, LD_PRELOAD=path)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0].startswith("isobit "), done
    assert lines[1] == "512.0 512.0"
