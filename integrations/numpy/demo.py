# SPDX-License-Identifier: MIT
"""A product, a layer and a product with a vector in NumPy's float32: time, and a hash of all results.

Run by `./run drop-in`, once with the BLAS that NumPy has and once with isobit in front of it."""
import hashlib
import sys
import time

import numpy as np

random = np.random.default_rng(1)


def matrix(rows, columns):
    return random.standard_normal((rows, columns), np.float32)


a, b, x, w, v = matrix(768, 768), matrix(768, 768), matrix(16, 768), matrix(3072, 768), matrix(1, 3072)
work = (
    ("A @ B, 768x768x768", lambda: a @ b, 2 * 768**3),
    ("x @ W.T, 16x3072x768", lambda: x @ w.T, 2 * 16 * 3072 * 768),
    ("v @ W, 3072x768", lambda: v[0] @ w, 2 * 3072 * 768),
)
digest = hashlib.sha256()
rates = []
for name, run, flops in work:
    result = run()
    digest.update(result.tobytes())
    best = float("inf")
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    rates.append(f"{flops / best / 1e9:8.1f}")
if len(sys.argv) > 1 and sys.argv[1] == "--head":
    print(f"{'GFLOP/s':<26}", *(f"{name:>22}" for name, _, _ in work), "  hash of the results")
else:
    print(f"{sys.argv[1] if len(sys.argv) > 1 else '':<26}", *(f"{rate:>22}" for rate in rates),
          f"  {digest.hexdigest()[:16]}")
