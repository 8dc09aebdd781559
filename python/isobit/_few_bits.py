# SPDX-License-Identifier: MIT
"""
Numbers of 16, 8 and 4 bits: which arrays hold them, and how floats become them.

ops.h says what a block is: its scale, then the numbers of a group.
"""
from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np
import numpy.typing as npt

from . import _c
from ._arrays import Floats, Rows, any_array, address, empty, floats, matrix, output, two_dimensions
from ._library import check, lib
from ._runtime import context_of, current_pool, size

Blocks = npt.NDArray[np.uint8]

DTYPES = ("f32", "f16", "bf16", "int8", "q8", "q4")
GROUPS = (16, 32, 64, 128)
_BITS = {"q8": 8, "q4": 4}


def one_of(name: str, value: Any, known: Tuple[str, ...]) -> str:
    if isinstance(value, str) and value in known:
        return value
    raise ValueError(f"{name}: {value!r} is none of {', '.join(map(repr, known))}")


class Format:
    """A type of weights: one of DTYPES, of "q8" and "q4" also the group and the type of scales."""

    def __init__(
        self,
        dtype: Any,
        group: Any = None,
        scale_dtype: Any = None,
        known: Tuple[str, ...] = DTYPES,
    ) -> None:
        self.dtype = one_of("dtype", dtype, known)
        self.group: Optional[int] = None
        self.scale_dtype: Optional[str] = None
        self.c: Optional[_c.iso_q_format] = None
        if self.dtype not in _BITS:
            for name, value in (("group", group), ("scale_dtype", scale_dtype)):
                if value is not None:
                    raise ValueError(f"{name}: dtype {self.dtype!r} has none, got {value!r}")
            return
        self.bits = _BITS[self.dtype]
        self.group = 32 if group is None else size("group", group)
        if self.group not in GROUPS:
            raise ValueError(f"group: {self.group} is none of {', '.join(map(str, GROUPS))}")
        self.scale_dtype = (
            "f16" if scale_dtype is None else one_of("scale_dtype", scale_dtype, tuple(_c.SCALES))
        )
        self.c = _c.iso_q_format(
            bits=self.bits, group=self.group, scale=_c.SCALES[self.scale_dtype]
        )
        self.block_bytes = (2 if self.scale_dtype == "f16" else 4) + self.group * self.bits // 8

    def __str__(self) -> str:
        if self.group is None:
            return self.dtype
        return f"{self.dtype}, groups of {self.group} with a scale of {self.scale_dtype}"

    def columns(self, array: npt.NDArray[Any]) -> int:
        """Of the matrix that an array of `stored` holds."""
        width = int(array.shape[1])
        return width if self.group is None else width // self.block_bytes * self.group

    # ------------------------------------------------------------------------------- arrays

    def stored(self, name: str, value: Any, converts: bool = True) -> npt.NDArray[Any]:
        """
        A matrix as the library takes it: float32, 16 bits (of "bf16" as uint16), or rows of
        blocks. With `converts` floats become what the format has.
        """
        array = two_dimensions(name, any_array(name, value))
        takes = "float32"
        if self.dtype == "f16":
            takes = "float16"
            if array.dtype == np.float16:
                return array
        elif self.dtype == "bf16":
            takes = "bfloat16, as uint16"
            if array.dtype == np.uint16:
                return array
            if array.dtype.name == "bfloat16" and array.dtype.itemsize == 2:  # of ml_dtypes
                return array.view(np.uint16)
        elif self.group is not None:
            takes = "blocks, as uint8,"
            if array.dtype == np.uint8:
                return self._blocks(name, array)
        if array.dtype != np.float32 or not (converts or takes == "float32"):
            also = " or float32" if converts and takes != "float32" else ""
            raise TypeError(f"{name}: {takes}{also} expected, got {array.dtype}")
        if self.dtype in _c.W16:
            return self._rounded(array)
        return array if self.group is None else self.quantized(name, array)

    def _blocks(self, name: str, array: npt.NDArray[Any]) -> Blocks:
        if array.shape[1] % self.block_bytes:
            raise ValueError(
                f"{name}: rows of {array.shape[1]} bytes are not whole blocks of "
                f"{self.block_bytes} ({self})"
            )
        return array

    def _rounded(self, array: Floats) -> npt.NDArray[Any]:
        exact = round_w16(array, self.dtype)
        if self.dtype == "f16":
            return exact.astype(np.float16)
        return (exact.view(np.uint32) >> np.uint32(16)).astype(np.uint16)

    def quantized(self, name: str, array: Floats) -> Blocks:
        """See quantize_blocks."""
        assert self.group is not None
        n, k = array.shape
        if k % self.group:
            raise ValueError(f"{name}: {k} columns are not whole groups of {self.group}")
        largest = 2 ** (self.bits - 1) - 1
        groups = array.reshape(n, k // self.group, self.group)
        most = np.abs(groups).max(axis=2, initial=0)
        if not np.isfinite(most).all():
            raise ValueError(f"{name}: a value is not finite, and {self.dtype} has no such numbers")
        with np.errstate(all="ignore"):
            scales = (most / np.float32(largest)).astype(
                np.float16 if self.scale_dtype == "f16" else np.float32
            )
            if not np.isfinite(scales).all():
                raise ValueError(
                    f"{name}: {most.max()} / {largest} is too large for a scale of f16; "
                    "scale_dtype='f32' takes it"
                )
            wide = scales.astype(np.float32)[:, :, None]
            q = np.where(wide > 0, np.rint(groups / wide), 0)
        numbers = np.clip(q, -largest, largest).astype(np.int8).view(np.uint8)
        if self.bits == 4:
            half = self.group // 2
            numbers = numbers + np.uint8(8)  # modulo 256: 1 to 15
            numbers = numbers[:, :, :half] | (numbers[:, :, half:] << np.uint8(4))
        parts = [scales.reshape(n, k // self.group, 1).view(np.uint8), numbers]
        blocks: Blocks = np.concatenate(parts, axis=2)
        return blocks.reshape(n, k // self.group * self.block_bytes)


# ---------------------------------------------------------------------------------- functions


def quantize_blocks(
    weight: npt.ArrayLike,
    dtype: str = "q8",
    *,
    group: Optional[int] = None,
    scale_dtype: Optional[str] = None,
) -> Blocks:
    """
    Blocks of a matrix [n][k], as uint8 [n][bytes]: those that PackedLinear and embed take.

    dtype is "q8" or "q4"; `group` (16, 32, 64 or 128; 32) numbers of a row share a scale, of
    scale_dtype "f16" or "f32" ("f16"). In float32, for each group:

        scale = most / 127 (q4: most / 7), most the largest magnitude, rounded to scale_dtype
        q = x / scale, rounded to the nearest integer, of two that are as near to the even one,
            then to -127 ... 127 (q4: -7 ... 7); 0 where the scale is 0

    A number then stands for q scale. With groups of 32 and "f16" the blocks are Q8_0 and Q4_0 of
    GGUF. A value that is not finite, or too large for a scale of "f16", is a ValueError.
    """
    return Format(dtype, group, scale_dtype, tuple(_BITS)).quantized(
        "weight", matrix("weight", weight)
    )


def quantize_int8(x: npt.ArrayLike) -> Tuple[npt.NDArray[np.int8], Floats]:
    """
    Rows of x [...][n] as integers, int8 [...][n], and their scales, float32 [...].

    In float32: scale = most / 127, most the largest magnitude of the row, and q = x (127 / most),
    rounded to the nearest integer, of two that are as near to the even one. A row with most below
    2^-119 is 0, with scale 0; one with a NaN or an infinity has scale NaN, and all its q are 0.
    """
    source = floats("x", x)
    rows = Rows("x", source)
    q = np.empty(source.shape, np.int8)
    scales = empty(source.shape[:-1])
    pool = current_pool()
    status = lib.iso_quantize_s8(
        address(q),
        rows.n,
        address(scales),
        rows.address,
        rows.ld,
        rows.count,
        rows.n,
        context_of(pool),
    )
    check(status, "quantize_int8", f"x {source.shape}")
    return q, scales


def round_w16(
    x: npt.ArrayLike, dtype: str = "bf16", *, out: Optional[Floats] = None
) -> Floats:
    """
    x rounded to numbers of 16 bits, "f16" or "bf16", still as float32. out may be x.

    To the nearest one, of two that are as near to the even one. What is too large becomes an
    infinity ("f16": from 65520 on), subnormal numbers are kept, a NaN stays one.
    """
    name = one_of("dtype", dtype, tuple(_c.W16))
    source = floats("x", x)
    flat = source.reshape(1) if source.ndim == 0 else source
    result = output("out", out, source.shape)
    rows, y = Rows("x", flat), Rows("out", result.reshape(flat.shape), is_output=True)
    pool = current_pool()
    status = lib.iso_round_w16(
        y.address, y.ld, rows.address, rows.ld, rows.count, rows.n, _c.W16[name], context_of(pool)
    )
    check(status, "round_w16", f"out {result.shape}, x {source.shape}")
    return result
