# SPDX-License-Identifier: MIT
"""
Finds and loads the shared libraries: where ISOBIT_LIBRARY says, else in the package (a wheel
carries them), else in the system. ctypes.CDLL gives up the GIL during each call.
"""
from __future__ import annotations

import ctypes
import os
import re
from typing import Optional, Tuple

from . import _c
from ._errors import Status, error_of

CORE_NAME = "libisobit.so.0"
MODEL_NAME = "libisobit_model.so.0"
BLAS_NAME = "libisobit_blas.so.0"
OWN_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries")
OLDEST = (0, 1)  # the version whose headers _c.py mirrors


def _places() -> Tuple[str, Optional[str]]:
    """The core library as a path or a bare name, and the folder that it is in."""
    wanted = os.environ.get("ISOBIT_LIBRARY")
    if wanted:
        wanted = os.path.abspath(wanted)
        if os.path.isdir(wanted):
            return os.path.join(wanted, CORE_NAME), wanted
        return wanted, os.path.dirname(wanted)
    own = os.path.join(OWN_FOLDER, CORE_NAME)
    if os.path.exists(own):
        return own, OWN_FOLDER
    return CORE_NAME, None


def _explain(reason: str) -> str:
    wanted = os.environ.get("ISOBIT_LIBRARY")
    where = (
        f"ISOBIT_LIBRARY={wanted}"
        if wanted
        else f"ISOBIT_LIBRARY is not set, nothing in {OWN_FOLDER}, nor in the system"
    )
    return f"isobit: cannot load {CORE_NAME}: {where}: {reason}".replace("\n", " ")


def _address(library: ctypes.CDLL, name: str) -> Optional[int]:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def _load() -> Tuple[ctypes.CDLL, Optional[ctypes.CDLL], str]:
    path, folder = _places()
    try:
        core = ctypes.CDLL(path)
        version = core.iso_version
        version.restype = ctypes.c_char_p
        text = version().decode()
    except (OSError, AttributeError) as error:
        raise ImportError(_explain(str(error))) from None
    if tuple(int(n) for n in re.findall(r"\d+", text)[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(_explain(f"version {text} is too old, {oldest} is needed"))

    model: Optional[ctypes.CDLL] = None
    why = ""
    try:
        model = ctypes.CDLL(os.path.join(folder, MODEL_NAME) if folder else MODEL_NAME)
        # Where another copy of the core is in the process (LD_PRELOAD), the models may use that
        # one; then everything does: an instruction set or a pool must mean the same to both.
        if _address(model, "iso_version") != _address(core, "iso_version"):
            core = model
        _c.declare(model, _c.MODEL)
    except (OSError, AttributeError) as error:
        model, why = None, str(error).replace("\n", " ")
    try:
        _c.declare(core, _c.CORE)
    except AttributeError as error:
        raise ImportError(_explain(str(error))) from None
    return core, model, why


lib, _model, _why_no_model = _load()


def model_lib() -> ctypes.CDLL:
    """The model library, which an installation may lack."""
    if _model is None:
        raise ImportError(f"isobit: cannot load {MODEL_NAME}: {_why_no_model}")
    return _model


def blas_library() -> Optional[str]:
    """
    The path of libisobit_blas beside the library in use, or None: with it in LD_PRELOAD the
    single-precision BLAS of another program (Debian's NumPy, PyTorch) is isobit's.
    """
    folder = _places()[1]
    path = os.path.join(folder, BLAS_NAME) if folder else ""
    return path if os.path.exists(path) else None


def strerror(status: int) -> str:
    return str(lib.iso_strerror(status).decode())


def check(status: int, what: str, details: str = "") -> None:
    """Raises unless the status is OK: 'gemm: TEXT OF THE LIBRARY (details)'."""
    if status == 0:
        return
    if status == Status.E_ISA:  # the environment names one that cannot run
        details = (
            f"ISOBIT_ISA={os.environ.get('ISOBIT_ISA', '')}; "
            f"this machine has: {lib.iso_isa_names().decode()}"
        )
    message = f"{what}: {strerror(status)}" + (f" ({details})" if details else "")
    raise error_of(status, message)
