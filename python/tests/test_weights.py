# SPDX-License-Identifier: MIT
"""
Weights of 16, 8 and 4 bits. What blocks mean is written here a second time, number by number;
products are compared with NumPy in double precision.
"""
import gc
import struct

import numpy as np
import pytest

import isobit
from conftest import ISAS, U, close, normal, same_bits
from test_bad_inputs import f, refuses
from test_ops import double, product_bound

FORMATS = [("q8", g, s) for g in (16, 32, 64, 128) for s in ("f16", "f32")]
FORMATS += [("q4", g, s) for g in (16, 32, 64, 128) for s in ("f16", "f32")]
ALL = [dict(dtype=d) for d in ("f32", "f16", "bf16", "int8")]
ALL += [dict(dtype=d, group=g, scale_dtype=s) for d, g, s in FORMATS]
ROWS_OF_INT8 = [dict(dtype=d, group=64, scale_dtype="f32", rows="int8") for d in ("q8", "q4")]


def as_words(how):
    return " ".join(str(value) for value in how.values())


def blocks_of(dtype, numbers, scales, scale_dtype):
    """Bytes as ops.h has them, of a list of numbers for each scale."""
    text = b""
    for q, scale in zip(numbers, scales):
        text += struct.pack("=e" if scale_dtype == "f16" else "=f", scale)
        if dtype == "q8":
            text += struct.pack(f"{len(q)}b", *q)
        else:
            half = len(q) // 2
            text += bytes((q[i] + 8) + 16 * (q[i + half] + 8) for i in range(half))
    return np.frombuffer(text, np.uint8)


def values_of(blocks, dtype, group, scale_dtype):
    """In double: the other way."""
    wide = 2 if scale_dtype == "f16" else 4
    bytes_of_block = wide + (group if dtype == "q8" else group // 2)
    rows = []
    for row in blocks:
        values = []
        for at in range(0, len(row), bytes_of_block):
            block = row[at : at + bytes_of_block].tobytes()
            (scale,) = struct.unpack("=e" if wide == 2 else "=f", block[:wide])
            if dtype == "q8":
                numbers = struct.unpack(f"{group}b", block[wide:])
            else:
                numbers = [byte % 16 - 8 for byte in block[wide:]]
                numbers += [byte // 16 - 8 for byte in block[wide:]]
            values += [number * scale for number in numbers]
        rows.append(values)
    return np.array(rows, np.float64)


def bf16_of(w):
    """The nearest, of two the even one; from whole numbers, not from the library."""
    whole = w.view(np.uint32).astype(np.uint64)
    return ((whole + 0x7FFF + (whole >> 16 & 1)) >> 16).astype(np.uint16)


def widened(half):
    return (half.astype(np.uint32) << 16).view(np.float32)


def int8_of(w):
    """The formula of quantize_int8, operation by operation in float32."""
    most = np.abs(w).max(axis=-1, keepdims=True)
    return np.rint(w * (np.float32(127) / most)), most / np.float32(127)


# ------------------------------------------------------------------------------- quantizing


@pytest.mark.parametrize("dtype, group, scale_dtype", FORMATS)
def test_quantized_blocks(rng, dtype, group, scale_dtype):
    largest = 127 if dtype == "q8" else 7
    w = normal(rng, 5, 4 * group) * np.float32(10) ** rng.integers(-3, 3, (5, 1)).astype(np.float32)
    w[1, :group] = 0
    blocks = isobit.quantize_blocks(w, dtype, group=group, scale_dtype=scale_dtype)
    assert blocks.dtype == np.uint8 and blocks.shape[0] == 5
    got = values_of(blocks, dtype, group, scale_dtype)
    most = np.abs(w.astype(np.float64)).reshape(5, 4, group).max(axis=2)
    step = np.repeat(most, group, axis=1) / largest
    # Half a step, and as much as the scale's rounding takes from the largest number.
    rounding = 2.0**-11 if scale_dtype == "f16" else U
    assert np.all(np.abs(got - w) <= step * (0.5 + largest * rounding) + 1e-9)
    assert np.max(np.abs(got - w) / np.where(step, step, 1)) > 0.3
    assert not got[1, :group].any()
    # The blocks of what blocks mean are the same ones again: the largest number is there.
    if scale_dtype == "f32":
        exact = got.astype(np.float32)
        again = isobit.quantize_blocks(exact, dtype, group=group, scale_dtype="f32")
        assert np.allclose(values_of(again, dtype, group, "f32"), got, rtol=1e-6, atol=0)


def test_quantized_blocks_byte_by_byte():
    numbers = [(7 * i) % 255 - 127 for i in range(31)] + [127]
    x = np.array(numbers, np.float32) * np.float32(0.5)
    wanted = blocks_of("q8", [numbers], [0.5], "f16")
    assert np.array_equal(isobit.quantize_blocks(x[None]), wanted[None])
    numbers = [i % 15 - 7 for i in range(64)]
    x = np.array([numbers, numbers[::-1]], np.float32) * np.float32(-2.0)
    wanted = blocks_of("q4", [[-q for q in numbers], [-q for q in numbers[::-1]]], [2, 2], "f32")
    got = isobit.quantize_blocks(x, "q4", group=64, scale_dtype="f32")
    assert np.array_equal(got, wanted.reshape(2, -1))
    # Halves go to the even number: 3.5 and -2.5 where the scale is 1.
    x = np.zeros((1, 16), np.float32)
    x[0, :4] = [127, 3.5, -2.5, 2.5]
    got = isobit.quantize_blocks(x, "q8", group=16)
    assert got[0, 2:6].view(np.int8).tolist() == [127, 4, -2, 2]
    # A scale of 2.4 times the smallest number of F16 becomes 2 of it: 127 / 2 * 2.4 is too large.
    x[0, :4] = np.float32([127, -127, 127, 0]) * np.float32(2.0**-24 * 2.4)
    got = isobit.quantize_blocks(x, "q8", group=16)
    assert got[0, :6].tolist() == [2, 0, 127, 129, 127, 0]


def test_blocks_of_nothing():
    assert isobit.quantize_blocks(f(0, 64)).shape == (0, 68)
    assert isobit.quantize_blocks(f(3, 0)).shape == (3, 0)


def test_quantize_int8(rng, isa):
    x = normal(rng, 2, 3, 77) * np.float32(5)
    q, scales = isobit.quantize_int8(x)
    wanted, wanted_scales = int8_of(x)
    assert q.dtype == np.int8 and np.array_equal(q, wanted)
    assert same_bits(scales, wanted_scales[..., 0])
    error = np.abs(x.astype(np.float64) - q * scales.astype(np.float64)[..., None])
    assert np.all(error <= 0.50003 * scales[..., None])
    far = np.pad(x[0], ((0, 0), (0, 5)), constant_values=1000)[:, :77]  # rows that lie apart
    for same in (np.repeat(x[0], 2, axis=1)[:, ::2], far):
        again, scales_again = isobit.quantize_int8(same)
        assert np.array_equal(again, q[0]) and same_bits(scales_again, scales[0])
    special = np.zeros((4, 9), np.float32)
    special[1, 3], special[2, 0], special[3, 8] = np.nan, -np.inf, 1e-38
    q, scales = isobit.quantize_int8(special)
    assert scales[0] == 0 and np.isnan(scales[1:3]).all() and scales[3] == 0
    assert not q.any()
    q, scale = isobit.quantize_int8(x[0, 0])
    assert q.shape == (77,) and scale.shape == () and scale == wanted_scales[0, 0, 0]


def test_round_w16(rng, isa):
    x = normal(rng, 5, 70)
    x[0, :7] = [np.inf, -np.inf, 65519, 65520, 1e-7, -0.0, 1.00390625]
    with np.errstate(over="ignore"):
        assert same_bits(isobit.round_w16(x, "f16"), x.astype(np.float16).astype(np.float32))
    wanted = widened(bf16_of(x))
    assert same_bits(isobit.round_w16(x), wanted) and wanted[0, 6] == 1
    assert np.isnan(isobit.round_w16(np.float32([np.nan]), "f16")).all()
    assert isobit.round_w16(np.float32(1.001)).shape == ()
    apart = np.zeros((10, 70), np.float32)
    assert same_bits(isobit.round_w16(np.repeat(x, 2, axis=0)[::2], out=apart[::2]), wanted)
    assert isobit.round_w16(x, out=x) is x and same_bits(x, wanted)


# ------------------------------------------------------------------------------ the products


def test_native_numerics(rng):
    """BF16 weights alone, and where the set has it: near the fixed results, and named."""
    w, x = rng.standard_normal((40, 70)).astype(np.float32), rng.standard_normal((9, 70))
    x = x.astype(np.float32)
    packed = {d: isobit.PackedLinear(w, dtype=d) for d in ("f32", "bf16", "f16")}
    fixed = {d: layer(x) for d, layer in packed.items()}
    assert isobit.get_numerics() == str(isobit.numerics_version())
    isobit.set_numerics("native")
    try:
        native = isobit.get_numerics() == f"native ({isobit.get_isa()})"
        assert native or isobit.get_numerics() == str(isobit.numerics_version())
        assert same_bits(packed["f32"](x), fixed["f32"]) and same_bits(packed["f16"](x), fixed["f16"])
        got = packed["bf16"](x)
        assert same_bits(got, fixed["bf16"]) != native
        assert np.abs(got - fixed["bf16"]).max() <= (np.abs(x) @ np.abs(w).T).max() / 128
        assert same_bits(packed["bf16"](x[3:4]), got[3:4])
    finally:
        isobit.set_numerics(None)
    assert same_bits(packed["bf16"](x), fixed["bf16"])


@pytest.mark.parametrize("m, n, k", [(1, 5, 128), (3, 33, 256), (40, 48, 640)])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_16_bits(rng, isa, dtype, m, n, k):
    x, w, bias = normal(rng, m, k), normal(rng, n, k), normal(rng, n)
    if dtype == "f16":
        half = w.astype(np.float16)
        exact = half.astype(np.float32)
    else:
        half = bf16_of(w)
        exact = widened(half)
    layer = isobit.PackedLinear(half, bias, dtype=dtype)
    got = layer(x)
    X, W, v = double(x, exact, bias)
    close(got, X @ W.T + v, product_bound(X, W.T, np.abs(v)))
    assert same_bits(got, isobit.linear(x, exact, bias))
    wide = np.repeat(half, 2, axis=1)
    for same in (w, np.asfortranarray(half), wide[:, ::2], np.asfortranarray(w)):
        assert same_bits(isobit.PackedLinear(same, bias, dtype=dtype)(x), got)
    assert layer.nbytes <= 2 * 32 * -(-n // 32) * k


@pytest.mark.parametrize("m, n", [(1, 5), (3, 33), (40, 48)])
@pytest.mark.parametrize("dtype, group, scale_dtype", FORMATS)
def test_groups(rng, isa, dtype, group, scale_dtype, m, n):
    k = 2 * 128
    how = dict(dtype=dtype, group=group, scale_dtype=scale_dtype)
    x, w, bias = normal(rng, m, k), normal(rng, n, k), normal(rng, n)
    blocks = isobit.quantize_blocks(w, **how)
    layer = isobit.PackedLinear(blocks, bias, **how)
    got = layer(x, activation="relu")
    X, v = double(x, bias)
    W = values_of(blocks, dtype, group, scale_dtype)
    bound = product_bound(X, W.T, np.abs(v)) + U * (np.abs(X) @ np.abs(W.T))  # W in float32
    close(got, np.maximum(X @ W.T + v, 0), bound)
    assert same_bits(got, isobit.linear(x, W.astype(np.float32), bias, activation="relu"))
    assert same_bits(isobit.PackedLinear(w, bias, **how)(x, activation="relu"), got)
    width = blocks.shape[1]
    for room in (width, 2 * width, width + 3):  # rows that are whole blocks apart, or not
        far = np.zeros((n, room), np.uint8)
        far[:, :width] = blocks
        same = isobit.PackedLinear(far[:, :width], bias, **how)
        assert same_bits(same(x, activation="relu"), got)
    assert layer.nbytes < 16 * -(-n // 16) * (k * (1.26 if dtype == "q8" else 0.76)) + 4


def test_blocks_as_gguf_has_them(rng):
    """Q8_0 and Q4_0 with numbers that quantize_blocks does not make, and odd scales."""
    x = normal(rng, 3, 64)
    for dtype, least in (("q8", -128), ("q4", -8)):
        numbers = rng.integers(least, -least, (4, 32)).tolist()
        numbers[0][5] = least
        blocks = blocks_of(dtype, numbers, [0.25, -1.5, 0.0, 2.0**-24], "f16").reshape(2, -1)
        assert blocks.shape == (2, 68 if dtype == "q8" else 36)
        W = np.array([numbers[0] + numbers[1], numbers[2] + numbers[3]], np.float64)
        W *= np.repeat([[0.25, -1.5], [0.0, 2.0**-24]], 32, axis=1)
        got = isobit.PackedLinear(blocks, dtype=dtype)(x)
        close(got, x.astype(np.float64) @ W.T, product_bound(x.astype(np.float64), W.T))
        assert same_bits(isobit.embed([1, 0], blocks, dtype=dtype), W[::-1].astype(np.float32))


@pytest.mark.parametrize("m, n, k", [(1, 5, 7), (3, 33, 129), (40, 48, 640)])
def test_int8(rng, isa, m, n, k):
    x, w, bias, r = normal(rng, m, k), normal(rng, n, k), normal(rng, n), normal(rng, m, n)
    (q, s), (p, t) = double(*int8_of(x)), double(*int8_of(w))
    wanted = (q @ p.T) * s * t.T
    layer = isobit.PackedLinear(w, bias, dtype="int8")
    bound = 4 * U * np.abs(wanted) + 2 * U * np.abs(wanted + bias) + 1e-40
    close(layer(x), wanted + bias, bound)
    close(layer(x, residual=r), wanted + bias + r, bound + U * np.abs(wanted + bias + r) * 2)
    for same in (np.asfortranarray(w), np.repeat(w, 2, axis=1)[:, ::2]):
        assert same_bits(isobit.PackedLinear(same, bias, dtype="int8")(x), layer(x))
    far = np.abs(layer(x).astype(np.float64) - (x.astype(np.float64) @ w.T + bias))
    assert far.max() < 0.05 * np.sqrt(k)  # and what it is an approximation of
    w[2, 0] = np.inf
    got = isobit.PackedLinear(w, bias, dtype="int8")(x)
    assert np.isnan(got[:, 2]).all() and np.isfinite(np.delete(got, 2, axis=1)).all()


@pytest.mark.parametrize("m, n, k", [(1, 5, 32), (3, 33, 128), (40, 48, 640)])
@pytest.mark.parametrize("group", [16, 32])
@pytest.mark.parametrize("dtype", ["q8", "q4"])
def test_rows_of_int8(rng, isa, m, n, k, group, dtype):
    how = dict(dtype=dtype, group=group, scale_dtype="f32")
    x, w, bias = normal(rng, m, k), normal(rng, n, k), normal(rng, n)
    blocks = isobit.quantize_blocks(w, **how)
    q, s = double(*int8_of(x.reshape(-1, 32)))
    rounded = (q * s).reshape(m, k)  # exact but for the scales' own rounding
    W = values_of(blocks, dtype, group, "f32")
    layer = isobit.PackedLinear(blocks, bias, rows="int8", **how)
    wanted = rounded @ W.T + bias
    bound = product_bound(rounded, W.T, np.abs(bias)) + 2 * U * (np.abs(rounded) @ np.abs(W.T))
    close(layer(x), wanted, bound)
    usual = isobit.PackedLinear(blocks, bias, **how)(x)
    far = np.abs(layer(x).astype(np.float64) - usual)
    assert 0 < far.max() < 0.05 * np.sqrt(k)
    assert "rows='int8'" in repr(layer) and layer.rows == "int8"


@pytest.mark.parametrize("how", ALL + ROWS_OF_INT8, ids=as_words)
def test_the_same_bits_from_all_sets_threads_and_rows(rng, how):
    x, w, bias = normal(rng, 70, 256), normal(rng, 200, 256), normal(rng, 200)
    found = set()
    for name in ISAS:
        isobit.set_isa(name)
        for threads in (1, 3):
            isobit.set_num_threads(threads)
            layer = isobit.PackedLinear(w, bias, **how)
            whole = layer(x, activation="gelu")
            for row in (0, 33, 69):
                assert same_bits(layer(x[row], activation="gelu"), whole[row])
            found.add((whole.tobytes(), layer(x[:5]).tobytes()))
    isobit.set_isa(None)
    assert len(ISAS) > 1 and len(found) == 1


@pytest.mark.parametrize("how", ALL + ROWS_OF_INT8, ids=as_words)
def test_a_layer_packed_with_one_set_runs_with_another(rng, how):
    x, w = normal(rng, 9, 128), normal(rng, 40, 128)
    isobit.set_isa(ISAS[0])
    layer = isobit.PackedLinear(w, **how)
    wanted = layer(x)
    isobit.set_isa("scalar")
    assert same_bits(layer(x), wanted)
    isobit.set_isa(None)


@pytest.mark.parametrize("how", ALL, ids=as_words)
def test_what_a_layer_says_and_keeps(rng, how):
    x, w, bias, r = normal(rng, 4, 128), normal(rng, 20, 128), normal(rng, 20), normal(rng, 4, 20)
    layer = isobit.PackedLinear(w, bias, **how)
    wanted = layer(x)
    kept = isobit.PackedLinear(w, **how)
    w[:], bias[:] = 0, 0  # both were copied
    del w
    gc.collect()
    assert wanted.any() and same_bits(layer(x), wanted)
    assert same_bits(isobit.linear(x, layer), wanted)
    assert same_bits(isobit.linear(x, layer, residual=r), wanted + r)
    assert same_bits(isobit.linear(x, kept, bias), kept(x))  # the bias is 0 now
    out = np.empty_like(r)
    assert layer(x, out=out) is out and same_bits(out, wanted)
    assert layer.shape == (layer.n, layer.k) == (20, 128) and layer.dtype == how["dtype"]
    assert layer.group == how.get("group") and layer.scale_dtype == how.get("scale_dtype")
    assert repr(layer).startswith(f"PackedLinear(n=20, k=128, dtype='{how['dtype']}'")
    assert repr(layer).endswith("bias=True)")
    assert (f"group={layer.group}, " in repr(layer)) == (layer.group is not None)
    assert ("scale_dtype='f32'" in repr(layer)) == (layer.scale_dtype == "f32")
    assert layer._packed.data % 64 == 0


def test_the_defaults_of_groups(rng):
    layer = isobit.PackedLinear(normal(rng, 3, 64), dtype="q4")
    assert repr(layer) == "PackedLinear(n=3, k=64, dtype='q4', group=32, bias=False)"
    assert layer.scale_dtype == "f16"


@pytest.mark.parametrize("how", ALL, ids=as_words)
def test_sizes_of_zero(how):
    assert isobit.PackedLinear(f(0, 128), **how)(f(2, 128)).shape == (2, 0)
    assert isobit.PackedLinear(f(3, 128), **how)(f(0, 128)).shape == (0, 3)
    empty = isobit.PackedLinear(f(3, 0), np.float32([1, 2, 3]), **how)
    assert empty(f(2, 0)).tolist() == [[1, 2, 3]] * 2


def test_bfloat16_of_another_package(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x, w = normal(rng, 3, 8), normal(rng, 5, 8)
    got = isobit.PackedLinear(w.astype(ml_dtypes.bfloat16), dtype="bf16")(x)
    assert same_bits(got, isobit.PackedLinear(bf16_of(w), dtype="bf16")(x))


# -------------------------------------------------------------------------------- embeddings


@pytest.mark.parametrize("ids", [[3, 0, 6, 3], [[1, 2, 0], [6, 6, 5]], 4, []])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "q8", "q4"])
def test_embed(rng, isa, dtype, ids):
    w, positions = normal(rng, 7, 64), normal(rng, 9, 64)
    table, values = w, w.astype(np.float64)
    if dtype == "f16":
        table = w.astype(np.float16)
        values = table.astype(np.float64)
    elif dtype == "bf16":
        table = bf16_of(w)
        values = widened(table).astype(np.float64)
    elif dtype != "f32":
        table = isobit.quantize_blocks(w, dtype)
        values = values_of(table, dtype, 32, "f16")
    ids = np.array(ids, np.int64)
    assert same_bits(isobit.embed(ids, table, dtype=dtype), values[ids].astype(np.float32))
    where = np.broadcast_to(np.arange(ids.shape[-1] if ids.ndim else 1), ids.shape or 1)
    where = where.reshape(ids.shape)
    for rows, given in ((where, None), (8 - where, 8 - where), (where * 0 + 5, 5)):
        wanted = 1.5 * values[ids] + positions.astype(np.float64)[rows]
        got = isobit.embed(ids, table, dtype=dtype, scale=1.5, positions=positions,
                           position_rows=given)
        close(got, wanted, U * (1.5 * np.abs(values[ids]) + np.abs(wanted)) + 1e-40)
        assert same_bits(got, isobit.embed(ids, np.repeat(table, 2, axis=0)[::2], dtype=dtype,
                                           scale=1.5, positions=np.asfortranarray(positions),
                                           position_rows=given))
        out = np.empty_like(got)
        assert isobit.embed(ids, table, dtype=dtype, scale=1.5, positions=positions,
                            position_rows=given, out=out) is out and same_bits(out, got)


def test_embed_blocks_of_another_group(rng):
    w = normal(rng, 4, 128)
    how = dict(dtype="q4", group=64, scale_dtype="f32")
    table = isobit.quantize_blocks(w, **how)
    wanted = values_of(table, "q4", 64, "f32").astype(np.float32)
    assert same_bits(isobit.embed([3, 1], table, **how), wanted[[3, 1]])


# ----------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("function", [
    lambda **how: isobit.PackedLinear(f(4, 64), **how),
    lambda **how: isobit.embed([0], f(4, 64), **how),
])
def test_formats_that_do_not_exist(function):
    for wrong in ("q5", "float16", "F16", "", None, np.float16, np.dtype("f2"), 8, ["q8"]):
        refuses(ValueError, f"dtype: {wrong!r} is none of 'f32', 'f16', 'bf16'", function,
                dtype=wrong)
    for wrong in (0, 8, 48, 256):
        refuses(ValueError, f"group: {wrong} is none of 16, 32, 64, 128", function, dtype="q8",
                group=wrong)
    refuses(TypeError, "group: an int expected, got float", function, dtype="q8", group=32.0)
    refuses(ValueError, "group: -32 is out of range", function, dtype="q8", group=-32)
    refuses(ValueError, "scale_dtype: 'bf16' is none of 'f16', 'f32'", function, dtype="q4",
            scale_dtype="bf16")
    for dtype in ("f32", "f16", "bf16"):
        refuses(ValueError, f"group: dtype '{dtype}' has none, got 32", function, dtype=dtype,
                group=32)
        refuses(ValueError, f"scale_dtype: dtype '{dtype}' has none, got 'f32'", function,
                dtype=dtype, scale_dtype="f32")


def test_formats_that_some_do_not_take():
    refuses(ValueError, "group: dtype 'int8' has none", isobit.PackedLinear, f(4, 64),
            dtype="int8", group=32)
    refuses(ValueError, "rows: 'int8' is for dtype 'q8' or 'q4', got 'f16'", isobit.PackedLinear,
            f(4, 64), dtype="f16", rows="int8")
    refuses(ValueError, "rows: 'f16' is none of 'f32', 'int8'", isobit.PackedLinear, f(4, 64),
            dtype="q4", rows="f16")
    refuses(ValueError, "dtype: 'int8' is none of 'f32', 'f16'", isobit.embed, [0], f(4, 64),
            dtype="int8")
    refuses(ValueError, "dtype: 'f16' is none of 'q8', 'q4'", isobit.quantize_blocks, f(4, 64),
            "f16")
    refuses(ValueError, "dtype: 'f32' is none of 'f16', 'bf16'", isobit.round_w16, f(4), "f32")


@pytest.mark.parametrize("dtype, takes", [
    ("f16", "float16"), ("bf16", "bfloat16, as uint16"), ("q8", "blocks, as uint8,"),
    ("q4", "blocks, as uint8,"), ("f32", "float32"), ("int8", "float32"),
])
@pytest.mark.parametrize("wrong", [np.float64, np.float16, np.uint16, np.int16, np.uint8, np.int8,
                                   ">f2", ">u2", ">f4", bool, object])
def test_arrays_of_other_types(dtype, takes, wrong):
    if {"f16": np.float16, "bf16": np.uint16, "q8": np.uint8, "q4": np.uint8}.get(dtype) == wrong:
        return
    array = np.ones((2, 64), wrong)
    more = "" if takes == "float32" else " or float32"
    refuses(TypeError, f"weight: {takes}{more} expected, got {np.dtype(wrong)}",
            isobit.PackedLinear, array, dtype=dtype)
    if dtype != "int8":
        refuses(TypeError, f"table: {takes} expected, got {np.dtype(wrong)}", isobit.embed, [0],
                array, dtype=dtype)
        if dtype != "f32":
            refuses(TypeError, f"table: {takes} expected, got float32", isobit.embed, [0],
                    f(2, 64), dtype=dtype)
    for function in (isobit.quantize_blocks, isobit.quantize_int8, isobit.round_w16):
        refuses(TypeError, f"float32 expected, got {np.dtype(wrong)}", function, array)


def test_shapes_of_weights():
    for dtype in ("f16", "bf16", "q8", "q4", "int8"):
        refuses(ValueError, "weight: 2 dimensions expected, got 1 (shape (64,))",
                isobit.PackedLinear, f(64), dtype=dtype)
        layer = isobit.PackedLinear(f(5, 64), dtype=dtype)
        refuses(ValueError, "x: 64 columns expected (weight is (5, 64)), got shape (2, 5)", layer,
                f(2, 5))
        refuses(TypeError, "x: float32 expected, got float16", layer, np.ones((2, 64), np.float16))
        refuses(ValueError, "bias: shape (5,) expected, got (64,)", isobit.PackedLinear, f(5, 64),
                f(64), dtype=dtype)
    for group in (32, 64, 128):
        for function in (isobit.PackedLinear, isobit.quantize_blocks):
            refuses(ValueError, f"weight: 80 columns are not whole groups of {group}", function,
                    f(2, 80), dtype="q8", group=group)
    refuses(ValueError, "weight: rows of 35 bytes are not whole blocks of 34 (q8, groups of 32 "
            "with a scale of f16)", isobit.PackedLinear, np.zeros((2, 35), np.uint8), dtype="q8")
    refuses(ValueError, "table: rows of 34 bytes are not whole blocks of 18", isobit.embed, [0],
            np.zeros((2, 34), np.uint8), dtype="q4")
    error = refuses(ValueError, "weight (1, 131072), int8", isobit.PackedLinear, f(1, 131072),
                    dtype="int8")
    assert error.status == isobit.Status.E_LIMIT


def test_outputs_and_overlaps():
    x = f(4, 64)
    for dtype in ("f16", "bf16", "q8", "q4", "int8"):
        layer = isobit.PackedLinear(f(64, 64), dtype=dtype)
        error = refuses(ValueError, "overlap", layer, x, out=x)
        assert error.status == isobit.Status.E_ALIAS and f"weight (64, 64), {dtype}" in str(error)
        refuses(ValueError, "out: shape (4, 64) expected, got (64, 4)", layer, x, out=f(64, 4))
        refuses(ValueError, "activation: 'swish' is none of", layer, x, activation="swish")
    table = f(8, 64)
    refuses(ValueError, "overlap", isobit.embed, [0, 1], table, out=table[2:4])
    refuses(ValueError, "out: shape (2, 64) expected, got (4, 64)", isobit.embed, [0, 1], table,
            out=x)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(wrong):
    w = f(3, 64)
    w[1, 40] = wrong
    for dtype in ("q8", "q4"):
        for function in (isobit.PackedLinear, isobit.quantize_blocks):
            refuses(ValueError, f"weight: a value is not finite, and {dtype} has no such numbers",
                    function, w, dtype=dtype)
        for scale_dtype in ("f16", "f32"):
            blocks = blocks_of(dtype, [[1] * 32] * 4, [1, 2, wrong, 3], scale_dtype).reshape(2, -1)
            error = refuses(ValueError, "the scale of a block is not finite", isobit.PackedLinear,
                            blocks, dtype=dtype, scale_dtype=scale_dtype)
            assert error.status == isobit.Status.E_RANGE and "weight (2, 64), q" in str(error)
    for dtype in ("f16", "bf16"):  # those have
        got = isobit.PackedLinear(w, dtype=dtype)(f(1, 64))
        assert np.array_equal(got, np.float32([[64, wrong, 64]]), equal_nan=True)


def test_scales_that_are_too_large():
    w = np.full((2, 32), 65504.0 * 130, np.float32)
    refuses(ValueError, "is too large for a scale of f16; scale_dtype='f32' takes it",
            isobit.PackedLinear, w, dtype="q8")
    got = isobit.PackedLinear(w, dtype="q8", scale_dtype="f32")(f(1, 32))
    assert np.allclose(got, 32 * 65504.0 * 130, rtol=1e-6)


def test_ids_and_positions():
    table, positions = f(4, 8), f(3, 8)
    refuses(ValueError, "ids: values from 0 to 3 expected, got 1 to 4", isobit.embed, [1, 4], table)
    refuses(ValueError, "ids: values from 0 to 3 expected, got -1 to 1", isobit.embed, [1, -1],
            table)
    refuses(TypeError, "ids: integers expected, got float64", isobit.embed, [1.0], table)
    refuses(ValueError, "position_rows: values from 0 to 2 expected, got 0 to 3", isobit.embed,
            [1, 1, 1, 1], table, positions=positions)
    refuses(ValueError, "position_rows: values from 0 to 2 expected, got 3 to 3", isobit.embed, [1],
            table, positions=positions, position_rows=[3])
    refuses(ValueError, "position_rows: shape (3,) does not broadcast to (2,)", isobit.embed,
            [1, 1], table, positions=positions, position_rows=[0, 1, 2])
    refuses(ValueError, "position_rows: there are no positions", isobit.embed, [1], table,
            position_rows=[0])
    refuses(ValueError, "positions: 8 columns expected, got shape (3, 9)", isobit.embed, [1], table,
            positions=f(3, 9))
    refuses(TypeError, "positions: float32 expected, got float64", isobit.embed, [1], table,
            positions=np.ones((3, 8)))
    refuses(TypeError, "scale: a number expected, got str", isobit.embed, [1], table, scale="1")
