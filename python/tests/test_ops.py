# SPDX-License-Identifier: MIT
"""Every operation against NumPy in double precision, within the bounds of docs/numerics.md."""
import math

import numpy as np
import pytest

import isobit
from conftest import ISAS, U, bits, close, normal, same_bits

erf = np.vectorize(math.erf, otypes=[np.float64])


def product_bound(a, b, extra=0.0):
    k = a.shape[-1]
    steps = min(k, 512) + math.ceil(k / 512) + 4
    return steps * U * (np.abs(a) @ np.abs(b) + extra) + (k + 4) * 2.0**-149


def double(*arrays):
    return [a.astype(np.float64) for a in arrays]


# --------------------------------------------------------------------------------- products


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (3, 5, 7), (17, 33, 65), (64, 48, 600), (1, 70, 9)])
def test_gemm(rng, isa, m, n, k):
    a, b = normal(rng, m, k), normal(rng, k, n)
    close(isobit.gemm(a, b), np.matmul(*double(a, b)), product_bound(*double(a, b)))


def test_gemm_takes_all_its_options(rng, isa):
    a, b, c, r = normal(rng, 9, 20), normal(rng, 20, 6), normal(rng, 9, 6), normal(rng, 9, 6)
    bias = normal(rng, 6)
    out = c.copy()
    got = isobit.gemm(
        a, b, alpha=0.5, beta=-2, bias=bias, activation="relu", residual=r, out=out
    )
    assert got is out
    A, B, C, R, v = double(a, b, c, r, bias)
    wanted = np.maximum(0.5 * A @ B - 2 * C + v, 0) + R
    close(got, wanted, product_bound(A, B, 2 * np.abs(C) + np.abs(v) + np.abs(R)))


@pytest.mark.parametrize("name", ["relu", "silu", "gelu", "gelu_tanh", "tanh"])
def test_an_activation_in_a_product_is_that_of_the_function(rng, isa, name):
    a, b = normal(rng, 4, 30), normal(rng, 30, 21)
    functions = {"gelu_tanh": lambda x: isobit.gelu(x, approximate="tanh")}
    function = functions.get(name) or getattr(isobit, name)
    assert same_bits(isobit.gemm(a, b, activation=name), function(isobit.gemm(a, b)))
    assert same_bits(isobit.linear(a, b.T, activation=name), function(isobit.gemm(a, b)))


def test_beta_0_does_not_read_out(rng):
    a, b = normal(rng, 3, 4), normal(rng, 4, 5)
    out = np.full((3, 5), np.nan, np.float32)
    assert same_bits(isobit.gemm(a, b, out=out), isobit.gemm(a, b))


def test_residual_may_be_out(rng):
    a, b, r = normal(rng, 3, 4), normal(rng, 4, 5), normal(rng, 3, 5)
    wanted = isobit.gemm(a, b, residual=r)
    assert same_bits(isobit.gemm(a, b, residual=r, out=r), wanted)


@pytest.mark.parametrize("shape", [(5, 20), (1, 20), (2, 3, 20), (20,)])
def test_linear(rng, isa, shape):
    x, w, bias = normal(rng, *shape), normal(rng, 19, 20), normal(rng, 19)
    X, W, v = double(x, w, bias)
    layer = isobit.PackedLinear(w, bias)
    got = layer(x)
    close(got, X @ W.T + v, product_bound(X, W.T, np.abs(v)))
    r = normal(rng, *got.shape)
    assert same_bits(isobit.linear(x, w, bias), got)
    assert same_bits(isobit.linear(x, isobit.PackedLinear(w), bias), got)
    assert same_bits(isobit.linear(x, layer), got)
    assert same_bits(isobit.linear(x, w, bias, residual=r), layer(x, residual=r))
    assert same_bits(layer(x, residual=r), got + r)
    out = np.empty_like(r)
    assert isobit.linear(x, w, bias, out=out) is out and same_bits(out, got)


def test_packed_weights_are_a_copy_in_either_layout(rng):
    x, w = normal(rng, 4, 6), normal(rng, 8, 6)
    wanted = isobit.linear(x, w)
    columns = np.asfortranarray(w)
    layers = [isobit.PackedLinear(w), isobit.PackedLinear(columns)]
    layers.append(isobit.PackedLinear(np.repeat(w, 2, axis=1)[:, ::2]))
    w[:], columns[:] = 0, 0
    for layer in layers:
        assert same_bits(layer(x), wanted)
    assert "n=8, k=6" in repr(layer) and layer.nbytes >= w.nbytes


# ------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("n", [1, 2, 31, 32, 100, 1000])
def test_softmax(rng, isa, n):
    x = 3 * normal(rng, 5, n)
    d = x.astype(np.float64) - x.max(axis=1, keepdims=True)
    e = np.exp(d)
    y = e / e.sum(axis=1, keepdims=True)
    D = (y * np.abs(d)).sum(axis=1, keepdims=True)
    relative = U * (np.abs(d) + D + 4 + math.ceil(n / 32) + 5 + 3)
    close(isobit.softmax(x), y, y * relative)
    log_sum = np.log(e.sum(axis=1, keepdims=True))
    bound = U * (2 * np.abs(d) + D + 2 + math.ceil(n / 32) + 5 + 4 * log_sum)
    close(isobit.softmax(x, log=True), d - log_sum, bound)


def test_softmax_of_a_part(rng, isa):
    x = normal(rng, 2, 3, 8)
    counts = np.array([[8, 1, 0], [3, 7, 8]])
    poisoned = x.copy()
    for i in range(2):
        for j in range(3):
            poisoned[i, j, counts[i, j] :] = np.nan
    got = isobit.softmax(poisoned, lengths=counts)
    taken = np.arange(8) < counts[..., None]
    assert same_bits(got, isobit.softmax(poisoned, mask=taken))
    assert same_bits(got, isobit.softmax(poisoned, mask=taken.astype(np.uint8)))
    assert same_bits(got[1, 1, :7], isobit.softmax(x[1, 1, :7]))
    assert not got[0, 2].any() and got[0, 1, 0] == 1 and not got[0, 1, 1:].any()
    assert np.all(np.isneginf(isobit.softmax(poisoned, log=True, mask=taken)[~taken]))
    one_row = np.arange(8) % 3 > 0  # broadcast to all rows
    assert np.array_equal(isobit.softmax(x, mask=one_row) == 0, np.broadcast_to(~one_row, x.shape))


def test_safe_softmax():
    x = np.full((1, 3), -np.inf, np.float32)
    assert np.isnan(isobit.softmax(x)).all()
    assert not isobit.softmax(x, safe=True).any()


def norm_bound(t, r, gamma, beta):
    steps = 12 + t.shape[-1] / 32
    largest = np.abs(t).max(axis=-1, keepdims=True)
    return steps * U * (3 * largest * r * np.abs(gamma) + np.abs(beta)) + 1e-40


@pytest.mark.parametrize("n", [1, 7, 64, 513])
def test_norms(rng, isa, n):
    x, other = normal(rng, 4, n), normal(rng, 4, n)
    gamma, beta = normal(rng, n), normal(rng, n)
    t, (g, b) = (x + other).astype(np.float64), double(gamma, beta)

    r = 1 / np.sqrt(t.var(axis=1, keepdims=True) + 1e-3)
    wanted = g * (t - t.mean(axis=1, keepdims=True)) * r + b
    sums = np.empty_like(x)
    got = isobit.layernorm(x, gamma, beta, eps=1e-3, residual=other, sum_out=sums)
    close(got, wanted, norm_bound(t, r, g, b))
    assert same_bits(sums, x + other)
    r = 1 / np.sqrt(x.astype(np.float64).var(axis=1, keepdims=True) + 1e-5)
    wanted = (x - x.astype(np.float64).mean(axis=1, keepdims=True)) * r
    close(isobit.layernorm(x), wanted, norm_bound(x.astype(np.float64), r, 1, 0))

    r = 1 / np.sqrt((t * t).mean(axis=1, keepdims=True) + 1e-3)
    sums[:] = 0
    got = isobit.rmsnorm(x, gamma, eps=1e-3, residual=other, sum_out=sums)
    close(got, g * t * r, norm_bound(t, r, g, 0))
    assert same_bits(sums, x + other)


def test_norms_in_place(rng):
    x, gamma = normal(rng, 3, 40), normal(rng, 40)
    wanted = isobit.layernorm(x, gamma)
    assert isobit.layernorm(x, gamma, out=x) is x and same_bits(x, wanted)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (1000,), (3, 50), (2, 3, 4, 5)])
def test_elementwise(rng, isa, shape):
    x = np.asarray(4 * normal(rng, *shape), np.float32)
    X = x.astype(np.float64)
    close(isobit.relu(x), np.maximum(X, 0), np.full(shape, 1e-60))
    close(isobit.gelu(x), X / 2 * (1 + erf(X / math.sqrt(2))), 2 * U * np.abs(X) + 1e-60)
    assert same_bits(isobit.gelu(x, approximate="none"), isobit.gelu(x))
    inner = math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)
    close(isobit.gelu(x, approximate="tanh"), X / 2 * (1 + np.tanh(inner)), 2 * U * np.abs(X))
    close(isobit.silu(x), X / (1 + np.exp(-X)), 3 * np.spacing(np.abs(isobit.silu(x))))
    close(isobit.tanh(x), np.tanh(X), 1.001 * np.spacing(np.abs(isobit.tanh(x))))
    for function in (isobit.relu, isobit.gelu, isobit.silu, isobit.tanh):
        out = x.copy()
        assert function(out, out=out) is out and same_bits(out, function(x))


# -------------------------------------------------------------------------------- attention


def attend(q, k, v, scale, seen, bias=0.0):
    """In double; seen [..., Sq, Sk]. Also the bound."""
    q, k, v = double(q, k, v)
    with np.errstate(invalid="ignore", divide="ignore"):
        s = scale * q @ np.swapaxes(k, -1, -2) + bias
        s = np.where(seen, s, -np.inf)
        d = s - s.max(axis=-1, keepdims=True)
        p = np.where(seen & np.isfinite(s), np.exp(d), 0)
        p = p / p.sum(axis=-1, keepdims=True)
        p = np.where(np.isnan(p), 0, p)
        away = np.where(p > 0, np.abs(d), 0)
    steps = q.shape[-1] + 4
    wrong = steps * U * np.max(
        scale * np.abs(q) @ np.swapaxes(np.abs(k), -1, -2) + np.abs(np.where(p > 0, bias, 0)),
        axis=-1,
        keepdims=True,
        initial=0,
    )
    relative = 2 * wrong + U * (4 * away.max(axis=-1, keepdims=True, initial=0) + k.shape[-2] + 20)
    return p @ v, p, relative * (p @ np.abs(v)) + 1e-40, relative * p + 1e-40


@pytest.mark.parametrize(
    "B, H, Sq, Sk, dh", [(1, 1, 1, 1, 1), (2, 3, 5, 7, 8), (1, 2, 70, 130, 64)]
)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(rng, isa, B, H, Sq, Sk, dh, causal):
    q, k, v = normal(rng, B, H, Sq, dh), normal(rng, B, H, Sk, dh), normal(rng, B, H, Sk, dh)
    past = Sk - Sq if causal else 0
    seen = np.ones((Sq, Sk), bool)
    if causal:
        seen = np.arange(Sk) <= past + np.arange(Sq)[:, None]
    o, w, o_bound, w_bound = attend(q, k, v, 1 / math.sqrt(dh), seen)
    close(isobit.attention(q, k, v, causal=causal, past=past), o, o_bound)
    got, weights = isobit.attention(q, k, v, causal=causal, past=past, return_weights=True)
    close(got, o, o_bound)
    close(weights, w, w_bound)
    assert same_bits(got, isobit.attention(q, k, v, causal=causal, past=past))


def test_attention_bias_lengths_scale(rng, isa):
    B, H, Sq, Sk, dh = 2, 3, 4, 9, 16
    q, k, v = normal(rng, B, H, Sq, dh), normal(rng, B, H, Sk, dh), normal(rng, B, H, Sk, dh)
    lengths = np.array([9, 4])
    seen = np.arange(Sk) < lengths[:, None, None, None]
    seen = np.broadcast_to(seen, (B, H, Sq, Sk))
    for shape in [(B, H, Sq, Sk), (H, Sq, Sk), (1, 1, Sk), (B, 1, 1, 1), (Sq, Sk), (Sk,), ()]:
        bias = np.asarray(normal(rng, *shape), np.float32)
        if shape == (B, H, Sq, Sk):
            bias[:, :, 1, 2] = -np.inf
        got = isobit.attention(q, k, v, scale=0.3, bias=bias, key_lengths=lengths)
        o, _, bound, _ = attend(q, k, v, np.float64(np.float32(0.3)), seen, bias.astype(np.float64))
        close(got, o, bound)
    k[1, :, 4:], v[1, :, 4:] = np.nan, np.nan
    assert same_bits(
        got, isobit.attention(q, k, v, scale=0.3, bias=bias, key_lengths=lengths.tolist())
    )


@pytest.mark.parametrize("window", [1, 3, 64, 65, 200])
@pytest.mark.parametrize("Sq, Sk, past", [(1, 130, 129), (70, 130, 60), (5, 7, 0)])
def test_attention_window(rng, isa, Sq, Sk, past, window):
    B, H, dh = 2, 2, 16
    q, k, v = normal(rng, B, H, Sq, dh), normal(rng, B, H, Sk, dh), normal(rng, B, H, Sk, dh)
    lengths = np.array([Sk, Sk - 2])
    for causal in (False, True):
        ends = np.broadcast_to(lengths[:, None], (B, Sq))
        if causal:
            ends = np.minimum(ends, past + 1 + np.arange(Sq))
        ends = ends[:, None, :, None]
        seen = (np.arange(Sk) < ends) & (np.arange(Sk) >= ends - window)
        o, w, o_bound, w_bound = attend(q, k, v, 1 / math.sqrt(dh), seen)
        how = {"causal": causal, "past": past, "key_lengths": lengths, "window": window}
        got, weights = isobit.attention(q, k, v, return_weights=True, **how)
        close(got, o, o_bound)
        close(weights, w, w_bound)
        assert same_bits(isobit.attention(q, k, v, **how), got)
        assert not weights[~np.broadcast_to(seen, weights.shape)].any()
    assert same_bits(isobit.attention(q, k, v, window=None), isobit.attention(q, k, v))


@pytest.mark.parametrize("softcap", [0.3, 2.0, 50.0])
@pytest.mark.parametrize("Sq, Sk", [(1, 130), (70, 130), (5, 7)])
def test_attention_softcap(rng, isa, Sq, Sk, softcap):
    q, k, v = (normal(rng, 2, 2, n, 16) for n in (Sq, Sk, Sk))
    q = np.float32(4) * q
    cap = np.float64(np.float32(softcap))
    scores = cap * np.tanh(q.astype(np.float64) @ k.astype(np.float64).swapaxes(2, 3) / 4 / cap)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    got, w = isobit.attention(q, k, v, softcap=softcap, return_weights=True)
    np.testing.assert_allclose(w, weights, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(got, weights @ v.astype(np.float64), rtol=1e-4, atol=1e-5)
    assert same_bits(isobit.attention(q, k, v, softcap=softcap), got)
    assert same_bits(isobit.attention(q, k, v, softcap=None), isobit.attention(q, k, v))


def test_attention_without_batch_or_head(rng):
    q, k, v = normal(rng, 1, 2, 5, 8), normal(rng, 1, 2, 6, 8), normal(rng, 1, 2, 6, 8)
    wanted = isobit.attention(q, k, v)
    assert same_bits(isobit.attention(q[0], k[0], v[0]), wanted[0])
    assert same_bits(isobit.attention(q[0, 1], k[0, 1], v[0, 1]), wanted[0, 1])
    one_key_head = isobit.attention(q, k[:, :1], v[:, :1])
    assert same_bits(one_key_head, isobit.attention(q, k[:, [0, 0]], v[:, [0, 0]]))


def test_attention_that_sees_nothing_is_0(rng):
    q, k, v = normal(rng, 3, 4), normal(rng, 2, 4), normal(rng, 2, 4)
    assert not isobit.attention(q, k[:0], v[:0]).any()
    assert not isobit.attention(q, k, v, key_lengths=[0]).any()


# ------------------------------------------------------------- layouts, and zero copy of them


def copies(monkeypatch):
    """Counts the copies that are made of inputs."""
    made = []
    from isobit import _arrays

    plain = _arrays._copy
    monkeypatch.setattr(_arrays, "_copy", lambda array: made.append(array.shape) or plain(array))
    return made


def test_views_with_contiguous_rows_are_not_copied(rng, monkeypatch):
    made = copies(monkeypatch)
    wide, b = normal(rng, 6, 40), normal(rng, 10, 12)
    a = wide[::2, 5:15]
    wanted = isobit.gemm(a.copy(), b)
    assert same_bits(isobit.gemm(a, b), wanted)
    assert same_bits(isobit.gemm(np.asfortranarray(a), b), wanted)
    assert same_bits(isobit.gemm(a, np.asfortranarray(b)), wanted)
    assert same_bits(isobit.linear(a, np.ascontiguousarray(b.T)), wanted)
    out = np.zeros((3, 30), np.float32)
    isobit.gemm(a, b, out=out[:, 7:19])
    assert same_bits(out[:, 7:19], wanted) and not out[:, :7].any() and not out[:, 19:].any()
    for function in (isobit.softmax, isobit.layernorm, isobit.rmsnorm, isobit.gelu):
        assert same_bits(function(a), function(a.copy()))
        out[:] = 0
        function(a, out=out[:, 2:12])
        assert same_bits(out[:, 2:12], function(a.copy())) and not out[:, 12:].any()
    qkv = normal(rng, 2, 5, 3, 4, 8)  # batch, position, which, head, element
    q, k, v = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    wanted = isobit.attention(q.copy(), k.copy(), v.copy())
    o = np.empty((2, 5, 4, 8), np.float32)
    isobit.attention(q, k, v, out=o.transpose(0, 2, 1, 3))
    assert same_bits(o.transpose(0, 2, 1, 3), wanted)
    assert same_bits(isobit.attention(q, k[:, :1], v[:, :1])[:, 0], wanted[:, 0])
    assert made == []


def test_other_views_are_copied(rng, monkeypatch):
    made = copies(monkeypatch)
    x, b = normal(rng, 7, 24), normal(rng, 12, 6)
    unaligned = np.empty(7 * 12 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(7, 12)
    unaligned[:] = x[:, :12]
    repeated = np.broadcast_to(x[0, :12], (7, 12))
    views = [x[:, ::2], x[:, 11::-1], x[::-1, ::2], unaligned, repeated, x[:, 12:][:, ::-1]]
    for i, view in enumerate(views):
        compact = view.copy()
        assert same_bits(isobit.gemm(view, b), isobit.gemm(compact, b))
        assert len(made) > i
        for function in (isobit.softmax, isobit.layernorm, isobit.rmsnorm, isobit.silu):
            assert same_bits(function(view), function(compact))
        assert same_bits(isobit.attention(view, view, view), isobit.attention(*[compact] * 3))
        gamma = view[0]
        assert same_bits(isobit.layernorm(compact, gamma), isobit.layernorm(compact, gamma.copy()))
    q = normal(rng, 2, 3, 5, 8)
    packed = np.zeros((2, 3, 5), np.dtype({"names": ["x"], "formats": ["(8,)f4"], "itemsize": 34}))
    packed["x"] = q  # 34 bytes from one position to the next
    for view in (q[::-1], q[:, ::-1], q[:, :, ::-1], q[..., ::-1], packed["x"]):
        made.clear()
        assert same_bits(isobit.attention(view, q, q), isobit.attention(view.copy(), q, q))
        assert same_bits(isobit.attention(q, view, view), isobit.attention(q, *[view.copy()] * 2))
        assert len(made) == 3
    three = normal(rng, 4, 6, 8).transpose(2, 1, 0)
    assert same_bits(isobit.softmax(three), isobit.softmax(three.copy()))


def test_zero_sizes(rng):
    def zeros(*shape):
        return np.zeros(shape, np.float32)

    bias = normal(rng, 3)
    assert isobit.gemm(zeros(0, 4), zeros(4, 3)).shape == (0, 3)
    assert isobit.gemm(zeros(2, 4), zeros(4, 0)).shape == (2, 0)
    assert same_bits(isobit.gemm(zeros(2, 0), zeros(0, 3), bias=bias), np.stack([bias, bias]))
    assert isobit.linear(zeros(0, 4), zeros(3, 4)).shape == (0, 3)
    assert isobit.PackedLinear(zeros(0, 4))(zeros(2, 4)).shape == (2, 0)
    assert same_bits(isobit.PackedLinear(zeros(3, 0), bias)(zeros(1, 0)), bias[None])
    for shape in [(0,), (0, 4), (4, 0), (2, 0, 3)]:
        for function in (isobit.softmax, isobit.layernorm, isobit.rmsnorm, isobit.relu):
            assert function(zeros(*shape)).shape == shape
            out = zeros(*shape)
            assert function(zeros(*shape), out=out) is out
    assert isobit.softmax(zeros(0, 4), lengths=[]).shape == (0, 4)
    assert isobit.attention(zeros(2, 0, 4), zeros(2, 3, 4), zeros(2, 3, 4)).shape == (2, 0, 4)
    assert isobit.attention(zeros(0, 3, 4), zeros(0, 3, 4), zeros(0, 3, 4)).shape == (0, 3, 4)
    assert isobit.attention(zeros(2, 0), zeros(3, 0), zeros(3, 0)).shape == (2, 0)


def test_large_results_begin_at_a_cache_line(rng):
    for _ in range(5):
        assert isobit.relu(normal(rng, 700, 500)).ctypes.data % 64 == 0


# ------------------------------------------------------------------------------------- bits


def every_operation(rng):
    x, w, bias = 2 * normal(rng, 37, 300), normal(rng, 65, 300), normal(rng, 65)
    q, k, v = (normal(rng, 2, 2, s, 40) for s in (33, 90, 90))
    layer = isobit.PackedLinear(w, bias)
    return {
        "gemm": lambda: isobit.gemm(x, w.T, bias=bias, activation="gelu"),
        "linear": lambda: layer(x, activation="silu"),
        "softmax": lambda: isobit.softmax(x),
        "log softmax": lambda: isobit.softmax(x, log=True),
        "layernorm": lambda: isobit.layernorm(x),
        "rmsnorm": lambda: isobit.rmsnorm(x),
        "gelu": lambda: isobit.gelu(x),
        "gelu tanh": lambda: isobit.gelu(x, approximate="tanh"),
        "silu": lambda: isobit.silu(x),
        "relu": lambda: isobit.relu(x),
        "tanh": lambda: isobit.tanh(x),
        "attention": lambda: isobit.attention(q, k, v, causal=True, past=57),
    }


def test_same_bits_on_every_instruction_set_and_number_of_threads(rng):
    operations = every_operation(rng)
    wanted = {name: run() for name, run in operations.items()}
    for name in ISAS:
        isobit.set_isa(name)
        assert isobit.get_isa() == name
        for threads in (1, 2, 3):
            isobit.set_num_threads(threads)
            for operation, run in operations.items():
                assert same_bits(run(), wanted[operation]), (operation, name, threads)
    isobit.set_isa(None)


def test_a_row_does_not_depend_on_the_others(rng, isa):
    x, w = normal(rng, 40, 130), normal(rng, 50, 130)
    layer = isobit.PackedLinear(w)
    functions = [layer, isobit.softmax, isobit.layernorm, isobit.rmsnorm, isobit.gelu]
    functions.append(lambda rows: isobit.linear(rows, w))
    for function in functions:
        all_rows = function(x)
        for first, end in [(0, 1), (3, 8), (20, 40), (39, 40)]:
            assert same_bits(function(x[first:end]), all_rows[first:end])


def test_bits_tells_floats_apart():
    assert not np.array_equal(bits(np.float32([0.0])), bits(np.float32([-0.0])))
