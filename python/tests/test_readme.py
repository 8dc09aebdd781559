# SPDX-License-Identifier: MIT
"""The example of the README does what it shows."""
import doctest
import os

import isobit
from conftest import ROOT


def test_the_example(monkeypatch):
    monkeypatch.chdir(ROOT)
    try:
        failed, tried = doctest.testfile(os.path.join(ROOT, "python", "README.md"), False,
                                         encoding="utf-8")
    finally:
        isobit.set_isa(None)
    assert tried >= 10 and failed == 0


def test_every_public_name_is_there():
    for name in isobit.__all__:
        assert hasattr(isobit, name)
    with open(os.path.join(ROOT, "python", "README.md"), encoding="utf-8") as file:
        text = file.read()
    for name in isobit.__all__:
        if name[0].islower():
            assert name in text, f"{name} is not in the README"
