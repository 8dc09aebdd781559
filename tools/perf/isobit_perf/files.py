# SPDX-License-Identifier: MIT
"""The files: dataclasses, and functions that read, check and write them.

Numbers are finite, unknown keys are ignored, files are written to a temporary name and renamed.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from . import schema
from .errors import Exit, PerfError

Verdict = Literal["REGRESSION", "FASTER", "SAME", "INCONCLUSIVE"]
SuiteVerdict = Literal["REGRESSION", "FASTER", "SAME", "INCONCLUSIVE", "DIFFERENT"]
Interval = tuple[float, float]


@dataclass
class Side:
    """One of the two that are compared."""

    name: str  # as the user said it
    commit: str | None
    path: str
    version: str


@dataclass
class Machine:
    """Where it was measured. Times of two fingerprints are never compared."""

    fingerprint: str
    cpu: str
    features: list[str]
    compiler: str
    kernel: str
    threads: int
    sleef: str


@dataclass
class Geomean:
    """The geometric mean over all benchmarks. No interval: too few processes for one."""

    change: float
    ci: Interval | None
    verdict: Verdict


@dataclass
class Bench:
    """A benchmark in a result. `change` and `ci` are b/a - 1: positive is slower.

    n is the number of processes, the length of d. An interval is null where n is too small for
    the confidence that was asked for. noise is null where no A/A run has measured it.
    """

    bench: str
    n: int
    a_ns: float
    b_ns: float
    change: float
    ci: Interval | None
    p: float
    q: float
    margin: float
    noise: float | None
    verdict: Verdict
    same_output: bool | None
    d: list[float]


@dataclass
class BenchError:
    """A benchmark that was left out, and why. which: "a", "b", or "" for neither alone.

    failed: it crashed, hung or printed garbage, rather than that a side does not have it.
    """

    bench: str
    which: str
    why: str
    failed: bool = False


@dataclass
class Result:
    """ab.json: what `ab` and `aa` found."""

    v: Literal[1]
    kind: Literal["ab", "aa", "command"]
    a: Side
    b: Side
    machine: Machine
    settings: dict[str, Any]
    seed: int
    started: str
    seconds: float
    processes: int
    verdict: SuiteVerdict
    geomean: Geomean
    command: str
    benches: list[Bench]
    errors: list[BenchError]
    complete: bool = True  # false: ended early, by Ctrl-C for example


@dataclass
class BenchNoise:
    """How far A and a copy of A lie apart: in |ln b/a|, but for n."""

    n: int
    mad: float
    p95: float
    mde: float  # the smallest change that such a run finds


@dataclass
class Noise:
    """perf/noise/<fingerprint>.json, written by `aa`."""

    v: Literal[1]
    fingerprint: str
    benches: dict[str, BenchNoise]
    limits: dict[str, float] = field(default_factory=dict)


@dataclass
class Suites:
    """perf/suites.json: named lists of regular expressions of benchmark names."""

    v: Literal[1]
    suites: dict[str, list[str]]


def read_result(path: str | Path) -> Result:
    """An ab.json."""
    return schema.read(Result, path)


def write_result(path: str | Path, result: Result) -> None:
    """Writes an ab.json."""
    schema.write(path, result)


def read_suites(path: str | Path) -> Suites:
    """A suites.json."""
    return schema.read(Suites, path)


def noise_path(root: str | Path, fingerprint: str) -> Path:
    """Where the noise of a machine lies; `root` is the folder `perf`."""
    return Path(root) / "noise" / f"{fingerprint}.json"


def read_noise(path: str | Path, fingerprint: str) -> Noise | None:
    """The noise file, None where there is none; another machine's is an error."""
    if not Path(path).exists():
        return None
    noise = schema.read(Noise, path)
    if noise.fingerprint != fingerprint:
        raise PerfError(f"{path}: measured on {noise.fingerprint}, this machine is "
                        f"{fingerprint}", Exit.FINGERPRINT)
    return noise


def write_noise(path: str | Path, noise: Noise) -> None:
    """Writes a noise file."""
    schema.write(path, noise)
