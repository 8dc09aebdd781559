# SPDX-License-Identifier: MIT
"""Two samples that were not measured in pairs: U test, shift of the logarithms, interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

FEWEST = 9  # repetitions; below, the U test misses what it should find
_EXACT_UP_TO = 400  # products of the sizes; above, the normal distribution is as good


@dataclass(frozen=True)
class Shift:
    """B against A. change and ci are b/a - 1; attained says that ci has the confidence asked."""
    n_a: int
    n_b: int
    a_ns: float
    b_ns: float
    change: float
    ci: tuple[float, float]
    attained: bool
    p: float
    least_p: float


def least_p(n_a: int, n_b: int) -> float:
    """The p of two samples that do not overlap at all: no result can be below it."""
    return min(1.0, 2 / math.comb(n_a + n_b, n_a))


def u_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p; exact where the samples are small and have no ties."""
    x, y = np.asarray(a, float), np.asarray(b, float)
    pooled = np.concatenate([x, y])
    distinct = np.unique(pooled).size
    if distinct == 1:
        return 1.0
    exact = distinct == pooled.size and x.size * y.size <= _EXACT_UP_TO
    p = float(stats.mannwhitneyu(x, y, alternative="two-sided",
                                 method="exact" if exact else "asymptotic").pvalue)
    return max(p, least_p(x.size, y.size))


def _sample_with_u(u: int, n_a: int, n_b: int) -> tuple[list[float], list[float]]:
    """Samples without ties of which exactly u pairs have a below b."""
    full, rest = divmod(u, n_a)
    a = [float(i) for i in range(n_a)]
    places = [float(n_a)] * full + [rest - 0.5] * (full < n_b) + [-1.0] * (n_b - full - 1)
    return a, [place + i / (4 * n_b) for i, place in enumerate(places[:n_b])]


def _cut(n_a: int, n_b: int, confidence: float) -> int:
    """How many pairwise differences the interval leaves out at each end, by inverting the test."""
    low, high = 0, n_a * n_b // 2  # p(U = low - 1) <= alpha; bisection, as p grows with U
    while low < high:
        middle = (low + high + 1) // 2
        if u_test(*_sample_with_u(middle - 1, n_a, n_b)) <= 1 - confidence:
            low = middle
        else:
            high = middle - 1
    return low


def shift(a: Sequence[float], b: Sequence[float], confidence: float) -> Shift:
    """Hodges-Lehmann shift of ln t with its interval, as a relative change."""
    log_a, log_b = np.log(np.asarray(a, float)), np.log(np.asarray(b, float))
    differences = np.sort(np.subtract.outer(log_b, log_a), axis=None)
    cut = _cut(log_a.size, log_b.size, confidence)
    ends = differences[max(cut - 1, 0)], differences[differences.size - max(cut, 1)]
    return Shift(log_a.size, log_b.size, float(np.median(a)), float(np.median(b)),
                 math.expm1(float(np.median(differences))),
                 (math.expm1(float(ends[0])), math.expm1(float(ends[1]))),
                 cut > 0, u_test(a, b), least_p(log_a.size, log_b.size))
