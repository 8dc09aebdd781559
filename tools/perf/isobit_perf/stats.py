# SPDX-License-Identifier: MIT
"""Estimates, intervals and tests for paired differences d of logarithms, d = ln(tB / tA).

The numbers d of one benchmark come one from each process; processes are independent, what happens
inside of one is not. Nothing is assumed of their distribution but symmetry.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]


@lru_cache(maxsize=512)
def signed_rank_cdf(n: int) -> Array:
    """P(T <= t) for t = 0, 1, ..., where T is the signed-rank statistic of n differences.

    SciPy 1.10 has it inside of `wilcoxon` only; an interval needs its quantiles. T is the sum of
    those of the ranks 1..n that a fair coin picks, so its generating function is a product.
    """
    pmf = np.zeros(n * (n + 1) // 2 + 1)
    pmf[0] = 1
    for rank in range(1, n + 1):
        pmf[rank:] += pmf[:-rank].copy()
        pmf /= 2
    return np.minimum(np.cumsum(pmf), 1.0)


def walsh_averages(d: Sequence[float] | Array) -> Array:
    """The means of all pairs (each with itself, too), sorted."""
    return _walsh(tuple(d))


@lru_cache(maxsize=4)  # estimate, interval and test ask one after the other
def _walsh(d: tuple[float, ...]) -> Array:
    values = np.asarray(d, dtype=np.float64)
    i, j = _pairs(len(values))
    found = np.sort((values[i] + values[j]) / 2)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.triu_indices(n)


def hodges_lehmann(d: Sequence[float] | Array) -> float:
    """The median of the Walsh averages: an estimate of the centre that outliers hardly move."""
    walsh = walsh_averages(d)
    return float((walsh[(len(walsh) - 1) // 2] + walsh[len(walsh) // 2]) / 2)


def interval(d: Sequence[float] | Array, error: float) -> tuple[float, float] | None:
    """The interval that fits the signed-rank test; misses the centre with probability <= error.

    None where no interval is that sure: with n differences the error cannot go below 2^(1-n).
    """
    walsh = walsh_averages(d)
    cut = int(np.searchsorted(signed_rank_cdf(len(d)), error / 2, side="right")) - 1
    if cut < 0:
        return None
    return float(walsh[cut]), float(walsh[-1 - cut])


def p_above(d: Sequence[float] | Array, bound: float) -> float:
    """The exact one-sided p of "the centre of d is not above `bound`".

    1 where already the estimate is not above it, which is no smaller than the exact p.
    """
    if hodges_lehmann(d) <= bound:
        return 1.0
    shifted = np.asarray(d, dtype=np.float64) - bound
    # A difference of exactly 0 supports neither side. SciPy would leave exactness for it.
    shifted = shifted[shifted != 0]
    return float(stats.wilcoxon(shifted, alternative="greater", method="exact").pvalue)


def p_below(d: Sequence[float] | Array, bound: float) -> float:
    """As p_above, of "the centre of d is not below `bound`"."""
    return p_above(-np.asarray(d, dtype=np.float64), -bound)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """The adjusted p: those below f have a false discovery rate of at most f. (SciPy 1.11 has it.)

    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.5])
    [0.04, 0.05333333333333334, 0.05333333333333334, 0.5]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    ranked = values[order] * len(values) / np.arange(1, len(values) + 1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum.accumulate(ranked[::-1])[::-1]
    return [float(q) for q in np.minimum(adjusted, 1.0)]


def minimum_detectable(d: Sequence[float] | Array, error: float, power: float = 0.95) -> float:
    """About the change that so many processes of this noise find: with `power`, at `error`."""
    spread = stats.median_abs_deviation(d, scale="normal") / np.sqrt(len(d))
    # 3/pi is the efficiency of the signed-rank test beside the t test on normal noise.
    quantiles = stats.norm.isf(error) + stats.norm.isf(1 - power)
    return float(quantiles * spread / np.sqrt(3 / np.pi))
