# SPDX-License-Identifier: MIT
"""
isobit: Transformer kernels for CPUs that give the same bits on every instruction set.

Arrays are NumPy's, float32; nothing is converted, but weights to a dtype that you name. Errors are
TypeError and ValueError, and IsobitError (with .status) for what the library refuses. One thread
unless set_num_threads says otherwise. Calls give up the GIL.
"""
from ._arrays import Floats
from ._errors import IsobitError, IsobitMemoryError, IsobitValueError, Status
from ._few_bits import quantize_blocks, quantize_int8, round_w16
from ._library import blas_library
from ._model import Model
from ._ops import (
    attention,
    gelu,
    gemm,
    layernorm,
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
    get_numerics,
    info,
    isas,
    numerics_version,
    set_isa,
    set_num_threads,
    set_numerics,
    version,
)
from ._weights import PackedLinear, embed, linear

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
    "embed",
    "gelu",
    "gemm",
    "get_isa",
    "get_num_threads",
    "get_numerics",
    "info",
    "isas",
    "layernorm",
    "linear",
    "numerics_version",
    "quantize_blocks",
    "quantize_int8",
    "relu",
    "rmsnorm",
    "round_w16",
    "set_isa",
    "set_num_threads",
    "set_numerics",
    "silu",
    "softmax",
    "tanh",
    "version",
]
