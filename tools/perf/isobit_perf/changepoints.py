# SPDX-License-Identifier: MIT
"""Change points of a series, by Apache Otava (E-divisive means with a t-test)."""

import importlib
import importlib.util
import warnings
from dataclasses import dataclass

FEWEST = 6  # points of a series; with fewer, each half is too small to know its noise
_SIDE = 2  # points on each side: a single one is an outlier until the next says the same
# A candidate is judged while later ones still blur it, so the first pass must be lenient: with
# 10 * max_p (what Otava's own driver takes) steps of +8 % and -10 % hid each other 9 times in 10.
_FIRST_P = 0.01
HINT = ("no change points: the Python package apache-otava is not there; "
        "`python3 -m pip install --no-deps apache-otava` installs it (NumPy and SciPy are all "
        "that it needs here)")


@dataclass(frozen=True)
class Options:
    """max_p: 1e-5 holds for one series of many; at Otava's 1e-3 one quiet series in 20 alarms."""
    max_p: float = 1e-5
    min_change: float = 0.01
    window: int = 50


@dataclass(frozen=True)
class ChangePoint:
    """From point `index` on the series has another mean; change is after/before - 1."""
    index: int
    change: float
    p: float


def available() -> bool:
    """Whether Otava can be imported."""
    return importlib.util.find_spec("otava") is not None


def find(values: list[float], options: Options) -> list[ChangePoint]:
    """The change points, the oldest first."""
    if len(values) < FEWEST or len(set(values)) == 1:
        return []
    analysis = importlib.import_module("otava.analysis")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a part that is constant: 0/0 in a t-test
        weak = analysis.split(list(values), options.window, _FIRST_P)
        points = analysis.merge(weak, list(values), options.max_p, options.min_change)
    ends = [0, *(int(p.index) for p in points), len(values)]
    return [ChangePoint(int(p.index), float(p.stats.forward_rel_change()), float(p.stats.pvalue))
            for i, p in enumerate(points, 1)
            if min(ends[i] - ends[i - 1], ends[i + 1] - ends[i]) >= _SIDE]
