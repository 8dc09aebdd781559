# SPDX-License-Identifier: MIT
"""
isobit: Transformer kernels for CPUs that give the same bits on every instruction set.

Arrays are NumPy's, float32; nothing is converted. Errors are TypeError and ValueError, and
IsobitError (with .status) for what the library refuses. One thread unless set_num_threads says
otherwise. Calls give up the GIL.
"""
from ._arrays import Floats
from ._errors import IsobitError, IsobitMemoryError, IsobitValueError, Status
from ._library import blas_library
from ._model import Model
from ._ops import (
    PackedLinear,
    attention,
    gelu,
    gemm,
    layernorm,
    linear,
    relu,
    rmsnorm,
    silu,
    softmax,
    tanh,
)
from ._results import Hypothesis, ModelInfo, Token
from ._runtime import (
    Isa,
    get_isa,
    get_num_threads,
    info,
    isas,
    numerics_version,
    set_isa,
    set_num_threads,
    version,
)

__version__ = "0.1.0"

__all__ = [
    "Floats",
    "Hypothesis",
    "Isa",
    "IsobitError",
    "IsobitMemoryError",
    "IsobitValueError",
    "Model",
    "ModelInfo",
    "PackedLinear",
    "Status",
    "Token",
    "attention",
    "blas_library",
    "gelu",
    "gemm",
    "get_isa",
    "get_num_threads",
    "info",
    "isas",
    "layernorm",
    "linear",
    "numerics_version",
    "relu",
    "rmsnorm",
    "set_isa",
    "set_num_threads",
    "silu",
    "softmax",
    "tanh",
    "version",
]
