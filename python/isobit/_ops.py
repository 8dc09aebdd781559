# SPDX-License-Identifier: MIT
"""The operations of ops.h on NumPy arrays of float32."""
from __future__ import annotations

import ctypes
from typing import Any, Literal, Optional, Tuple, Union, overload

import numpy as np
import numpy.typing as npt

from . import _c
from ._arrays import (
    Floats,
    Heads,
    Rows,
    address,
    empty,
    floats,
    four_dimensions,
    lengths as lengths_of,
    mask_bytes,
    matrix,
    operand,
    output,
    shaped,
    vector,
)
from ._library import check, lib
from ._runtime import context_of, current_pool, number, size

_byref = ctypes.byref


def activation_code(name: Optional[str]) -> int:
    try:
        return _c.ACTIVATIONS[name]
    except (KeyError, TypeError):
        names = ", ".join(repr(known) for known in _c.ACTIVATIONS)
        raise ValueError(f"activation: {name!r} is none of {names}") from None


def residual_rows(value: Any, shape: Tuple[int, ...]) -> Optional[Rows]:
    if value is None:
        return None
    return Rows("residual", shaped("residual", floats("residual", value), shape))


# ----------------------------------------------------------------------------------- products


def gemm(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Optional[npt.ArrayLike] = None,
    activation: Optional[str] = None,
    residual: Optional[npt.ArrayLike] = None,
    out: Optional[Floats] = None,
) -> Floats:
    """
    activation(alpha a @ b + beta out + bias) + residual.

    a is [m][k], b is [k][n], bias [n], residual [m][n] (it may be out). A transposed view (`w.T`)
    is taken as it is, without a copy. out is read only if beta is not 0, and must not overlap a
    or b. activation: None, "relu", "silu", "gelu", "gelu_tanh" or "tanh".
    """
    left, right = matrix("a", a), matrix("b", b)
    (m, k), n = left.shape, right.shape[1]
    if right.shape[0] != k:
        raise ValueError(
            f"a has {k} columns and b has {right.shape[0]} rows (shapes {left.shape}, "
            f"{right.shape})"
        )
    beta = number("beta", beta)
    if beta != 0 and out is None:
        raise ValueError(f"beta is {beta}, and there is no out that it could multiply")
    return product(left, right, number("alpha", alpha), beta, bias, activation, residual, out)


def product(
    left: Floats,
    right: Floats,
    alpha: float,
    beta: float,
    bias: Optional[npt.ArrayLike],
    activation: Optional[str],
    residual: Optional[npt.ArrayLike],
    out: Optional[Floats],
) -> Floats:
    (m, k), n = left.shape, right.shape[1]
    result = output("out", out, (m, n))
    y = Rows("out", result, is_output=True)
    added = None if bias is None else vector("bias", bias, n)
    rest = residual_rows(residual, (m, n))
    left, lda, trans_a = operand(left)
    right, ldb, trans_b = operand(right)
    options = _c.iso_gemm_options(
        size=ctypes.sizeof(_c.iso_gemm_options),
        trans_a=trans_a,
        trans_b=trans_b,
        alpha=alpha,
        beta=beta,
        bias=address(added),
        act=activation_code(activation),
        residual=rest.address if rest else None,
        ldr=rest.ld if rest else 0,
    )
    pool = current_pool()
    status = lib.iso_gemm_f32(
        y.address,
        y.ld,
        address(left),
        lda,
        address(right),
        ldb,
        m,
        n,
        k,
        _byref(options),
        context_of(pool),
    )
    check(status, "gemm", f"out {result.shape}, a {left.shape}, b {right.shape}")
    return result


# --------------------------------------------------------------------------------------- rows


def softmax(
    x: npt.ArrayLike,
    *,
    log: bool = False,
    safe: bool = False,
    lengths: Optional[npt.ArrayLike] = None,
    mask: Optional[npt.ArrayLike] = None,
    out: Optional[Floats] = None,
) -> Floats:
    """
    Softmax, or with log its logarithm, along the last dimension. out may be x.

    lengths [...] says how many elements of each row take part, mask (bool, broadcast to x) which
    do; the others are 0 (log: -inf) in the result and have no effect, not even as NaN. A row of
    which only -inf takes part is NaN, or with safe 0 (log: -inf).
    """
    source = floats("x", x)
    rows = Rows("x", source)
    result = output("out", out, source.shape)
    y = Rows("out", result, is_output=True)
    counts = None
    if lengths is not None:
        shaped_lengths = np.asarray(lengths)
        if shaped_lengths.shape != source.shape[:-1]:
            raise ValueError(
                f"lengths: shape {source.shape[:-1]} expected, got {shaped_lengths.shape}"
            )
        counts = lengths_of("lengths", shaped_lengths.reshape(rows.count), rows.count, rows.n)
    taken = None
    if mask is not None:
        taken = Rows("mask", mask_bytes("mask", mask, source.shape))
    options = _c.iso_softmax_options(
        size=ctypes.sizeof(_c.iso_softmax_options),
        log=bool(log),
        safe=bool(safe),
        lengths=address(counts),
        mask=taken.address if taken else None,
        ldm=taken.ld if taken else 0,
    )
    pool = current_pool()
    status = lib.iso_softmax_f32(
        y.address,
        y.ld,
        rows.address,
        rows.ld,
        rows.count,
        rows.n,
        _byref(options),
        context_of(pool),
    )
    check(status, "softmax", f"out {result.shape}, x {source.shape}")
    return result


def _norm(
    what: str,
    x: npt.ArrayLike,
    gamma: Optional[npt.ArrayLike],
    beta: Optional[npt.ArrayLike],
    eps: float,
    residual: Optional[npt.ArrayLike],
    sum_out: Optional[Floats],
    out: Optional[Floats],
) -> Floats:
    source = floats("x", x)
    rows = Rows("x", source)
    result = output("out", out, source.shape)
    y = Rows("out", result, is_output=True)
    scale = None if gamma is None else vector("gamma", gamma, rows.n)
    shift = None if beta is None else vector("beta", beta, rows.n)
    rest = residual_rows(residual, source.shape)
    total = None
    if sum_out is not None:
        total = Rows("sum_out", output("sum_out", sum_out, source.shape), is_output=True)
    options = _c.iso_norm_options(
        size=ctypes.sizeof(_c.iso_norm_options),
        gamma=address(scale),
        beta=address(shift),
        eps=number("eps", eps),
        residual=rest.address if rest else None,
        ldr=rest.ld if rest else 0,
        sum=total.address if total else None,
        lds=total.ld if total else 0,
    )
    pool = current_pool()
    status = getattr(lib, f"iso_{what}_f32")(
        y.address,
        y.ld,
        rows.address,
        rows.ld,
        rows.count,
        rows.n,
        _byref(options),
        context_of(pool),
    )
    check(status, what, f"out {result.shape}, x {source.shape}, eps {eps}")
    return result


def layernorm(
    x: npt.ArrayLike,
    gamma: Optional[npt.ArrayLike] = None,
    beta: Optional[npt.ArrayLike] = None,
    *,
    eps: float = 1e-5,
    residual: Optional[npt.ArrayLike] = None,
    sum_out: Optional[Floats] = None,
    out: Optional[Floats] = None,
) -> Floats:
    """
    gamma (t - mean(t)) / sqrt(var(t) + eps) + beta along the last dimension, t = x + residual.

    gamma and beta are [n]. sum_out, if given, receives t. out may be x or residual, and so may
    sum_out.
    """
    return _norm("layernorm", x, gamma, beta, eps, residual, sum_out, out)


def rmsnorm(
    x: npt.ArrayLike,
    gamma: Optional[npt.ArrayLike] = None,
    *,
    eps: float = 1e-5,
    residual: Optional[npt.ArrayLike] = None,
    sum_out: Optional[Floats] = None,
    out: Optional[Floats] = None,
) -> Floats:
    """gamma t / sqrt(mean(t^2) + eps) along the last dimension; the rest as for layernorm."""
    return _norm("rmsnorm", x, gamma, None, eps, residual, sum_out, out)


# ------------------------------------------------------------------------------- element-wise


def _elementwise(activation: str, x: npt.ArrayLike, out: Optional[Floats]) -> Floats:
    source = floats("x", x)
    result = output("out", out, source.shape)
    rows = Rows("x", source if source.ndim else source.reshape(1))
    y = Rows("out", result if result.ndim else result.reshape(1), is_output=True)
    options = _c.iso_eltwise_options(
        size=ctypes.sizeof(_c.iso_eltwise_options), act=activation_code(activation)
    )
    pool = current_pool()
    status = lib.iso_eltwise_f32(
        y.address,
        y.ld,
        rows.address,
        rows.ld,
        rows.count,
        rows.n,
        _byref(options),
        context_of(pool),
    )
    check(status, activation, f"out {result.shape}, x {source.shape}")
    return result


def gelu(
    x: npt.ArrayLike, *, approximate: Optional[str] = None, out: Optional[Floats] = None
) -> Floats:
    """0.5 x (1 + erf(x / sqrt 2)), or its usual form with tanh. out may be x."""
    if approximate not in (None, "none", "tanh"):
        raise ValueError(f"approximate: {approximate!r} is none of None, 'none', 'tanh'")
    return _elementwise("gelu_tanh" if approximate == "tanh" else "gelu", x, out)


def silu(x: npt.ArrayLike, *, out: Optional[Floats] = None) -> Floats:
    """x / (1 + exp(-x)). out may be x."""
    return _elementwise("silu", x, out)


def relu(x: npt.ArrayLike, *, out: Optional[Floats] = None) -> Floats:
    """x where x is not negative, else 0; NaN stays NaN. out may be x."""
    return _elementwise("relu", x, out)


def tanh(x: npt.ArrayLike, *, out: Optional[Floats] = None) -> Floats:
    """The hyperbolic tangent. out may be x."""
    return _elementwise("tanh", x, out)


# ---------------------------------------------------------------------------------- attention


def _broadcast(name: str, array: Floats, shape: Tuple[int, ...], out_of: str) -> None:
    """Batch and head may be 1 where the queries have more."""
    for have, want in zip(array.shape, shape):
        if have not in (1, want):
            break
    else:
        if array.shape[-2:] == shape[-2:]:
            return
    raise ValueError(f"{name}: shape {shape} expected {out_of}, got {array.shape}")


@overload
def attention(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    scale: Optional[float] = None,
    causal: bool = False,
    past: int = 0,
    key_lengths: Optional[npt.ArrayLike] = None,
    bias: Optional[npt.ArrayLike] = None,
    window: Optional[int] = None,
    softcap: Optional[float] = None,
    return_weights: Literal[False] = False,
    out: Optional[Floats] = None,
) -> Floats: ...


@overload
def attention(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    scale: Optional[float] = None,
    causal: bool = False,
    past: int = 0,
    key_lengths: Optional[npt.ArrayLike] = None,
    bias: Optional[npt.ArrayLike] = None,
    window: Optional[int] = None,
    softcap: Optional[float] = None,
    return_weights: Literal[True],
    out: Optional[Floats] = None,
) -> Tuple[Floats, Floats]: ...


def attention(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    scale: Optional[float] = None,
    causal: bool = False,
    past: int = 0,
    key_lengths: Optional[npt.ArrayLike] = None,
    bias: Optional[npt.ArrayLike] = None,
    window: Optional[int] = None,
    softcap: Optional[float] = None,
    return_weights: bool = False,
    out: Optional[Floats] = None,
) -> Union[Floats, Tuple[Floats, Floats]]:
    """
    softmax(scale q k^T + bias) v for each batch item and head.

    q is [batch][head][Sq][dh], k and v [batch][head][Sk][dh]; batch and head may be missing, and
    be 1 in k and v to be the same for all. Transposed views such as
    `x.reshape(B, S, H, dh).transpose(0, 2, 1, 3)` are taken without a copy. scale is 1/sqrt(dh)
    unless given. causal: query i sees the keys 0 ... past + i. key_lengths [batch]: keys beyond
    are never read. bias is added to the scores and broadcast to [batch][head][Sq][Sk]; -inf
    removes a key. window: each query sees only that many of the keys it would see, the last ones.
    softcap: scores are softcap tanh(scale q k^T / softcap) before the bias is added.
    A query that sees no key gives 0. With return_weights the result is the pair of the output and
    the weights [batch][head][Sq][Sk].
    """
    queries = floats("q", q)
    shape_of_result = queries.shape
    queries = four_dimensions("q", queries)
    keys = four_dimensions("k", floats("k", k))
    values = four_dimensions("v", floats("v", v))
    B, H, Sq, dh = queries.shape
    Sk = keys.shape[2]
    _broadcast("k", keys, (B, H, Sk, dh), f"for q {queries.shape}")
    _broadcast("v", values, (B, H, Sk, dh), f"for q {queries.shape} and k {keys.shape}")
    if scale is None:
        scale = 1.0 / float(np.sqrt(dh)) if dh else 1.0
    result = output("out", out, shape_of_result)
    o = Heads("out", four_dimensions("out", result), queries.shape, is_output=True)
    weights = empty(shape_of_result[:-1] + (Sk,)) if return_weights else None
    w = None
    if weights is not None:
        w = Heads("weights", four_dimensions("weights", weights), (B, H, Sq, Sk), is_output=True)
    counts = None if key_lengths is None else lengths_of("key_lengths", key_lengths, B, Sk)
    added = None
    if bias is not None:
        scores = floats("bias", bias)
        if scores.ndim > 4 or any(
            have not in (1, want)
            for have, want in zip(scores.shape[::-1], (Sk, Sq, H, B))
        ):
            raise ValueError(
                f"bias: shape {scores.shape} does not broadcast to {(B, H, Sq, Sk)}"
            )
        scores = scores.reshape((1,) * (4 - scores.ndim) + scores.shape)
        added = Heads("bias", scores, (B, H, Sq, Sk))
    held = [
        Heads(name, x, (B, H, n, dh))
        for name, x, n in (("q", queries, Sq), ("k", keys, Sk), ("v", values, Sk))
    ]
    shape = _c.iso_attention_shape(
        B, H, Sq, Sk, dh, held[0].strides, held[1].strides, held[2].strides, o.strides
    )
    options = _c.iso_attention_options(
        size=ctypes.sizeof(_c.iso_attention_options),
        scale=number("scale", scale),
        causal=bool(causal),
        past=size("past", past),
        key_lengths=address(counts),
        bias=added.address if added else None,
        weights=w.address if w else None,
        window=0 if window is None else size("window", window),
        softcap=0.0 if softcap is None else number("softcap", softcap),
    )
    if window is not None and not options.window:
        raise ValueError("window: 1 at least, or None; got 0")
    if softcap is not None and not 0.0 < options.softcap < float("inf"):
        raise ValueError(f"softcap: above 0 and finite, or None; got {softcap}")
    if added:
        options.bias_strides = added.strides
    if w:
        options.weights_strides = w.strides
    pool = current_pool()
    status = lib.iso_attention_f32(
        o.address,
        held[0].address,
        held[1].address,
        held[2].address,
        _byref(shape),
        _byref(options),
        context_of(pool),
    )
    check(status, "attention", f"out {result.shape}, q {queries.shape}, k {keys.shape}")
    if weights is None:
        return result
    return result, weights
