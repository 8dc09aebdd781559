# SPDX-License-Identifier: MIT
"""NumPy's products and its linear algebra in float32, against float64, over many shapes, strides
and special values. Prints what is wrong, and a hash of all results: equal hashes, equal bits.
Exits with 1 when something is wrong. Usage: numpy_float32.py"""

import hashlib
import sys

import numpy as np

UNIT = 2.0**-24  # half a unit in the last place of 1
TINY = 2.0**-126  # below it a float32 loses bits
SIZES = [1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 65, 100, 129, 200, 257]

np.seterr(all="ignore")
rng = np.random.default_rng(20)
digest = hashlib.sha256()
checks = 0
failures = 0


def wrong(text):
    global failures
    failures += 1
    if failures <= 20:
        print("FAILED:", text)


def keep(result):
    """Adds the bits of a result to the hash. Which NaN it is depends on NumPy and the compiler."""
    result = np.array(result, dtype=np.float32, order="C")
    result[np.isnan(result)] = np.nan
    digest.update(result.tobytes())


def check(title, got, want, magnitude, terms):
    """got: float32. want: the same in float64. magnitude: the same of absolute values."""
    global checks
    checks += 1
    got = np.asarray(got)
    want = np.asarray(want)
    if got.dtype != np.float32 or got.shape != want.shape:
        wrong(f"{title}: {got.dtype} {got.shape} instead of float32 {want.shape}")
        return
    keep(got)
    finite = np.isfinite(want)
    same = np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(
        got[np.isinf(want)], want[np.isinf(want)]
    )
    if not same:
        wrong(f"{title}: NaN or infinity in other places")
        return
    bound = (terms + 4) * UNIT * np.asarray(magnitude) + (terms + 4) * TINY
    far = (np.abs(got.astype(np.float64) - want) > bound) & finite
    if far.any():
        i = tuple(int(x[0]) for x in np.nonzero(far)) if far.ndim else ()
        wrong(f"{title}: {got[i]} instead of {want[i]} at {i}, {int(far.sum())} such elements")


def product(title, a, b, operation, terms=None):
    """operation(a, b) in float32 against float64."""
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    finite_a, finite_b = np.where(np.isfinite(a), a, 0), np.where(np.isfinite(b), b, 0)
    magnitude = operation(np.abs(finite_a.astype(np.float64)), np.abs(finite_b.astype(np.float64)))
    check(title, operation(a, b), operation(wide_a, wide_b), magnitude, terms or a.shape[-1])


def matrix(rows, columns, how):
    """Random numbers; `how` says how they lie in memory."""
    if how == "C":
        return rng.standard_normal((rows, columns), dtype=np.float32)
    if how == "F":
        return rng.standard_normal((columns, rows), dtype=np.float32).T
    if how == "part":  # of a larger matrix: rows have gaps
        room = rng.standard_normal((rows + 3, columns + 5), dtype=np.float32)
        return room[2 : 2 + rows, 4 : 4 + columns]
    if how == "part.T":
        return matrix(columns, rows, "part").T
    if how == "step":
        return rng.standard_normal((2 * rows, 3 * columns), dtype=np.float32)[::2, ::3]
    if how == "reversed":
        return rng.standard_normal((rows, columns), dtype=np.float32)[::-1, ::-1]
    if how == "rows reversed":
        return rng.standard_normal((rows, columns), dtype=np.float32)[::-1]
    if how == "row again":
        return np.broadcast_to(matrix(1, columns, "C"), (rows, columns))
    if how == "column again":
        return np.broadcast_to(matrix(rows, 1, "C"), (rows, columns))
    raise ValueError(how)


def vector(size, how):
    if how == "C":
        return rng.standard_normal(size, dtype=np.float32)
    if how == "reversed":
        return rng.standard_normal(size, dtype=np.float32)[::-1]
    if how == "step":
        return rng.standard_normal(3 * size, dtype=np.float32)[::3]
    if how == "step back":
        return rng.standard_normal(2 * size, dtype=np.float32)[::-2]
    if how == "same":
        return np.broadcast_to(rng.standard_normal(1, dtype=np.float32), (size,))
    raise ValueError(how)


MATRICES = ["C", "F", "part", "part.T", "step", "reversed", "rows reversed", "row again"]
MATRICES += ["column again"]
VECTORS = ["C", "reversed", "step", "step back", "same"]


def matmul(a, b):
    return a @ b


def draw():
    return int(rng.choice(SIZES))


def products():
    """All pairs of layouts, sizes drawn; and all sizes with plain layouts."""
    for how_a in MATRICES:
        for how_b in MATRICES:
            for operation in (matmul, np.dot):
                m, k, n = draw(), draw(), draw()
                title = f"{operation.__name__} {m}x{k} {how_a} by {k}x{n} {how_b}"
                product(title, matrix(m, k, how_a), matrix(k, n, how_b), operation)
        for how_x in VECTORS:
            m, k = draw(), draw()
            title = f"{m}x{k} {how_a} with a vector, {how_x}"
            product(title, matrix(m, k, how_a), vector(k, how_x), matmul)
            product("dot " + title, matrix(m, k, how_a), vector(k, how_x), np.dot)
            product("vector first, " + title, vector(m, how_x), matrix(m, k, how_a), matmul)
    for m in SIZES:
        for how_a, how_b in (("C", "C"), ("C", "F"), ("F", "C"), ("F", "F")):
            k, n = draw(), draw()
            title = f"{m}x{k} {how_a} by {k}x{n} {how_b}"
            product(title, matrix(m, k, how_a), matrix(k, n, how_b), matmul)
    for m, k, n in ((300, 700, 260), (1, 2000, 513), (513, 2000, 1), (512, 64, 512), (4, 3, 5000)):
        for how_a, how_b in (("C", "C"), ("F", "F"), ("part", "part.T")):
            title = f"{m}x{k} {how_a} by {k}x{n} {how_b}"
            product(title, matrix(m, k, how_a), matrix(k, n, how_b), matmul)
    for m, k, n in ((0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)):
        got = matrix(m, k, "C") @ matrix(k, n, "C")
        check(f"{m}x{k} by {k}x{n}", got, np.zeros((m, n)), np.zeros((m, n)), k)


def symmetric():
    """A matrix by its own transpose: NumPy calls ssyrk and mirrors the triangle."""
    for size in SIZES:
        for how in MATRICES:
            a = matrix(size, draw(), how)
            for title, x in (("A by A^T", a), ("A^T by A", a.T)):
                product(f"{title}, {x.shape} {how}", x, x.T, lambda p, q: p @ p.T)
                got = x @ x.T
                if how in ("C", "F", "part", "part.T") and not np.array_equal(got, got.T):
                    wrong(f"{title}, {x.shape} {how}: not symmetric")


def dots():
    for size in SIZES + [1000, 4097, 100003]:
        for how_x in VECTORS:
            for how_y in VECTORS:
                x, y = vector(size, how_x), vector(size, how_y)
                for operation in (np.dot, np.inner, np.vdot):
                    title = f"{operation.__name__} of {size}, {how_x} and {how_y}"
                    product(title, x, y, operation)


def einsums():
    cases = (
        ("ij,jk->ik", (65, 33), (33, 100), 33),
        ("ij,kj->ik", (65, 33), (100, 33), 33),
        ("ji,jk->ki", (33, 65), (33, 100), 33),
        ("bij,bjk->bik", (3, 17, 31), (3, 31, 33), 31),
        ("bhid,bhjd->bhij", (2, 3, 17, 64), (2, 3, 33, 64), 64),
        ("bhij,bhjd->bihd", (2, 3, 17, 33), (2, 3, 33, 64), 33),
        ("ij,j->i", (129, 257), (257,), 257),
        ("ij,i->j", (129, 257), (129,), 129),
        ("i,i->", (1000,), (1000,), 1000),
        ("i,j->ij", (31,), (65,), 1),
        ("abc,cd->abd", (5, 17, 64), (64, 100), 64),
        ("abc,bcd->ad", (5, 17, 64), (17, 64, 33), 17 * 64),
    )
    for subscripts, shape_a, shape_b, terms in cases:
        a = rng.standard_normal(shape_a, dtype=np.float32)
        b = rng.standard_normal(shape_b, dtype=np.float32)
        for optimize in (False, True):
            product(
                f"einsum {subscripts} optimize={optimize}",
                a,
                b,
                lambda p, q: np.einsum(subscripts, p, q, optimize=optimize),  # noqa: B023
                terms,
            )
    for axes, shape_a, shape_b, terms in (
        (1, (65, 33), (33, 100), 33),
        (2, (7, 17, 33), (17, 33, 40), 17 * 33),
        (([0, 2], [1, 0]), (17, 8, 33), (33, 17, 40), 17 * 33),
    ):
        a = rng.standard_normal(shape_a, dtype=np.float32)
        b = rng.standard_normal(shape_b, dtype=np.float32)
        title = f"tensordot {axes}"
        product(title, a, b, lambda p, q: np.tensordot(p, q, axes), terms)  # noqa: B023
    # Stacks, one of them broadcast, and a place for the result that has gaps.
    a = rng.standard_normal((4, 1, 33, 65), dtype=np.float32)
    b = rng.standard_normal((3, 65, 17), dtype=np.float32)
    product("a stack by a stack", a, b, matmul)
    room = np.full((33, 40), 7, dtype=np.float32)
    np.matmul(a[0, 0], b[0], out=room[:, 3:20])
    if not (room[:, :3] == 7).all() or not (room[:, 20:] == 7).all():
        wrong("matmul into a part of a matrix wrote beside it")
    if not np.array_equal(room[:, 3:20], a[0, 0] @ b[0]):
        wrong("matmul into a part of a matrix gave other bits")
    c = np.full((33, 17), np.nan, dtype=np.float32)
    np.matmul(a[0, 0], b[0], out=c)
    if not np.array_equal(c, a[0, 0] @ b[0]):
        wrong("matmul has read the NaN in the place of the result")


def special():
    """One NaN or infinity in an operand, or an infinity beside zeros."""
    for m, k, n in ((1, 5, 1), (3, 17, 5), (33, 16, 17), (16, 65, 64), (129, 100, 65)):
        for value in (np.nan, np.inf, -np.inf):
            for _ in range(4):
                a, b = matrix(m, k, "C"), matrix(k, n, "C")
                a[rng.integers(m), rng.integers(k)] = value
                product(f"{value} in A, {m}x{k} by {k}x{n}", a, b, matmul)
                product(f"{value} in A, by a vector, {m}x{k}", a, b[:, 0].copy(), matmul)
                a, b = matrix(m, k, "F"), matrix(k, n, "F")
                b[rng.integers(k), rng.integers(n)] = value
                product(f"{value} in B, {m}x{k} by {k}x{n}", a, b, matmul)
                product(f"{value} in B, vector first, {k}x{n}", a[0].copy(), b, matmul)
                x, y = vector(k, "C"), vector(k, "step")
                x[rng.integers(k)] = value
                product(f"{value} in a dot product of {k}", x, y, np.dot)
    a = np.array([[np.inf, 1], [1, 0]], dtype=np.float32)
    b = np.array([[0, 1], [1, 1]], dtype=np.float32)
    product("infinity by 0", a, b, matmul)
    large = np.full((3, 4), 3e38, dtype=np.float32)
    if not np.isposinf(large @ large.T).all():
        wrong("products that are too large are not infinite")
    small = np.full((5, 6), 1e-30, dtype=np.float32)
    product("products that are too small", small, small.T.copy(), matmul)


def residual(title, got, want, scale, factor):
    """|got - want| <= factor * unit * scale, as norms."""
    global checks
    checks += 1
    distance = np.linalg.norm(np.asarray(got, dtype=np.float64) - want)
    if not distance <= factor * UNIT * scale:
        wrong(f"{title}: {distance} is above {factor * UNIT * scale}")


def wide(x):
    return np.asarray(x, dtype=np.float64)


def linear_algebra():
    for n in (1, 2, 3, 8, 17, 33, 64, 65, 100, 200):
        a = rng.standard_normal((n, n), dtype=np.float32)
        b = rng.standard_normal((n, 7), dtype=np.float32)
        spd = a @ a.T + n * np.eye(n, dtype=np.float32)
        norm, norm_spd = np.linalg.norm(wide(a)), np.linalg.norm(wide(spd))
        x = np.linalg.solve(a, b)
        residual(f"solve {n}", wide(a) @ wide(x), b, norm * np.linalg.norm(wide(x)), 8 * n)
        inverse = np.linalg.inv(a)
        scale = (norm * np.linalg.norm(wide(inverse))) ** 2
        residual(f"inv {n}", wide(inverse) @ wide(a), np.eye(n), scale, 8 * n)
        low = np.linalg.cholesky(spd)
        residual(f"cholesky {n}", wide(low) @ wide(low).T, spd, norm_spd, 8 * n)
        u, s, vt = np.linalg.svd(a)
        residual(f"svd {n}", wide(u) * s @ wide(vt), a, norm, 30 * n)
        residual(f"svd {n}, U", wide(u).T @ wide(u), np.eye(n), 1, 60 * n)
        w, v = np.linalg.eigh(spd)
        residual(f"eigh {n}", wide(v) * w @ wide(v).T, spd, norm_spd, 30 * n)
        logdet = np.linalg.slogdet(spd)[1]
        truth = np.linalg.slogdet(wide(spd))[1]
        residual(f"slogdet {n}", [logdet], [truth], 1 + abs(truth), 30 * n)
        tall = rng.standard_normal((2 * n + 1, n), dtype=np.float32)
        y = np.linalg.lstsq(tall, np.ones(2 * n + 1, dtype=np.float32), rcond=None)[0]
        normal = wide(tall).T @ (wide(tall) @ wide(y) - 1)
        scale = np.linalg.norm(wide(tall)) ** 2 * (1 + np.linalg.norm(wide(y)))
        residual(f"lstsq {n}", normal, np.zeros(n), scale, 30 * n)
        power = np.linalg.matrix_power(a / np.float32(max(1, n)), 5)
        for result in (x, inverse, low, s, w, y, power):
            keep(result)
        for result in (x, inverse, low, u, s, vt, w, v, y, power):
            if result.dtype != np.float32:
                wrong(f"linear algebra of {n}: a result is {result.dtype}")


products()
symmetric()
dots()
einsums()
special()
linear_algebra()
print(f"{checks} checks, {failures} failures, hash {digest.hexdigest()[:16]}")
sys.exit(failures != 0)
