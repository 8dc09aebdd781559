# SPDX-License-Identifier: MIT
"""Campaigns that last: FILE.jsonl has a line for each run of `aa` or `inject`.

Days, folders and revisions add up; what another machine measured, or other rules decided, is a
group of its own. The revision is none of that: what a campaign measures is the machine and the
rules, with a library as the load. The tables say how many revisions there are.
"""

import argparse
import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from . import campaign, machine, others, plan, schema
from .build import git
from .errors import PerfError
from .files import Bench, Result
from .plan import Plan

# Raised by who changes how verdicts or times come about: then earlier records say nothing any more.
VERSION = 1


@dataclass(frozen=True)
class RuleSet:
    """What decides, and how it is measured. names: a hash of those of the benchmarks."""

    suite: str
    delta: float
    geomean_delta: float
    fdr: float
    confidence: float
    looks: list[int]
    budget: float | None
    names: str
    version: int
    blocks: int | None = None
    slot: float | None = None
    seconds: float | None = None
    repetitions: int | None = None


@dataclass
class Slowdown:
    """What became of one injected slowdown. seconds: until its verdict."""

    bench: str
    percent: float
    verdict: str
    change: float
    seconds: float


@dataclass
class Other:
    """What a rule of others said of the run and the one before."""

    alarms: int  # false ones
    found: dict[str, int]  # of the injected ones, by percent


@dataclass
class Record:
    """One run. `campaign` and `run` name it: they are never there twice.

    commit: of the library, or what lay in the working folder. all: percent on all benchmarks.
    alarms: {benchmark: change} of what was blamed for nothing.
    others is null where the run before is not in the same folder.
    """

    v: Literal[1]
    kind: Literal["aa", "inject"]
    campaign: str
    run: int
    t: str
    fp: str
    cpu: str
    compiler: str
    threads: int
    commit: str | None
    sha256: str
    neighbour: bool
    load: float
    rules: RuleSet
    benches: int
    processes: int
    seconds: float
    verdict: str
    counts: dict[str, int]
    geomean: float
    alarms: dict[str, float]
    faster: dict[str, float]
    largest_same: float
    all: float | None = None
    injected: list[Slowdown] = field(default_factory=list)
    others: dict[str, Other] | None = None

    def enough(self) -> bool:
        """Whether it got to the first look. Before that it can raise no alarm, nor find one."""
        return self.processes >= self.rules.looks[0]


def _slowdown(bench: Bench, percent: float, path: Path) -> Slowdown:
    return Slowdown(bench.bench, percent, bench.verdict, round(bench.change, 5),
                    round(campaign.seconds_until(path, bench.n), 1))


def _changes(benches: Sequence[Bench], verdict: str) -> dict[str, float]:
    return {b.bench: round(b.change, 5) for b in benches if b.verdict == verdict}


def _others(path: Path, before: Path) -> dict[str, Other] | None:
    if not before.exists() or not plan.journal_path(before).exists():
        return None
    found = others.tally([others.read_run(before), others.read_run(path)])
    return {entry.rule: Other(entry.false_alarms, entry.found) for entry in found[1:]}


def of_run(result: Result, path: Path, name: str, number: int, rules: RuleSet,
           commit: str | None) -> Record:
    """The record of run `number` of the campaign `name`; `path` is where its result lies."""
    injected: Mapping[str, float] = result.settings.get("inject", {})
    everywhere = bool(result.settings.get("inject_all"))
    free = [bench for bench in result.benches if bench.bench not in injected]
    same = [abs(bench.change) for bench in free if bench.verdict == "SAME"]
    counts = Counter(bench.verdict for bench in result.benches)
    slowed = [] if everywhere else [bench for bench in result.benches if bench.bench in injected]
    return Record(
        1, "inject" if injected else "aa", name, number, result.started,
        result.machine.fingerprint, result.machine.cpu, result.machine.compiler,
        result.machine.threads, result.a.commit or commit, str(result.settings.get("a_sha256", "")),
        bool(result.settings.get("neighbour")), round(machine.load()[0], 2), rules,
        len(result.benches), result.processes, round(result.seconds, 1), result.verdict,
        dict(sorted(counts.items())), round(result.geomean.change, 6),
        _changes(free, "REGRESSION"), _changes(free, "FASTER"), round(max(same, default=0.0), 5),
        next(iter(injected.values())) if everywhere else None,
        [_slowdown(bench, injected[bench.bench], path) for bench in slowed],
        _others(path, path.with_name(f"run-{number - 1:03}.json")))


def read(path: Path) -> list[Record]:
    """All records. A last line without its end is one that a kill has cut: it does not count."""
    rows = schema.read_text(path).split("\n")
    found = [schema.parse(Record, text, path, number)
             for number, text in enumerate(rows[:-1], 1) if text.strip()]
    if not all(record.rules.looks for record in found):
        raise PerfError(f"{path}: a run without looks")
    return found


def _there(path: Path) -> bool:
    """Whether there is such a file; a folder or a device is an error."""
    if path.exists() and not path.is_file():
        raise PerfError(f"{path}: not a file that can be added to")
    return path.exists()


def append(path: Path, record: Record) -> bool:
    """Adds a record, in place of half a line if there is one; false where it is there already."""
    _there(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if any((old.campaign, old.run) == (record.campaign, record.run)
                   for old in read(path)):
                return False
            file.seek(0)
            kept = file.read().rfind(b"\n") + 1
            file.truncate(kept)
            data = (schema.dump(record) + "\n").encode()
            try:
                if file.write(data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(kept)
                raise
    except OSError as error:
        raise PerfError(f"{path}: cannot be written: {error.strerror}; the same command adds "
                        "this run later") from None
    return True


def group(record: Record) -> tuple[str, str]:
    """Records of equal groups add up: the same machine and rules."""
    return record.fp, schema.dump(record.rules)


@dataclass
class Keeper:
    """Adds the runs of one campaign to a file. Without a file it does nothing."""

    path: Path | None
    name: str
    fingerprint: str
    rules: RuleSet
    percents: list[float]  # none: aa
    everywhere: bool = False
    commit: str | None = None

    def _is_like(self, record: Record) -> bool:
        percents = [] if self.everywhere else sorted(self.percents)
        return (record.enough() and record.kind == ("inject" if self.percents else "aa")
                and record.all == (self.percents[0] if self.everywhere else None)
                and sorted(s.percent for s in record.injected) == percents
                and (record.fp, record.rules) == (self.fingerprint, self.rules))

    def left(self, runs: int) -> int:
        """How many of so many runs are this campaign's: those that no other one has made."""
        if not self.path or not _there(self.path):
            return runs
        return max(0, runs - sum(self._is_like(record) and record.campaign != self.name
                                 for record in read(self.path)))

    def add(self, result: Result, path: Path, number: int) -> None:
        """Adds a run, unless it is there."""
        if self.path:
            append(self.path, of_run(result, path, self.name, number, self.rules,
                                     self.commit))


def keeper(args: argparse.Namespace, planned: Plan, percents: list[float] | None = None,
           everywhere: bool = False) -> Keeper:
    """The keeper that --keep asks for."""
    known = {f.name for f in dataclasses.fields(RuleSet)}
    settings = {key: value for key, value in plan.settings(args, planned, {}).items()
                if key in known}
    names = hashlib.sha256("\n".join(planned.names).encode()).hexdigest()[:8]
    rules = RuleSet(**settings, names=names, version=VERSION)
    commit = None
    if args.keep:
        with contextlib.suppress(PerfError):  # no repository
            commit = git(args.repository, "describe", "--always", "--dirty", "--abbrev=40",
                         "--exclude=*")
    return Keeper(args.keep, campaign.name_of(args.output), planned.machine.fingerprint, rules,
                  percents or [], everywhere, commit)
