# SPDX-License-Identifier: MIT
"""Estimates, intervals and tests against SciPy, enumeration, and numbers worked by hand."""

import itertools
import math

import numpy as np
import pytest
from isobit_perf import stats
from scipy import stats as scipy_stats


@pytest.mark.parametrize("n", range(1, 13))
def test_cdf_by_enumeration(n: int) -> None:
    """All 2^n ways to give signs to the ranks."""
    ranks = range(1, n + 1)
    sums = [sum(r for r, sign in zip(ranks, signs) if sign)
            for signs in itertools.product((0, 1), repeat=n)]
    expected = [sum(s <= t for s in sums) / 2**n for t in range(n * (n + 1) // 2 + 1)]
    assert stats.signed_rank_cdf(n) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [5, 12, 27, 60, 200])
@pytest.mark.parametrize("shift", [0.0, 0.4, -0.7])
def test_p_against_scipy(n: int, shift: float) -> None:
    d = np.random.default_rng(n).normal(shift, 1, n)
    if stats.hodges_lehmann(d) > 0.1:
        expected = scipy_stats.wilcoxon(d - 0.1, alternative="greater", method="exact").pvalue
        assert stats.p_above(d, 0.1) == pytest.approx(expected, rel=1e-9)
        # and from the Walsh averages, whose number above the bound is the statistic
        below = int(np.sum(stats.walsh_averages(d) <= 0.1))
        assert stats.p_above(d, 0.1) == pytest.approx(stats.signed_rank_cdf(n)[below], rel=1e-9)
    else:
        assert stats.p_above(d, 0.1) == 1
    assert stats.p_below(d, 0.1) == pytest.approx(stats.p_above(-d, -0.1))


def test_p_of_a_difference_of_nothing() -> None:
    assert stats.p_above([0.0] * 12, 0.0) == 1
    assert stats.p_above([0.0, 1.0, 2.0, 3.0, 4.0], 0.0) == pytest.approx(1 / 16)


def test_hodges_lehmann_by_hand() -> None:
    # 1 2 6: the averages 1 1.5 2 3.5 4 6
    assert list(stats.walsh_averages([6, 1, 2])) == [1, 1.5, 2, 3.5, 4, 6]
    assert stats.hodges_lehmann([6, 1, 2]) == 2.75
    assert stats.hodges_lehmann([5]) == 5
    clean = np.random.default_rng(0).normal(0, 1, 30)
    assert abs(stats.hodges_lehmann([*clean, 1e6]) - stats.hodges_lehmann(clean)) < 0.2


def test_interval_by_enumeration() -> None:
    """The interval holds the bounds that the two-sided test at this level does not reject."""
    d = np.random.default_rng(3).normal(0.2, 1, 8)
    for error in (0.3, 0.1, 0.05, 0.02, 0.008):
        found = stats.interval(d, error)
        assert found is not None
        accepted = [bound for bound in np.linspace(-3, 3, 301)
                    if scipy_stats.wilcoxon(d - bound, method="exact").pvalue > error]
        assert found[0] == pytest.approx(min(accepted), abs=0.021)
        assert found[1] == pytest.approx(max(accepted), abs=0.021)


def test_interval_known_quantile() -> None:
    # Tables: n = 12, 5 % two-sided: the critical value is 13, so the 14th average from each end.
    d = np.random.default_rng(4).normal(0, 1, 12)
    walsh = stats.walsh_averages(d)
    assert stats.interval(d, 0.05) == (walsh[13], walsh[-14])
    assert stats.interval(d[:5], 0.05) is None  # 2/2^5 is more than 5 %
    assert stats.interval(d[:6], 0.05) == (min(d[:6]), max(d[:6]))


def test_coverage() -> None:
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(2000):
        found = stats.interval(rng.standard_t(3, 12) + 0.3, 0.05)
        assert found is not None
        missed += not found[0] <= 0.3 <= found[1]
    assert 0.03 < missed / 2000 < 0.06  # exact: 4.3 % at n = 12


def test_benjamini_hochberg_by_hand() -> None:
    # sorted 0.01 0.02 0.03 0.5, times 4/rank: 0.04 0.04 0.04 0.5
    assert stats.benjamini_hochberg([0.03, 0.5, 0.01, 0.02]) == pytest.approx(
        [0.04, 0.5, 0.04, 0.04])
    # 0.005 0.04 0.045 0.2 0.9: 0.025 0.1 0.075 0.25 0.9, and never above what follows
    assert stats.benjamini_hochberg([0.9, 0.04, 0.005, 0.2, 0.045]) == pytest.approx(
        [0.9, 0.075, 0.025, 0.25, 0.075])
    assert stats.benjamini_hochberg([1.0]) == [1.0]


def test_benjamini_hochberg_against_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(6).uniform(0, 1, 40) ** 3
    expected = multitest.multipletests(p, method="fdr_bh")[1]
    assert stats.benjamini_hochberg(list(p)) == pytest.approx(expected)



def test_minimum_detectable() -> None:
    """The smallest change of the formula is found about as often as it says."""
    rng = np.random.default_rng(7)
    size = stats.minimum_detectable(rng.normal(0, 1, 20000), 0.01) * math.sqrt(20000 / 40)
    found = sum(stats.p_above(rng.normal(size, 1, 40), 0) <= 0.01 for _ in range(400))
    assert 0.90 < found / 400 < 0.99
