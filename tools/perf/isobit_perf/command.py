# SPDX-License-Identifier: MIT
"""A and B as programs that are executed in turns, A B B A or B A A B: one round is one process.

That is for the programs of other projects, which speak Google Benchmark's JSON, and for two
environments of one library, which are read when a process begins.
"""

import random
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Protocol, TypeVar

from . import child, schema
from .driver import Collector, OnBench, ProcessFailed
from .errors import PerfError
from .files import BenchError
from .journal import ErrorLine, parse_bench
from .library import LibraryDriver

# What Google Benchmark appends to a name. A reporter of the program's own may leave it out.
_SUFFIXES = re.compile(r"(/(iterations|repeats|min_time|min_warmup_time|threads):[^/]*"
                       r"|/(process_time|manual_time|real_time))*$")
_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}

T = TypeVar("T")


@dataclass
class Execution:
    """What one execution measured: nanoseconds and the hash of the output, per benchmark."""

    times: dict[str, float] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class Runner(Protocol):
    """One of the two sides."""

    def run(self, number: int, seed: int, names: Sequence[str]) -> Execution:
        """Executes these benchmarks once; or ProcessFailed."""


@dataclass
class _Entry:
    name: str
    run_type: str = "iteration"
    real_time: float = 0.0
    time_unit: str = "ns"
    error_occurred: bool = False
    error_message: str = ""


@dataclass
class _Output:
    benchmarks: list[_Entry]


def read_output(path: Path) -> Execution:
    """A file of Google Benchmark: the fastest repetition of each benchmark."""
    found = Execution()
    for entry in schema.read(_Output, path).benchmarks:
        if entry.error_occurred:
            found.errors[entry.name] = entry.error_message or "an error without a message"
        elif entry.run_type == "iteration":
            if entry.real_time <= 0 or entry.time_unit not in _UNITS:
                raise PerfError(f"{path}: {entry.name}: {entry.real_time} {entry.time_unit} is "
                                "no time")
            time = entry.real_time * _UNITS[entry.time_unit]
            found.times[entry.name] = min(time, found.times.get(entry.name, time))
    return found


def _as_listed(found: Execution, names: Sequence[str]) -> Execution:
    """The names of --benchmark_list_tests in place of those in the file."""
    shorter = {_SUFFIXES.sub("", name): name for name in names}

    def listed(of: dict[str, T]) -> dict[str, T]:
        return {name if name in names else shorter.get(name, name): value
                for name, value in of.items()}

    return Execution(listed(found.times), found.hashes, listed(found.errors))


def name_filter(names: Sequence[str]) -> str:
    """A regular expression, POSIX or not, that matches these names only."""
    return "^(" + "|".join(re.sub(r"([].^$*+?(){}|\\[])", r"\\\1", name) for name in names) + ")$"


@dataclass
class CommandRunner:
    """A program of Google Benchmark."""

    command: str
    repetitions: int = 5
    limit: float = 300

    def argv(self) -> list[str]:
        """The words of the command."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise PerfError(f"--command {self.command!r}: {error}") from None
        if not words:
            raise PerfError("--command: an empty command")
        return words

    def list_names(self) -> list[str]:
        """The names of its benchmarks."""
        names: list[str] = []
        try:
            status, errors = child.run([*self.argv(), "--benchmark_list_tests=true"],
                                       names.append, limit=self.limit)
        except child.ChildFailed as error:
            raise PerfError(f"{self.command}: {error}") from None
        if status:
            last = errors.splitlines()[-1] if errors else child.describe_status(status)
            raise PerfError(f"{self.command} --benchmark_list_tests=true: {last}")
        return [name for name in names if name.strip()]

    def run(self, number: int, seed: int, names: Sequence[str]) -> Execution:
        """One execution."""
        with tempfile.TemporaryDirectory(prefix="isobit-perf-") as folder:
            out = Path(folder) / "out.json"
            argv = [*self.argv(), f"--benchmark_filter={name_filter(names)}",
                    f"--benchmark_repetitions={self.repetitions}",
                    f"--benchmark_out={out}", "--benchmark_out_format=json"]
            try:
                status, errors = child.run(argv, lambda line: None, limit=self.limit)
            except child.ChildFailed as error:
                raise ProcessFailed(str(error)) from None
            if status:
                last = errors.splitlines()[-1] if errors and status > 0 else ""
                raise ProcessFailed(f"crashes: {child.describe_status(status)} {last}".strip())
            if not out.exists():  # Google Benchmark does so when the filter matches nothing
                return Execution()
            try:
                return _as_listed(read_output(out), names)
            except PerfError as error:
                raise ProcessFailed("prints garbage: "
                                    + str(error).removeprefix(f"{folder}/")) from None


@dataclass
class EnvironmentRunner:
    """One library with an environment of its own, measured by isobit_ab on both of its sides."""

    driver: LibraryDriver

    def run(self, number: int, seed: int, names: Sequence[str]) -> Execution:
        """One execution."""
        found = Execution()
        for text in self.driver.process(number, seed, names, lambda name: None):
            if '"type": "bench"' in text:
                line = parse_bench(text, "line")
                found.times[line.bench] = median(line.a + line.b)
                if line.hash_a:
                    found.hashes[line.bench] = line.hash_a
            elif '"type": "error"' in text:
                error = schema.parse(ErrorLine, text, "line")
                found.errors[error.bench] = error.why
        return found


@dataclass
class PairedDriver:
    """Rounds of four executions."""

    runners: Mapping[str, Runner]  # "a" and "b"

    def process(self, number: int, seed: int, names: Sequence[str],
                on_bench: OnBench) -> list[str]:
        """One round."""
        order = random.Random(seed).choice(("ABBA", "BAAB"))
        collector = Collector(number, on_bench)
        runs: dict[str, list[Execution]] = {"a": [], "b": []}
        for letter in order.lower():
            try:
                runs[letter].append(self.runners[letter].run(number, seed, names))
            except ProcessFailed as failed:
                raise ProcessFailed(f"{letter.upper()} {failed}") from None
        for name in names:
            broken = self._missing(runs, name)
            if broken:
                collector.add(schema.dump({"type": "error", "bench": name, "which": broken[0],
                                           "why": broken[1]}))
                continue
            line: dict[str, object] = {"type": "bench", "bench": name}
            line.update((side, [run.times[name] for run in runs[side]]) for side in "ab")
            for side in "ab":
                if name in runs[side][0].hashes:
                    line[f"hash_{side}"] = runs[side][0].hashes[name]
            collector.add(schema.dump(line))
        return collector.lines

    @staticmethod
    def _missing(runs: Mapping[str, list[Execution]], name: str) -> tuple[str, str] | None:
        for side in "ab":
            for run in runs[side]:
                if name in run.errors:
                    return side, run.errors[name]
        for side in "ab":
            if any(name not in run.times for run in runs[side]):
                return side, f"{side.upper()} did not measure it"
        return None

    def alone(self, name: str, seed: int) -> tuple[str, str] | None:
        """Whether a side fails with this benchmark alone."""
        for side in "ab":
            try:
                self.runners[side].run(0, seed, [name])
            except ProcessFailed as failed:
                return side, str(failed)
        return None


def common_names(a: CommandRunner, b: CommandRunner) -> tuple[list[str], list[BenchError]]:
    """The benchmarks that both programs have, and those that one of them lacks."""
    names = {"a": a.list_names(), "b": b.list_names()}
    lacks = [BenchError(name, other, f"{other.upper()} has no such benchmark")
             for side, other in (("a", "b"), ("b", "a"))
             for name in names[side] if name not in set(names[other])]
    both = set(names["b"])
    return [name for name in dict.fromkeys(names["a"]) if name in both], lacks
