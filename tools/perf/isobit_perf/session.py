# SPDX-License-Identifier: MIT
"""A session: processes until all benchmarks are decided, or the budget is used up.

All that the session decides follows from the journal, so one that was killed and resumed decides
as if it had never stopped.
"""

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import accepted, blocks, journal, schema
from .driver import Driver, ProcessFailed
from .errors import Exit, PerfError
from .files import Bench, BenchError, Geomean, Noise, Result, SuiteVerdict
from .progress import Progress, duration
from .verdicts import Finding, Rules, geomean, judge

FAILURES_IN_A_ROW = 3


@dataclass
class State:
    """What is known so far."""

    processes: list[journal.Process] = field(default_factory=list)
    errors: list[BenchError] = field(default_factory=list)
    decided: dict[str, Finding] = field(default_factory=dict)
    attempts: int = 0  # numbers that are used up, those of failed processes too
    failures: int = 0  # in a row
    seconds: float = 0.0


class SessionRun:
    """Runs or resumes one session."""

    def __init__(self, head: journal.Session, path: Path, driver: Driver, rules: Rules,
                 noise: Noise | None, budget: float | None, progress: Progress) -> None:
        self.head, self.path, self.driver, self.rules = head, path, driver, rules
        self.budget, self.progress = budget, progress
        self.noise = {name: found.p95 for name, found in noise.benches.items()} if noise else {}
        self.margins = {name: max(rules.delta, self.noise.get(name, 0)) for name in head.suite}
        self.state = State()
        self.complete = True
        self._journal: journal.Journal | None = None

    # -------------------------------------------------------------------------------- running

    def begin(self, errors: list[BenchError]) -> None:
        """A new journal. `errors`: benchmarks that are left out from the beginning."""
        lines = schema.dump(self.head) + "\n"
        if errors:
            failed = journal.FailedLine("failed", 0, "left out", 0.0, errors)
            lines += schema.dump(failed) + "\n"
            self.state.errors += errors
        self._journal = journal.Journal(self.path, lines)

    def resume(self, found: list[journal.Process | journal.FailedLine], text: str) -> None:
        """Takes over what a journal holds."""
        for entry in found:
            self._take(entry)
        self._journal = journal.Journal(self.path, text)

    def active(self) -> list[str]:
        """The benchmarks that the next process measures."""
        gone = set(self.state.decided) | {error.bench for error in self.state.errors}
        return [name for name in self.head.suite if name not in gone]

    def run(self) -> None:
        """Measures until the end; Ctrl-C and a full disk leave what there is."""
        try:
            while self._go_on():
                self._process()
        except BaseException:
            self.complete = False
            raise

    def _go_on(self) -> bool:
        state = self.state
        if not self.active() or len(state.processes) >= self.rules.looks[-1]:
            return False
        if state.failures >= FAILURES_IN_A_ROW:
            raise PerfError(f"{state.failures} processes in a row failed, and no benchmark "
                            "fails alone")
        if self.budget is None or not state.processes:
            return True
        return state.seconds + state.processes[-1].seconds <= self.budget

    def _process(self) -> None:
        state, names = self.state, self.active()
        number = state.attempts + 1
        until = self.rules.looks[self.rules.look(len(state.processes) + 1)]
        last = state.processes[-1].seconds if state.processes else 0.0
        self.progress.process(len(state.processes) + 1, until, len(names),
                              last * (until - len(state.processes)))
        seed = random.Random(f"{self.head.seed}/{number}").getrandbits(32)
        begun = time.monotonic()
        entry: journal.Process | journal.FailedLine
        try:
            lines = self.driver.process(number, seed, names, self.progress.bench)
            seconds = time.monotonic() - begun
            lines.append(schema.dump({"type": "end", "benches": len(names), "process": number,
                                      "seconds": seconds}))
            entry = journal.make_process(lines, number, seconds)
        except ProcessFailed as failed:
            self.progress.say(f"process {number}: {failed}")
            errors = self._culprits([n for n in names if n not in failed.done], seed)
            entry = journal.FailedLine("failed", number, str(failed),
                                       time.monotonic() - begun, errors)
            lines = [schema.dump(entry)]
        assert self._journal
        self._journal.append(lines)
        self._take(entry, names)

    def _culprits(self, suspects: list[str], seed: int) -> list[BenchError]:
        found = []
        for name in suspects:
            why = self.driver.alone(name, seed)
            if why:
                found.append(BenchError(name, *why, failed=True))
                self.progress.say(f"{name}: left out: {why[1]}")
        return found

    # ------------------------------------------------------------------------------- deciding

    def _take(self, entry: journal.Process | journal.FailedLine,
              names: list[str] | None = None) -> None:
        """Adds a process, and decides when it is time to look."""
        state = self.state
        names = self.active() if names is None else names
        state.attempts = max(state.attempts, getattr(entry, "number", 0),
                             getattr(entry, "process", 0))
        state.seconds += entry.seconds
        state.errors += entry.errors
        if isinstance(entry, journal.FailedLine):
            state.failures = 0 if entry.errors else state.failures + 1
            return
        state.failures = 0
        state.processes.append(entry)
        told = set(entry.benches) | {error.bench for error in entry.errors}
        state.errors += [BenchError(name, "", "was not measured, without an error")
                         for name in names if name not in told]
        if len(state.processes) in self.rules.looks:
            self._look()

    def _left_out(self) -> set[str]:
        return {error.bench for error in self.state.errors}

    def findings(self) -> tuple[dict[str, Finding], Geomean, blocks.Data]:
        """What the data say now."""
        data = blocks.reduce(self.state.processes, self._left_out())
        look = self.rules.look(len(self.state.processes))
        found = judge({name: series.d for name, series in data.series.items() if series.d},
                      self.margins, self.rules, look, self.state.decided)
        mean = geomean(data.rows, list(found), self.rules, look)
        return found, mean, data

    def _look(self) -> None:
        found, mean, data = self.findings()
        verdicts = Counter(finding.verdict for finding in found.values())
        self.progress.say(
            f"{len(self.state.processes)} processes, {duration(self.state.seconds)}: "
            + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
        # All stay while it looks as if they were slower together, and none of them is for itself.
        if (mean.verdict == "INCONCLUSIVE" and mean.change > self.rules.geomean_delta / 2
                and not verdicts["REGRESSION"] + verdicts["FASTER"]):
            return
        self.state.decided = {name: finding for name, finding in found.items()
                              if finding.verdict != "INCONCLUSIVE"}

    # ------------------------------------------------------------------------------ the result

    def result(self, command: str) -> Result:
        """The result of all processes so far."""
        found, mean, data = self.findings()
        state, head = self.state, self.head
        benches = []
        for name in head.suite:
            if name not in found:
                continue
            series, finding = data.series[name], found[name]
            benches.append(Bench(
                name, len(series.d), _median(series.a_ns), _median(series.b_ns), finding.change,
                finding.ci, finding.p, finding.q, self.margins[name], self.noise.get(name),
                finding.verdict, series.same_output(), series.d))
        if not benches:
            why = "; ".join(f"{e.bench}: {e.why}" for e in state.errors[:3])
            raise PerfError("nothing was measured" + (f": {why}" if why else ""))
        return Result(1, head.kind, head.a, head.b, head.machine, head.settings, head.seed,
                      head.started, round(state.seconds, 3), len(state.processes),
                      _suite_verdict(benches, mean, head.settings),
                      mean, command,
                      benches, state.errors, self.complete)


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _suite_verdict(benches: list[Bench], mean: Geomean,
                   settings: Mapping[str, Any]) -> SuiteVerdict:
    wanted = settings.get("accepted", {})
    verdicts = {bench.verdict for bench in benches}
    if settings.get("outputs") != "ignored" and any(b.same_output is False for b in benches):
        return "DIFFERENT"
    if any(bench.verdict == "REGRESSION" and not accepted.reason(wanted, bench.bench)
           for bench in benches):
        return "REGRESSION"
    if mean.verdict == "REGRESSION" and not accepted.reason(wanted, accepted.GEOMEAN):
        return "REGRESSION"
    if "INCONCLUSIVE" in verdicts:
        return "INCONCLUSIVE"
    return "FASTER" if "FASTER" in verdicts or mean.verdict == "FASTER" else "SAME"


def exit_status(result: Result, strict: bool) -> Exit:
    """The exit status that a result asks for."""
    if result.verdict == "DIFFERENT":
        return Exit.DIFFERENT
    if result.verdict == "REGRESSION":
        return Exit.REGRESSION
    if any(error.failed for error in result.errors):
        return Exit.TROUBLE
    return Exit.INCONCLUSIVE if strict and result.verdict == "INCONCLUSIVE" else Exit.OK
