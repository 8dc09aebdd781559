# SPDX-License-Identifier: MIT
"""The sub-command others: what simpler rules say of the same recordings.

The runs of a folder of `aa` or `inject` stand for builds that were measured one after the other:
before is side A of a run, after side B of the next one, of each the first processes. So both rules
compare what a CI compares that measures each commit once, on the same machine, a minute apart.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import campaign, files, journal, schema
from .errors import Exit, PerfError
from .plan import journal_path
from .unpaired import u_test

FIRST = 12  # processes: those that measure all benchmarks
Times = Mapping[str, Sequence[float]]
Rule = Callable[[Sequence[float], Sequence[float]], bool]


def differs(before: Sequence[float], after: Sequence[float]) -> bool:
    """compare.py of Google Benchmark marks what has p < 0.05, without a correction."""
    return u_test(before, after) < 0.05 and float(np.median(after)) > float(np.median(before))


def much_slower(before: Sequence[float], after: Sequence[float]) -> bool:
    """20 % slower than the last run, by the medians."""
    return float(np.median(after)) > 1.2 * float(np.median(before))


RULES: dict[str, Rule] = {"U test, p < 0.05": differs, "20 % slower": much_slower}


@dataclass
class Run:
    """One run of a campaign."""

    before: Times
    after: Times
    injected: dict[str, float]
    regressions: set[str]


@dataclass
class Tally:
    """What a rule said."""

    rule: str
    runs: int = 0
    false_runs: int = 0
    false_alarms: int = 0
    injected: dict[str, int] = field(default_factory=dict)  # by percent
    found: dict[str, int] = field(default_factory=dict)

    def add(self, flagged: set[str], injected: Mapping[str, float]) -> None:
        """Adds a run."""
        false = flagged - set(injected)
        self.runs += 1
        self.false_runs += bool(false)
        self.false_alarms += len(false)
        for name, percent in injected.items():
            key = f"{percent:g}"
            self.injected[key] = self.injected.get(key, 0) + 1
            self.found[key] = self.found.get(key, 0) + (name in flagged)


def _times(processes: Sequence[journal.Process], side: str) -> Times:
    found: dict[str, list[float]] = {}
    for process in processes[:FIRST]:
        for name, line in process.benches.items():
            found.setdefault(name, []).append(float(np.median(getattr(line, side))))
    return found


def read_run(path: Path) -> Run:
    """A run and its journal."""
    result = files.read_result(path)
    _, entries, _ = journal.read(journal_path(path))
    processes = [entry for entry in entries if isinstance(entry, journal.Process)]
    injected = result.settings.get("inject", {})
    if not isinstance(injected, dict):
        raise PerfError(f"{path}: settings.inject is no list of benchmarks")
    return Run(_times(processes, "a"), _times(processes, "b"), injected,
               {bench.bench for bench in result.benches if bench.verdict == "REGRESSION"})


def tally(runs: Sequence[Run]) -> list[Tally]:
    """What all rules say, on the runs that have one before them."""
    found = [Tally("isobit-perf"), *(Tally(name) for name in RULES)]
    for last, run in zip(runs, runs[1:]):
        found[0].add(run.regressions, run.injected)
        names = [name for name in run.after if name in last.before]
        for entry, rule in zip(found[1:], RULES.values(), strict=True):
            entry.add({name for name in names if rule(last.before[name], run.after[name])},
                      run.injected)
    return found


def add_parser(subparsers: Any) -> None:
    """`others`."""
    parser = subparsers.add_parser(
        "others", description="What the U test and a threshold of 20 percent say of the runs in "
        "a folder of aa or inject: false alarms, and slowdowns that they find.")
    parser.add_argument("folder", type=Path, metavar="DIR")


def main(args: argparse.Namespace) -> int:
    """`others`."""
    paths = sorted(args.folder.glob("run-*[0-9].json"))
    if len(paths) < 2:
        raise PerfError(f"{args.folder}: needs two runs of aa or inject at least")
    found = tally([read_run(path) for path in paths])
    percents = sorted(found[0].injected, key=float)
    rows = [["rule", "runs", "runs with a false alarm", "false alarms",
             *(f"{percent} % found" for percent in percents)]]
    for entry in found:
        rows.append([entry.rule, str(entry.runs), str(entry.false_runs), str(entry.false_alarms),
                     *(f"{entry.found[p]} of {entry.injected[p]}" for p in percents)])
    campaign.show(campaign.table(rows))
    schema.write(args.folder / "others.json", {"v": 1, "rules": [vars(t) for t in found]})
    return Exit.OK
