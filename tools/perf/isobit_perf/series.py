# SPDX-License-Identifier: MIT
"""The history as series: one for each benchmark, one point for each commit."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from . import changepoints, commits, historyfile, text
from .changepoints import ChangePoint, Options
from .errors import Exit, PerfError
from .files import Interval


@dataclass(frozen=True)
class Point:
    """What is known of a commit; several measurements of it make one point, their median."""
    commit: str
    subject: str
    t: str
    ns: float
    ci: Interval | None


@dataclass
class Series:
    """The points of a benchmark, the oldest commit first."""
    bench: str
    points: list[Point]
    changes: list[ChangePoint] = field(default_factory=list)

    @property
    def values(self) -> list[float]:
        return [point.ns for point in self.points]


@dataclass
class History:
    """All series of one machine."""
    fingerprint: str
    options: Options
    series: list[Series]
    commits: list[Point]  # of all series, in order; their times of a benchmark mean nothing
    notes: list[str]
    searched: bool  # for change points; false where Otava is not there

    def headline(self) -> str:
        """How many change points there are, or that nobody knows."""
        count = text.plural(len(self.changed()), "change point")
        return (f"{count if self.searched else 'change points not searched'} in "
                f"{text.plural(len(self.series), 'benchmark')}")

    def changed(self) -> list[tuple[Series, ChangePoint]]:
        """All change points: the newest commit first, then the largest change."""
        pairs = [(s, c) for s in self.series for c in s.changes]
        return sorted(pairs, key=lambda pair: (pair[1].index - len(pair[0].points),
                                               abs(pair[1].change)), reverse=True)

    def shown(self, most: int) -> list[Series]:
        """The series worth a picture: those that changed first, then the others."""
        ranked = {s.bench: s for s, _ in self.changed()}
        ranked |= {s.bench: s for s in self.series}
        return list(ranked.values())[:most]


def choose(db: Path, wanted: str | None, here: str) -> Path:
    """The file of the fingerprint: the one asked for, this machine's, or the only one."""
    if wanted:
        path = historyfile.file_of(db, wanted)
        if not path.exists():
            raise PerfError(f"{path}: no history of this machine")
        return path
    present = sorted(db.glob("*.jsonl"))
    if not present:
        raise PerfError(f"{db}: no history (isobit-perf record adds one)")
    own = db / f"{here}.jsonl"
    if own in present or len(present) == 1:
        return own if own in present else present[0]
    raise PerfError(f"{db} has {len(present)} machines, none is this one ({here}), and times of "
                    "two machines are not compared; give --fingerprint "
                    + " or ".join(path.stem for path in present), Exit.FINGERPRINT)


def load(path: Path, options: Options, repository: Path = Path("."),
         benches: str | None = None, since: str | None = None) -> History:
    """Reads the file, orders the commits, finds the change points."""
    pattern = re.compile(benches or "")
    lines = [line for line in historyfile.read(path) if pattern.search(line.bench)]
    known = commits.subjects(repository)
    rank = {commit: i for i, commit in enumerate(known)}
    notes = []
    if since:
        first = rank.get(commits.resolve(repository, since))
        if first is None:
            raise PerfError(f"--since: {since} is not part of HEAD")
        lines = [line for line in lines if rank.get(line.commit, -1) >= first]
    strangers = {line.commit for line in lines} - rank.keys()
    if strangers:
        notes.append(f"{len(strangers)} of the commits are unknown to git here: all are in the "
                     "order of their times")
        rank = {}
    series = [Series(bench, _points([x for x in lines if x.bench == bench], rank, known))
              for bench in sorted({line.bench for line in lines})]
    searched = changepoints.available()
    if not searched:
        notes.append(changepoints.HINT)
    else:
        for one in series:
            one.changes = changepoints.find(one.values, options)
        short = sum(len(s.points) < changepoints.FEWEST for s in series)
        if short:
            notes.append(f"{short} of {len(series)} series have fewer than "
                         f"{changepoints.FEWEST} points: no change points")
    return History(path.stem, options, series, _points(lines, rank, known), notes,
                   searched)


def _points(lines: list[historyfile.Line], rank: dict[str, int],
            subjects: dict[str, str]) -> list[Point]:
    """One point for each commit, in the order of git or else of the first time."""
    groups: dict[str, list[historyfile.Line]] = {}
    for line in sorted(lines, key=lambda x: historyfile.utc(x.t)):
        groups.setdefault(line.commit, []).append(line)
    names = sorted(groups, key=lambda commit: rank.get(commit, 0))
    return [_point(name, groups[name], subjects.get(name, "")) for name in names]


def _point(commit: str, lines: list[historyfile.Line], subject: str) -> Point:
    intervals = [line.ci for line in lines if line.ci]
    band = (min(c[0] for c in intervals), max(c[1] for c in intervals)) if intervals else None
    return Point(commit, subject, historyfile.utc(lines[0].t),
                 median(line.med_ns for line in lines), band)
