#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/data/nodes: small cases of operations in the manner of ONNX's node tests.

Development only: test_nodes needs the files, not this script.  The names are those of the node
tests that ask the same thing; the numbers are ours, from a fixed seed.  Inputs are rounded to
float, results are computed in double precision from the definition of the operation, and each
element comes with the bound of docs/numerics.md.  Standard library only.

    tools/make_nodes.py
"""

import itertools
import math
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
U = 2.0**-24  # unit roundoff of f32
TINY = 2.0**-149
INF, NAN = math.inf, math.nan


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Tensor:
    """Values in row-major order."""

    def __init__(self, dims, values):
        self.dims, self.values = tuple(dims), list(values)
        assert len(self.values) == math.prod(self.dims)

    def __getitem__(self, index):
        at = 0
        for i, n in zip(index, self.dims):
            assert 0 <= i < n
            at = at * n + i
        return self.values[at]


class Random:
    """A generator of our own, so that the files do not depend on the version of Python."""

    def __init__(self, seed):
        self.state = seed

    def unit(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) / 2**53

    def normal(self):  # near enough: the sum of twelve
        return sum(self.unit() for _ in range(12)) - 6

    def tensor(self, *dims, scale=1.0, offset=0.0):
        """Three decimals keep the files short."""
        n = math.prod(dims)
        return Tensor(dims, (f32(round(self.normal() * scale + offset, 3)) for _ in range(n)))


class File:
    def __init__(self, name):
        self.path, self.cases = ROOT / "tests/data/nodes" / (name + ".txt"), []

    def case(self, name, op, tensors, **parameters):
        text = [f"case {name} {op}"]
        text += [f"with {key} {value:.9g}" for key, value in parameters.items()]
        for key, t in tensors.items():
            form = "{:.2g}" if key.endswith(".bound") else "{:.11g}" if key in ("y", "w") else "{:.9g}"
            # a bound is rounded to two digits, and may not become smaller
            scale = 1.06 if key.endswith(".bound") else 1
            text.append(f"tensor {key} {len(t.dims)} " + " ".join(map(str, t.dims)))
            words = [form.format(v * scale) for v in t.values]
            text += [" ".join(words[i : i + 12]) for i in range(0, len(words), 12)]
        self.cases.append("\n".join(text + ["end"]))

    def write(self):
        header = "# SPDX-License-Identifier: MIT\n# made by tools/make_nodes.py\n"
        self.path.parent.mkdir(exist_ok=True)
        body = f"cases {len(self.cases)}\n" + "\n".join(self.cases) + "\n"
        self.path.write_text(header + body)
        print(f"{self.path.name}: {len(self.cases)} cases, {self.path.stat().st_size} bytes")


def indices(dims):
    return itertools.product(*(range(n) for n in dims))


def depth(n):
    return math.ceil(n / 32) + 5


# ------------------------------------------------------------------------------------- softmax


def softmax_row(x, log):
    top = max(x)
    e = [math.exp(v - top) for v in x]
    s = math.fsum(e)
    big_d = math.fsum(p * (top - v) for p, v in zip(e, x)) / s
    y, bound = [], []
    for v, p in zip(x, e):
        d = v - top
        if log:
            y.append(d - math.log(s))
            bound.append(U * (abs(d) + big_d + 2 + depth(len(x)) + 2 * math.log(s) + abs(y[-1])) + TINY)
        else:
            y.append(p / s)
            bound.append(y[-1] * U * (abs(d) + big_d + 4 + depth(len(x)) + 2) + TINY)
    return y, bound


def softmax_case(f, name, x, axis, flatten=False):
    for log in (False, True):
        dims = x.dims
        a = axis % len(dims)
        rows = {}
        for index in indices(dims):
            rows.setdefault(index[:a] if flatten else index[:a] + index[a + 1 :], []).append(index)
        y, bound = {}, {}
        for row in rows.values():
            for index, v, b in zip(row, *softmax_row([x[i] for i in row], log)):
                y[index], bound[index] = v, b
        tensors = {
            "x": x,
            "y": Tensor(dims, (y[i] for i in indices(dims))),
            "y.bound": Tensor(dims, (bound[i] for i in indices(dims))),
        }
        full = f"{'logsoftmax' if log else 'softmax'}_{name}"
        f.case(full, "softmax", tensors, axis=axis, log=int(log), flatten=int(flatten))


def softmaxes():
    f, r = File("softmax"), Random(1)
    x = r.tensor(3, 4, 5)
    for axis in range(3):
        softmax_case(f, f"axis_{axis}", x, axis)
    softmax_case(f, "negative_axis", x, -1)
    softmax_case(f, "default_axis", r.tensor(2, 3, 5), -1)
    softmax_case(f, "default_axis_flattened", r.tensor(2, 3, 5), 1, flatten=True)
    softmax_case(f, "axis_0_flattened", r.tensor(2, 3, 5), 0, flatten=True)
    softmax_case(f, "example", Tensor((1, 3), (-1, 0, 1)), -1)
    softmax_case(f, "large_number", Tensor((2, 4), (0, 1, 2, 3, 10000, 10001, 10002, 10003)), -1)
    softmax_case(f, "one_element", r.tensor(4, 1), -1)
    softmax_case(f, "spread", r.tensor(2, 67, scale=30), -1)
    f.write()


# --------------------------------------------------------------------------------------- norms


def norm_case(f, name, x, axis, eps, rms, r, bias=True):
    dims = x.dims
    a = axis % len(dims)
    n = math.prod(dims[a:])
    scale = r.tensor(*dims[a:])
    shift = r.tensor(*dims[a:]) if bias and not rms else None
    eps = f32(eps)
    y, bound = [], []
    for start in range(0, len(x.values), n):
        t = x.values[start : start + n]
        if rms:
            inverse = 1 / math.sqrt(math.fsum(v * v for v in t) / n + eps)
            for v, g in zip(t, scale.values):
                y.append(g * v * inverse)
                bound.append(abs(y[-1]) * U * (depth(n) / 2 + 5) + 2 * TINY)
            continue
        mean = math.fsum(t) / n
        inverse = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in t) / n + eps)
        off = U * (depth(n) * math.fsum(abs(v - t[0]) for v in t) / n + abs(mean)) + TINY
        for i, (v, g) in enumerate(zip(t, scale.values)):
            b = shift.values[i] if shift else 0
            c = v - mean
            y.append(g * c * inverse + b)
            inner = off + abs(c) * ((depth(n) + 3) / 2 * U + (off * inverse) ** 2 / 2 + 5 * U)
            bound.append(
                abs(g) * inverse * inner + U * (abs(g * c * inverse) + abs(b)) + 2 * TINY
            )
    tensors = {"x": x, "scale": scale}
    if shift:
        tensors["bias"] = shift
    tensors |= {"y": Tensor(dims, y), "y.bound": Tensor(dims, bound)}
    op = "rms_normalization" if rms else "layer_normalization"
    f.case(f"{op}_{name}", op, tensors, axis=axis, epsilon=eps)


def norms():
    f, r = File("normalization"), Random(2)
    for rms in (False, True):
        for dims in ((3, 4), (2, 3, 5), (2, 3, 4, 5)):
            for axis in range(-len(dims), len(dims)):
                eps = {2: 1e-5, 3: 1e-1, 4: 1e-5}[len(dims)]
                suffix = "_epsilon" if len(dims) == 3 else ""
                number = f"negative_{-axis}" if axis < 0 else str(axis)
                name = f"{len(dims)}d_axis_{number}{suffix}"
                norm_case(f, name, r.tensor(*dims), axis, eps, rms, r)
        norm_case(f, "default_axis", r.tensor(2, 3, 4, 5), -1, 1e-5, rms, r)
        norm_case(f, "wide", r.tensor(3, 67, scale=20, offset=5), -1, 1e-6, rms, r)
    norm_case(f, "no_bias", r.tensor(3, 7), -1, 1e-5, False, r, bias=False)
    norm_case(f, "offset", r.tensor(3, 40, offset=1000), -1, 1e-5, False, r)
    f.write()


# ----------------------------------------------------------------------------------- functions


def sigmoid_times(x, y):
    return x / (1 + math.exp(-y)) if y > -700 else 0.0


def functions():
    def ulp(y):
        return 2.0 ** (math.frexp(y)[1] - 24) if abs(y) >= 2.0**-126 else TINY

    def silu(x):
        y = sigmoid_times(x, x)
        return y, 3 * ulp(y) if abs(y) >= 2.0**-126 else 2.0**-120

    def gelu_erf(x):
        return 0.5 * x * math.erfc(-x / math.sqrt(2)), 2 * U * abs(x) + 2.0**-126

    def gelu_tanh(x):
        y = sigmoid_times(x, 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        return y, 2.1 * U * abs(x) + 2.0**-126

    def relu(x):
        return max(x, 0.0), 0.0

    def tanh(x):
        return math.tanh(x), 1.001 * ulp(math.tanh(x))

    f, r = File("function"), Random(3)
    near, example = r.tensor(3, 4, 5), Tensor((3,), (-1, 0, 1))
    far = r.tensor(2, 35, scale=20)
    for name, act, function in (
        ("relu", 1, relu),
        ("swish", 2, silu),
        ("gelu_default", 3, gelu_erf),
        ("gelu_tanh", 4, gelu_tanh),
        ("tanh", 5, tanh),
    ):
        for suffix, x in (("_1", example), ("_2", near), ("_far", far)):
            both = [function(v) for v in x.values]
            tensors = {
                "x": x,
                "y": Tensor(x.dims, (v for v, _ in both)),
                "y.bound": Tensor(x.dims, (b for _, b in both)),
            }
            f.case(name + suffix, "function", tensors, act=act)
    f.write()


# ------------------------------------------------------------------------------------ products


def product_bound(magnitude, k):
    """One chain of k roundings, and up to four more steps."""
    return (min(k, 512) + max(0, math.ceil(k / 512) - 1) + 4) * U * magnitude + (k + 4) * TINY


def gemm_case(f, name, r, m, n, k, alpha=1.0, beta=1.0, trans_a=0, trans_b=0, c=None):
    a = r.tensor(k, m) if trans_a else r.tensor(m, k)
    b = r.tensor(n, k) if trans_b else r.tensor(k, n)
    alpha, beta = f32(alpha), f32(beta)
    y, bound = [], []
    for i, j in indices((m, n)):
        terms = [
            (a[p, i] if trans_a else a[i, p]) * (b[j, p] if trans_b else b[p, j]) for p in range(k)
        ]
        old = 0.0
        if c:  # broadcast from the right
            dims = (1, 1, *c.dims)[-2:]
            old = beta * Tensor(dims, c.values)[i % dims[0], j % dims[1]]
        y.append(alpha * math.fsum(terms) + old)
        magnitude = abs(alpha) * math.fsum(map(abs, terms)) + abs(old)
        bound.append(product_bound(magnitude, k))
    tensors = {"a": a, "b": b}
    if c:
        tensors["c"] = c
    tensors |= {"y": Tensor((m, n), y), "y.bound": Tensor((m, n), bound)}
    f.case(
        f"gemm_{name}", "gemm", tensors, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b
    )


def gemms():
    f, r = File("gemm"), Random(4)
    gemm_case(f, "default_no_bias", r, 2, 3, 10)
    gemm_case(f, "default_zero_bias", r, 3, 4, 5, c=Tensor((1, 4), [0] * 4))
    gemm_case(f, "default_scalar_bias", r, 2, 4, 3, c=Tensor((), [3.14]))
    gemm_case(f, "default_single_elem_vector_bias", r, 3, 3, 7, c=r.tensor(1))
    gemm_case(f, "default_vector_bias", r, 2, 4, 7, c=r.tensor(1, 4))
    gemm_case(f, "column_bias", r, 3, 4, 7, c=r.tensor(3, 1))
    gemm_case(f, "default_matrix_bias", r, 3, 4, 6, c=r.tensor(3, 4))
    gemm_case(f, "transposeA", r, 3, 4, 6, trans_a=1, c=r.tensor(1, 4))
    gemm_case(f, "transposeB", r, 3, 4, 6, trans_b=1, c=r.tensor(1, 4))
    gemm_case(f, "transpose_both", r, 5, 17, 6, trans_a=1, trans_b=1, c=r.tensor(5, 17))
    gemm_case(f, "alpha", r, 3, 4, 5, alpha=0.5, c=r.tensor(1, 4))
    gemm_case(f, "beta", r, 2, 4, 7, beta=0.5, c=r.tensor(1, 4))
    gemm_case(
        f, "all_attributes", r, 3, 5, 4, 0.25, 0.35, trans_a=1, trans_b=1, c=r.tensor(1, 5)
    )
    gemm_case(f, "no_product", r, 3, 5, 4, alpha=0, beta=2, c=r.tensor(3, 5))
    gemm_case(f, "no_k", r, 2, 3, 0, c=r.tensor(2, 3))
    gemm_case(f, "long_k", r, 2, 3, 600, alpha=0.5)
    f.write()


def matmul_case(f, name, r, a_dims, b_dims):
    """The rules of numpy.matmul."""
    a, b = r.tensor(*a_dims), r.tensor(*b_dims)
    full_a = (1, *a_dims) if len(a_dims) == 1 else a_dims
    full_b = (*b_dims, 1) if len(b_dims) == 1 else b_dims
    rank = max(len(full_a), len(full_b))
    full_a = (1,) * (rank - len(full_a)) + full_a
    full_b = (1,) * (rank - len(full_b)) + full_b
    wide_a, wide_b = Tensor(full_a, a.values), Tensor(full_b, b.values)
    batch = tuple(max(p, q) for p, q in zip(full_a[:-2], full_b[:-2]))
    m, k, n = full_a[-2], full_a[-1], full_b[-1]
    y, bound = [], []
    for index in indices((*batch, m, n)):
        at_a = tuple(i % d for i, d in zip(index, full_a[:-2]))
        at_b = tuple(i % d for i, d in zip(index, full_b[:-2]))
        terms = [
            wide_a[(*at_a, index[-2], p)] * wide_b[(*at_b, p, index[-1])] for p in range(k)
        ]
        y.append(math.fsum(terms))
        bound.append(product_bound(math.fsum(map(abs, terms)), k))
    dims = batch + (() if len(a_dims) == 1 else (m,)) + (() if len(b_dims) == 1 else (n,))
    f.case(
        f"matmul_{name}",
        "matmul",
        {"a": a, "b": b, "y": Tensor(dims, y), "y.bound": Tensor(dims, bound)},
    )


def matmuls():
    f, r = File("matmul"), Random(5)
    matmul_case(f, "2d", r, (3, 4), (4, 3))
    matmul_case(f, "3d", r, (2, 3, 4), (2, 4, 3))
    matmul_case(f, "4d", r, (1, 2, 3, 4), (1, 2, 4, 3))
    matmul_case(f, "bcast", r, (3, 1, 3, 4), (1, 2, 4, 2))
    matmul_case(f, "1d_1d", r, (3,), (3,))
    matmul_case(f, "1d_3d", r, (4,), (2, 4, 1))
    matmul_case(f, "4d_1d", r, (3, 1, 4, 2), (2,))
    matmul_case(f, "2d_1d", r, (7, 40), (40,))
    matmul_case(f, "2d_shared_weights", r, (2, 3, 20), (20, 18))
    f.write()


# ----------------------------------------------------------------------------------- attention


def attention_case(
    f, name, r, *, heads=3, kv_heads=None, sq=4, sk=6, dh=5, flat=False, scale=None, causal=0,
    mask=None, boolean=False, past=0, lengths=None, weights=False, poison=(), size=1.0
):
    """mask: a Tensor that broadcasts to [B][H][Sq][keys]. poison: keys that nobody may see."""
    batch, kv_heads = 2, kv_heads or heads
    keys = past + sk
    q = r.tensor(batch, heads, sq, dh, scale=size)
    k, v = r.tensor(batch, kv_heads, keys, dh, scale=size), r.tensor(batch, kv_heads, keys, dh)
    for t in (k, v):
        for b, h, j, c in indices(t.dims):
            if j in poison or (lengths and j >= lengths[b]):
                at = ((b * kv_heads + h) * keys + j) * dh + c
                t.values[at] = NAN if (j + c) % 2 else INF
    factor = f32(scale) if scale else f32(1 / math.sqrt(dh))
    y, bound, w, w_bound = [], [], [], []
    for b, h, i in indices((batch, heads, sq)):
        at = (b, h * kv_heads // heads)
        s, off = [], []
        for j in range(keys):
            seen = not (causal and j > past + i) and not (lengths and j >= lengths[b])
            extra = 0.0
            if mask:
                dims = (1,) * (4 - len(mask.dims)) + mask.dims
                index = tuple(p % d for p, d in zip((b, h, i, j), dims))
                extra = Tensor(dims, mask.values)[index]
                if boolean:
                    extra = 0.0 if extra else -INF
            if not seen or extra == -INF:
                s.append(-INF)
                off.append(0.0)
                continue
            terms = [q[b, h, i, c] * k[(*at, j, c)] for c in range(dh)]
            s.append(factor * math.fsum(terms) + extra)
            off.append((dh + 2) * U * 1.001 * (factor * math.fsum(map(abs, terms)) + abs(extra)))
        top = max(s)
        p = [math.exp(t - top) if t > -INF else 0.0 for t in s]
        total = math.fsum(p)
        p = [t / total if total else 0.0 for t in p]
        seen = [j for j in range(keys) if s[j] > -INF]
        big_d = math.fsum(p[j] * (top - s[j]) for j in seen)
        mean_off = math.fsum(p[j] * off[j] for j in seen)
        blocks = math.ceil(keys / 64)
        fixed = 2 * big_d + 6 * blocks + 4 + depth(keys) + 3
        share = [
            off[j] + mean_off + U * (2 * (top - s[j]) + fixed) if j in seen else 0.0
            for j in range(keys)
        ]
        w += p
        w_bound += [p[j] * share[j] + 2 * TINY if j in seen else 0.0 for j in range(keys)]
        for c in range(dh):
            y.append(math.fsum(p[j] * v[(*at, j, c)] for j in seen))
            error = 2 * TINY if seen else 0.0
            for j in seen:
                size_v = abs(v[(*at, j, c)])
                error += p[j] * size_v * (share[j] + U * (blocks + 64)) + 2 * TINY * (size_v + 1)
            bound.append(error)

    def split(t, first, last):  # keys first .. last of [B][H][keys][dh]
        n = last - first
        return Tensor(
            (batch, kv_heads, n, dh),
            (t[b, h, first + j, c] for b, h, j, c in indices((batch, kv_heads, n, dh))),
        )

    def flatten(t):  # [B][H][S][dh] -> [B][S][H dh]
        b, h, s, d = t.dims
        return Tensor((b, s, h * d), (t[i, l, j, c] for i, j, l, c in indices((b, s, h, d))))

    shape = (batch, heads, sq, dh)
    new_k, new_v, out, out_bound = split(k, past, keys), split(v, past, keys), Tensor(shape, y), Tensor(shape, bound)
    if flat:
        q, new_k, new_v, out, out_bound = map(flatten, (q, new_k, new_v, out, out_bound))
    tensors = {"q": q, "k": new_k, "v": new_v}
    if past:
        tensors |= {"past_k": split(k, 0, past), "past_v": split(v, 0, past)}
    if mask:
        tensors["mask"] = mask
    if lengths:
        tensors["lengths"] = Tensor((batch,), lengths)
    tensors |= {"y": out, "y.bound": out_bound}
    if weights:
        shape = (batch, heads, sq, keys)
        tensors |= {"w": Tensor(shape, w), "w.bound": Tensor(shape, w_bound)}
    f.case(
        f"attention_{'3d' if flat else '4d'}{name}", "attention", tensors, heads=heads,
        kv_heads=kv_heads, scale=factor if scale else 0, causal=causal, boolean=int(boolean)
    )


def attentions():
    f, r = File("attention"), Random(6)

    def booleans(*dims):
        values = [float(r.unit() < 0.7) for _ in range(math.prod(dims))]
        values[:: dims[-1]] = [1.0] * len(values[:: dims[-1]])  # each row sees something
        return Tensor(dims, values)

    for flat in (False, True):
        case = lambda name, **rest: attention_case(f, name, r, flat=flat, **rest)
        case("")
        case("_scaled", scale=0.01)
        case("_causal", causal=1)
        case("_attn_mask", mask=r.tensor(4, 6))
        case("_gqa", heads=6, kv_heads=2)
        case("_gqa_causal", heads=6, kv_heads=2, causal=1)
        case("_with_past_and_present", past=5)
        case("_with_past_and_present_causal", past=5, sk=4, causal=1)
    case = lambda name, **rest: attention_case(f, name, r, **rest)
    case("_gqa_attn_mask", heads=6, kv_heads=2, mask=r.tensor(4, 6))
    case("_gqa_scaled", heads=6, kv_heads=2, scale=0.01)
    case("_multi_query", heads=4, kv_heads=1)
    case("_attn_mask_3d", mask=r.tensor(1, 4, 6))
    case("_attn_mask_3d_heads", mask=r.tensor(3, 4, 6))
    case("_attn_mask_4d", mask=r.tensor(2, 3, 4, 6))
    case("_attn_mask_4d_batch", mask=r.tensor(2, 1, 4, 6))
    case("_attn_mask_4d_causal", mask=r.tensor(2, 3, 4, 6), causal=1)
    case("_attn_bool_mask", mask=booleans(4, 6), boolean=True)
    case("_attn_bool_mask_4d", mask=booleans(2, 3, 4, 6), boolean=True)
    case("_attn_bool_mask_causal", mask=booleans(4, 6), boolean=True, causal=1)
    case("_with_qk_matmul_softmax", weights=True)
    case("_with_qk_matmul_softmax_causal", weights=True, causal=1)
    case("_with_qk_matmul_softmax_mask", weights=True, mask=booleans(4, 6), boolean=True)
    rows = booleans(4, 6)
    rows.values[6:12] = [0.0] * 6
    case("_fullymasked_row", mask=rows, boolean=True, weights=True)
    case("_fullymasked_row_float", mask=Tensor((4, 6), [-INF] * 6 + [0.5] * 18))
    case("_fullymasked", mask=Tensor((4, 6), [0.0] * 24), boolean=True)
    columns = Tensor((4, 6), [0.0 if j in (1, 4) else 1.0 for _ in range(4) for j in range(6)])
    case("_boolmask_nan_robustness", mask=columns, boolean=True, poison=(1, 4))
    minus = Tensor((4, 6), [0.0 if v else -INF for v in columns.values])
    case("_floatmask_nan_robustness", mask=minus, poison=(1, 4))
    case("_causal_nan_robustness", causal=1, sq=3, poison=(3, 4, 5))
    case("_nonpad_kv_seqlen", lengths=(4, 6))
    case("_nonpad_kv_seqlen_zero", lengths=(0, 3))
    case("_one_key", sk=1)
    case("_one_key_left", mask=Tensor((1, 6), [0, 0, 0, 1, 0, 0]), boolean=True)
    case("_large_scores", size=12.0)
    case("_long", sk=70, dh=2, heads=1)
    case("_long_causal", sk=67, sq=67, dh=1, heads=1, causal=1)
    case("_long_first_block_masked", sk=70, dh=2, heads=1, poison=range(64),
         mask=Tensor((1, 70), [float(j >= 64) for j in range(70)]), boolean=True)
    f.write()


# ---------------------------------------------------------------------------------- embeddings


def embeddings():
    f, r = File("embedding"), Random(7)
    table, positions = r.tensor(11, 6), r.tensor(8, 6)
    ids = Tensor((2, 4), (0, 10, 3, 3, 7, 1, 0, 9))
    rows = [table.values[6 * int(i) : 6 * int(i) + 6] for i in ids.values]

    def case(name, scale, where, of):
        y = [[f32(scale) * v for v in row] for row in rows]
        tensors = {"table": table, "ids": ids}
        if of:
            tensors["positions"] = of
            y = [[v + p for v, p in zip(row, of.values[6 * w : 6 * w + 6])] for row, w in zip(y, where)]
        flat = [v for row in y for v in row]
        bound = [abs(v) * U + TINY if of or scale != 1 else 0.0 for v in flat]
        tensors |= {"y": Tensor((2, 4, 6), flat), "y.bound": Tensor((2, 4, 6), bound)}
        f.case(name, "embedding", tensors, scale=f32(scale))

    case("gather_0", 1, None, None)
    case("embedding_scaled", math.sqrt(6), None, None)
    case("embedding_positions", 1, range(8), positions)
    case("embedding_scaled_positions", math.sqrt(6), range(8), positions)
    f.write()


if __name__ == "__main__":
    softmaxes()
    norms()
    functions()
    gemms()
    matmuls()
    attentions()
    embeddings()
