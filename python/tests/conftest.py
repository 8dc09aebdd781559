# SPDX-License-Identifier: MIT
import os
import subprocess
import sys

import numpy as np
import pytest

import isobit

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "models", "g2p-en")
ISAS = [isa.name for isa in isobit.isas() if isa.missing is None]
U = 2.0**-24  # half the distance between 1 and the next float


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(params=ISAS)
def isa(request):
    """The test runs with each instruction set of the machine."""
    isobit.set_isa(request.param)
    yield request.param
    isobit.set_isa(None)


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    isobit.set_num_threads(1)


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def bits(array):
    return np.ascontiguousarray(array).view(np.uint32)


def same_bits(a, b):
    return a.shape == b.shape and np.array_equal(bits(a), bits(b))


def close(got, wanted, bound):
    """Each element within its bound, which is not so wide that all would pass."""
    assert got.dtype == np.float32 and got.shape == wanted.shape
    worst = np.max(np.abs(got.astype(np.float64) - wanted) / bound, initial=0)
    assert worst <= 1, f"error / bound is {worst}"


def run_python(code, **environment):
    """Code in a process of its own, with the same package."""
    everything = {**os.environ, **environment}
    package = os.path.dirname(os.path.dirname(isobit.__file__))
    everything["PYTHONPATH"] = os.pathsep.join([package, os.path.dirname(__file__)])
    everything = {name: value for name, value in everything.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-c", code], env=everything, capture_output=True, text=True, timeout=100
    )
