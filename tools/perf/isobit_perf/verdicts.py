# SPDX-License-Identifier: MIT
"""From differences to verdicts, with more processes only where they are needed.

**Looks.** The data are judged after a fixed number of processes: 12, 18, 27, 40, ... Each look may
err, so each gets a share of the error that is allowed altogether: the first look a quarter, all
later ones the same of what is left. The shares sum up to 1, and errors of several looks never add
to more than the sum (Bonferroni), whatever decides that there is another look. So `confidence` and
`fdr` hold for the whole session: intervals have the confidence 1 - (1 - confidence) * share, and
q is divided by the share. A session that a budget or Ctrl-C ends between two looks brings the next
one forward: still no more looks than were planned.

**p** is that of the exact signed-rank test of "the change is within the margin", on the side where
the estimate is; **q** is Benjamini-Hochberg's over all benchmarks of the suite, for the two
directions separately. (With p of "there is no change at all" and enough processes every change
would be significant, also one that is smaller than the margin.) A benchmark that a look found SAME
leaves later processes and counts with p = 1 from then on; one that was found slower or faster
keeps its p.

**The geometric mean** of a process is the mean of d over the benchmarks. It sees many small
changes that stay below the margin each; its own margin is a quarter of delta.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import expm1, log1p

import numpy as np

from . import stats
from .files import Geomean, Interval, Verdict

FIRST_SHARE = 0.25


def looks(most: int, first: int = 12) -> list[int]:
    """The numbers of processes after which the data are judged: each half more, up to `most`."""
    planned = [first]
    while planned[-1] < most:
        planned.append(min(planned[-1] * 3 // 2, most) if planned[-1] > 1 else most)
    return planned


def shares(count: int) -> list[float]:
    """The share of the allowed error for each of `count` looks."""
    if count == 1:
        return [1.0]
    return [FIRST_SHARE] + [(1 - FIRST_SHARE) / (count - 1)] * (count - 1)


@dataclass(frozen=True)
class Rules:
    """What decides. delta, fdr, ...: as in the settings of a result."""

    delta: float = 0.02
    fdr: float = 0.05
    confidence: float = 0.95
    geomean_delta: float = 0.005
    looks: list[int] = field(default_factory=lambda: looks(200))

    def look(self, processes: int) -> int:
        """The look that so many processes make: the first one that is not smaller."""
        return next((i for i, n in enumerate(self.looks) if processes <= n), len(self.looks) - 1)

    def share(self, look: int) -> float:
        """The share of the error that belongs to a look."""
        return shares(len(self.looks))[look]


@dataclass
class Finding:
    """What is known of a benchmark; changes are b/a - 1."""

    change: float
    ci: Interval | None
    p: float
    slower: bool  # the side that p is of
    q: float = 1.0
    verdict: Verdict = "INCONCLUSIVE"


def _as_change(ci: Interval | None) -> Interval | None:
    return None if ci is None else (expm1(ci[0]), expm1(ci[1]))


def _verdict(ci: Interval | None, margin: float, significant: bool) -> Verdict:
    if ci is None:
        return "INCONCLUSIVE"
    if ci[0] > margin and significant:
        return "REGRESSION"
    if ci[1] < -margin and significant:
        return "FASTER"
    return "SAME" if -margin < ci[0] and ci[1] < margin else "INCONCLUSIVE"


def _estimate(d: Sequence[float], margin: float, error: float) -> Finding:
    centre = stats.hodges_lehmann(d)
    slower = centre > 0
    p = stats.p_above(d, log1p(margin)) if slower else stats.p_below(d, log1p(-margin))
    return Finding(expm1(centre), _as_change(stats.interval(d, error)), p, slower)


def judge(data: Mapping[str, Sequence[float]], margins: Mapping[str, float], rules: Rules,
          look: int, decided: Mapping[str, Finding] | None = None) -> dict[str, Finding]:
    """The findings of one look; `decided` are those of benchmarks that have left before."""
    share = rules.share(look)
    found: dict[str, Finding] = {}
    counted: dict[str, float] = {}
    for name, d in data.items():
        old = (decided or {}).get(name)
        found[name] = old or _estimate(d, margins[name], (1 - rules.confidence) * share)
        counted[name] = 1.0 if old and old.verdict == "SAME" else found[name].p
    for slower in (True, False):
        p = [counted[name] if found[name].slower == slower else 1.0 for name in found]
        for name, q in zip(found, stats.benjamini_hochberg(p), strict=True):
            finding = found[name]
            if finding.slower == slower and name not in (decided or {}):
                finding.q = min(1.0, q / share)
                finding.verdict = _verdict(finding.ci, margins[name], finding.q < rules.fdr)
    return found


def geomean(rows: Sequence[Mapping[str, float]], names: Sequence[str], rules: Rules,
            look: int) -> Geomean:
    """Over the processes that measured nearly all benchmarks; what lacks is the median's."""
    table = np.array([[row.get(name, np.nan) for name in names] for row in rows])
    table = table.reshape(len(rows), len(names))
    table = table[np.isfinite(table).sum(axis=1) >= 0.9 * len(names)]
    if not len(table) or not len(names):
        return Geomean(0.0, None, "INCONCLUSIVE")
    table = np.where(np.isfinite(table), table, np.nanmedian(table, axis=0))
    means = table.mean(axis=1)
    ci = _as_change(stats.interval(means, (1 - rules.confidence) * rules.share(look)))
    return Geomean(expm1(stats.hodges_lehmann(means)), ci,
                   _verdict(ci, rules.geomean_delta, True))
