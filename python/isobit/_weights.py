# SPDX-License-Identifier: MIT
"""Linear layers and embeddings, whose weights are floats or numbers of 16, 8 or 4 bits."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _c
from ._arrays import (
    Floats,
    Rows,
    address,
    aligned_floats,
    at_most,
    contiguous,
    floats,
    integers,
    matrix,
    operand,
    output,
    rows_of_blocks,
    vector,
)
from ._errors import Status
from ._few_bits import Format
from ._library import check, lib
from ._ops import activation_code, product, residual_rows
from ._runtime import context_of, current_pool, number

_byref = ctypes.byref


def _room(bytes_of: Callable[..., int], what: str, *arguments: Any) -> Floats:
    """Memory for packed weights."""
    needed = ctypes.c_size_t()
    check(bytes_of(_byref(needed), *arguments), "pack", what)
    return aligned_floats(max(1, (needed.value + 3) // 4))


class PackedLinear:
    """
    Weights of a linear layer, packed once for many products: y = x weight^T + bias.

    weight is [n][k], as in torch.nn.Linear; it is copied. x, bias and y are float32. dtype says
    what the packed weights are, and so which arrays are taken:

        "f32"       float32
        "f16"       float16, or float32, which is rounded (see round_w16)
        "bf16"      bfloat16 as uint16, the upper half of a float32, or float32, which is rounded
        "q8", "q4"  8 or 4 bits: float32, which becomes what quantize_blocks makes of it, or such
                    blocks as uint8 [n][bytes]; with groups of 32 those of GGUF's Q8_0 and Q4_0
        "int8"      float32, whose rows become integers, each with a scale

    With all but "int8" y has the bits of float32 weights of the same values. With "int8" the rows
    of x become integers, too, as quantize_int8 makes them: y differs by about a hundredth.
    `group` and scale_dtype belong to "q8" and "q4"; see quantize_blocks. With rows="int8",
    for these two, rows of x become integers in blocks of 32: faster than "f32", with an
    error that is small beside that of the 4 bits, and smaller than that of "int8".

    The packed form is the same for all instruction sets. May be used by any number of threads at
    once.
    """

    n: int
    k: int

    def __init__(
        self,
        weight: npt.ArrayLike,
        bias: Optional[npt.ArrayLike] = None,
        *,
        dtype: str = "f32",
        group: Optional[int] = None,
        scale_dtype: Optional[str] = None,
        rows: str = "f32",
    ) -> None:
        self._format, self.rows = Format(dtype, group, scale_dtype), rows
        if rows not in ("f32", "int8"):
            raise ValueError(f"rows: {rows!r} is none of 'f32', 'int8'")
        if rows == "int8" and dtype not in ("q8", "q4"):
            raise ValueError(f"rows: 'int8' is for dtype 'q8' or 'q4', got {dtype!r}")
        w = self._format.stored("weight", weight)
        self.n, self.k = int(w.shape[0]), self._format.columns(w)
        self._bias = None if bias is None else vector("bias", bias, self.n).copy()
        self._what = f"weight {self.shape}" + ("" if dtype == "f32" else f", {self._format}")
        self._packed: Any
        if self._format.c is not None:
            self._pack_blocks(w, self._format.block_bytes, self._format.c)
        else:
            self._pack(w, self._format.dtype)

    def _pack(self, w: npt.NDArray[Any], dtype: str) -> None:
        last: Tuple[int, ...] = ()
        if dtype in _c.W16:
            self._packed, self._linear = _c.iso_packed_w16(), lib.iso_linear_w16
            bytes_of, pack, last = lib.iso_pack_w16_bytes, lib.iso_pack_w16, (_c.W16[dtype],)
        elif dtype == "int8":
            self._packed, self._linear = _c.iso_packed_s8(), lib.iso_linear_s8
            bytes_of, pack = lib.iso_pack_s8_bytes, lib.iso_pack_s8
        else:
            self._packed, self._linear = _c.iso_packed(), lib.iso_linear_f32
            bytes_of, pack = lib.iso_pack_f32_bytes, lib.iso_pack_f32
        self._data = _room(bytes_of, self._what, self.n, self.k)
        w, ldw, trans = operand(w)
        check(self._call(pack, w, ldw, trans, *last), "pack", self._what)

    def _call(self, pack: Any, w: npt.NDArray[Any], ldw: int, *form: Any) -> int:
        pool = current_pool()
        status: int = pack(
            _byref(self._packed),
            address(self._data),
            self._data.nbytes,
            address(w),
            ldw,
            self.n,
            self.k,
            *form,
            context_of(pool),
        )
        return status

    def _pack_blocks(
        self, w: npt.NDArray[np.uint8], block_bytes: int, form: _c.iso_q_format
    ) -> None:
        linear = lib.iso_linear_q_s8 if self.rows == "int8" else lib.iso_linear_q
        self._packed, self._linear = _c.iso_packed_q(), linear
        self._data = _room(lib.iso_pack_q_bytes, self._what, self.n, self.k, _byref(form))
        w, ldw = rows_of_blocks(w, block_bytes)
        status = self._call(lib.iso_pack_q, w, ldw, _byref(form))
        reason = "; the scale of a block is not finite" if status == Status.E_RANGE else ""
        check(status, "pack", self._what + reason)

    def __repr__(self) -> str:
        form = self._format
        groups = "" if form.group is None else f", group={form.group}"
        if form.scale_dtype == "f32":
            groups += ", scale_dtype='f32'"
        if self.rows != "f32":
            groups += f", rows={self.rows!r}"
        return (
            f"PackedLinear(n={self.n}, k={self.k}, dtype={form.dtype!r}{groups}, "
            f"bias={self._bias is not None})"
        )

    def __reduce__(self) -> Any:
        raise TypeError("PackedLinear cannot be pickled or copied; pickle the weights")

    @property
    def shape(self) -> Tuple[int, int]:
        return self.n, self.k

    @property
    def dtype(self) -> str:
        return self._format.dtype

    @property
    def group(self) -> Optional[int]:
        """How many weights share a scale, of "q8" and "q4"; None of others."""
        return self._format.group

    @property
    def scale_dtype(self) -> Optional[str]:
        """Of "q8" and "q4": "f16" or "f32"; None of others."""
        return self._format.scale_dtype

    @property
    def nbytes(self) -> int:
        return int(self._data.nbytes)

    def __call__(
        self,
        x: npt.ArrayLike,
        *,
        activation: Optional[str] = None,
        residual: Optional[npt.ArrayLike] = None,
        out: Optional[Floats] = None,
    ) -> Floats:
        return self._run(x, self._bias, activation, residual, out)

    def _run(
        self,
        x: npt.ArrayLike,
        bias: Optional[Floats],
        activation: Optional[str],
        residual: Optional[npt.ArrayLike],
        out: Optional[Floats],
    ) -> Floats:
        source = floats("x", x)
        shape = _linear_shape(source, self.n, self.k)
        rows = Rows("x", source)
        result = output("out", out, shape)
        y = Rows("out", result, is_output=True)
        rest = residual_rows(residual, shape)
        options = _c.iso_linear_options(
            size=ctypes.sizeof(_c.iso_linear_options),
            bias=address(bias),
            act=activation_code(activation),
            residual=rest.address if rest else None,
            ldr=rest.ld if rest else 0,
        )
        pool = current_pool()
        status = self._linear(
            y.address,
            y.ld,
            rows.address,
            rows.ld,
            _byref(self._packed),
            rows.count,
            _byref(options),
            context_of(pool),
        )
        check(status, "linear", f"out {result.shape}, x {source.shape}, {self._what}")
        return result


def _linear_shape(x: Floats, n: int, k: int) -> Tuple[int, ...]:
    if x.ndim == 0:
        raise ValueError("x: at least 1 dimension expected, got 0")
    if x.shape[-1] != k:
        raise ValueError(f"x: {k} columns expected (weight is {(n, k)}), got shape {x.shape}")
    return x.shape[:-1] + (n,)


def linear(
    x: npt.ArrayLike,
    weight: Union[PackedLinear, npt.ArrayLike],
    bias: Optional[npt.ArrayLike] = None,
    *,
    activation: Optional[str] = None,
    residual: Optional[npt.ArrayLike] = None,
    out: Optional[Floats] = None,
) -> Floats:
    """
    activation(x weight^T + bias) + residual, for x [...][k] and weight [n][k].

    weight is an array, or a PackedLinear, of any dtype; one of float32 gives the bits of the
    array. Each row has the same bits whatever rows are with it. residual [...][n] may be out.
    """
    if isinstance(weight, PackedLinear):
        if bias is None:
            return weight(x, activation=activation, residual=residual, out=out)
        if weight._bias is not None:
            raise ValueError("bias: the PackedLinear has one of its own")
        added = vector("bias", bias, weight.n)
        return weight._run(x, added, activation, residual, out)
    w = matrix("weight", weight)
    source = floats("x", x)
    shape = _linear_shape(source, *w.shape)
    rows = Rows("x", source)
    result = output("out", out, shape)
    y = Rows("out", result, is_output=True)
    rest = residual_rows(residual, shape)
    product(
        rows.array,
        w.T,
        1.0,
        0.0,
        bias,
        activation,
        rest.array if rest else None,
        y.array,
    )
    return result


# --------------------------------------------------------------------------------- embeddings


def embed(
    ids: npt.ArrayLike,
    table: npt.ArrayLike,
    *,
    scale: float = 1.0,
    positions: Optional[npt.ArrayLike] = None,
    position_rows: Optional[npt.ArrayLike] = None,
    dtype: str = "f32",
    group: Optional[int] = None,
    scale_dtype: Optional[str] = None,
    out: Optional[Floats] = None,
) -> Floats:
    """
    scale table[ids] + positions[position_rows], for ids [...] and table [vocabulary][d].

    dtype says what the table is: "f32" float32, "f16" float16, "bf16" uint16, "q8" or "q4" rows
    of blocks as uint8, as quantize_blocks makes them; `group` and scale_dtype are those of the
    blocks. Its values become float32 as those of a PackedLinear do. positions is float32
    [count][d]; position_rows is broadcast to ids, and 0, 1, 2 ... along their last dimension
    unless it is given.
    """
    form = Format(dtype, group, scale_dtype, ("f32", "f16", "bf16", "q8", "q4"))
    rows = contiguous(form.stored("table", table, converts=False))
    vocabulary, d = rows.shape[0], form.columns(rows)
    wanted = at_most("ids", integers("ids", ids), vocabulary - 1)
    result = output("out", out, wanted.shape + (d,))
    y = Rows("out", result, is_output=True)
    places, where = None, None
    if positions is not None:
        places = contiguous(matrix("positions", positions))
        if places.shape[1] != d:
            raise ValueError(f"positions: {d} columns expected, got shape {places.shape}")
        last = wanted.shape[-1] if wanted.ndim else 1
        given = np.arange(last) if position_rows is None else position_rows
        chosen = at_most("position_rows", integers("position_rows", given), len(places) - 1)
        where = _uint32(_broadcast("position_rows", chosen, wanted.shape))
    elif position_rows is not None:
        raise ValueError("position_rows: there are no positions")
    numbers = _uint32(wanted)
    first = [y.address, y.ld, address(numbers), wanted.size, address(rows)]
    rest = [vocabulary, d, number("scale", scale), address(places), address(where)]
    rest += [0 if places is None else len(places)]
    pool = current_pool()
    context = context_of(pool)
    if form.c is not None:
        status = lib.iso_embed_q(*first, _byref(form.c), *rest, context)
    elif form.dtype in _c.W16:
        status = lib.iso_embed_w16(*first, _c.W16[form.dtype], *rest, context)
    else:
        status = lib.iso_embed_f32(*first, *rest, context)
    check(status, "embed", f"out {result.shape}, table {(vocabulary, d)}, {form}")
    return result


def _broadcast(name: str, array: npt.NDArray[Any], shape: Tuple[int, ...]) -> npt.NDArray[Any]:
    try:
        return np.broadcast_to(array if shape else array.reshape(()), shape)
    except ValueError:
        raise ValueError(f"{name}: shape {array.shape} does not broadcast to {shape}") from None


def _uint32(array: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(array, np.uint32)
