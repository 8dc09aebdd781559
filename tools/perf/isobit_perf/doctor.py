# SPDX-License-Identifier: MIT
"""`isobit-perf doctor`: what disturbs measurements on this machine, and what to do about it.

Reads /proc and /sys, and runs for two seconds the fixed work (multiply-adds, a copy) that isobit_ab
times before each benchmark.
"""
import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import build, library
from .errors import Exit, PerfError

CPU = "sys/devices/system/cpu"
SECONDS = 2.0
MOST_LOAD = 0.5  # of a CPU
MOST_STEAL = 0.01
MOST_NOISE = 0.03


@dataclass(frozen=True)
class Line:
    """One check. `advice` says what to do."""

    status: Literal["OK", "WARN", "unknown"]
    name: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Canary:
    """How much slower the slow tenth of the runs is than the fastest one; or why there are none."""

    fma: float = 0.0
    copy: float = 0.0
    runs: int = 0
    why: str = ""


class Root:
    """The files of a machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: str) -> str | None:
        try:
            return (self.folder / path).read_text(errors="replace").strip()
        except (OSError, ValueError):  # ValueError: a name with a null byte
            return None

    def number(self, path: str) -> float | None:
        """The first number of a file."""
        m = re.match(r"-?\d+(\.\d+)?", self.read(path) or "")
        return float(m.group()) if m else None

    def all(self, pattern: str) -> list[str]:
        try:
            names = sorted(str(p.relative_to(self.folder)) for p in self.folder.glob(pattern))
        except OSError:
            return []
        return [text for text in map(self.read, names) if text is not None]


def check(name: str, value: float | str | None, good: bool, text: str, advice: str) -> Line:
    """A line about a value, unknown if there is none."""
    if value is None:
        return Line("unknown", name, "the system does not say")
    return Line("OK", name, text) if good else Line("WARN", name, text, advice)


def cpus(root: Root) -> Line:
    online = root.read(f"{CPU}/online")
    count = 0
    for part in (online or "").split(","):
        m = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if m:
            count += int(m.group(2) or m.group(1)) - int(m.group(1)) + 1
    return check("CPUs", count or None, count > 1, f"{count} online",
                 "everything else runs on the CPU that is measured; use a machine with two")


def governor(root: Root) -> Line:
    found = sorted(set(root.all(f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor")))
    return check("governor", " ".join(found) or None, found == ["performance"], ", ".join(found),
                 "cpupower frequency-set -g performance")


def turbo(root: Root) -> Line:
    off = root.number(f"{CPU}/intel_pstate/no_turbo")
    boost = root.number(f"{CPU}/cpufreq/boost")
    if off is not None:
        return check("turbo", off, off == 1, "off" if off == 1 else "on",
                     f"echo 1 >/{CPU}/intel_pstate/no_turbo")
    return check("turbo", boost, boost == 0, "off" if boost == 0 else "on",
                 f"echo 0 >/{CPU}/cpufreq/boost")


def smt(root: Root) -> Line:
    active = root.number(f"{CPU}/smt/active")
    return check("SMT", active, active == 0, "on" if active else "off",
                 f"two threads share a core: echo off >/{CPU}/smt/control")


def load(root: Root) -> Line:
    value = root.number("proc/loadavg")
    return check("load", value, (value or 0.0) <= MOST_LOAD, f"{value} in the last minute",
                 "stop other programs, or wait")


def huge_pages(root: Root) -> Line:
    m = re.search(r"\[(\w+)\]", root.read("sys/kernel/mm/transparent_hugepage/enabled") or "")
    value = m.group(1) if m else None
    return check("huge pages", value, value != "never", str(value),
                 "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled")


def aslr(root: Root) -> Line:
    value = root.number("proc/sys/kernel/randomize_va_space")
    return check("ASLR", value, value == 2, "on" if value else "off",
                 "processes do not average over layouts: sysctl kernel.randomize_va_space=2")


def pmu(root: Root) -> Line:
    value = root.number("proc/sys/kernel/perf_event_paranoid")
    there = bool(root.all("sys/bus/event_source/devices/cpu*/type")
                 or root.all("sys/bus/event_source/devices/armv8*/type"))
    if value is not None and not there:
        return Line("OK", "PMU", "no hardware counters; isobit-perf does without")
    return check("PMU", value, (value or 0.0) <= 2, f"perf_event_paranoid {value or 0:.0f}",
                 "sysctl kernel.perf_event_paranoid=2")


def power(root: Root) -> Line:
    base = "sys/class/power_supply"
    if not (root.folder / base).is_dir():
        return Line("unknown", "AC power", "the system does not say")
    supplies = [(root.read(f"{base}/{p.name}/type"), root.read(f"{base}/{p.name}/online"),
                 root.read(f"{base}/{p.name}/status")) for p in (root.folder / base).iterdir()]
    mains = [online for kind, online, _ in supplies if kind == "Mains"]
    if "1" in mains:
        return Line("OK", "AC power", "connected")
    if "0" in mains or any(status == "Discharging" for _, _, status in supplies):
        return Line("WARN", "AC power", "on battery", "connect the power supply")
    return Line("OK", "AC power", "no battery in use")


def _ticks(root: Root) -> tuple[int, int] | None:
    """Stolen and all ticks."""
    m = re.match(r"cpu +((?:\d+ ?)+)", root.read("proc/stat") or "")
    ticks = [int(n) for n in m.group(1).split()] if m else []
    return (ticks[7], sum(ticks[:8])) if len(ticks) >= 8 else None


def _throttled(root: Root) -> int | None:
    """How often the quota of this process's cgroup, version 2 or 1, was used up."""
    paths = [line.split(":", 2)[2].strip("/")
             for line in (root.read("proc/self/cgroup") or "").splitlines()
             if line.count(":") >= 2]
    for path in [*paths, ""]:
        for base in ("sys/fs/cgroup", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"):
            m = re.search(r"^nr_throttled (\d+)$", root.read(f"{base}/{path}/cpu.stat") or "",
                          re.MULTILINE)
            if m:
                return int(m.group(1))
    return None


def meanwhile(root: Root, canary: Callable[[], Canary]) -> list[Line]:
    """What others take away while the canary runs, and how much it noticed."""
    ticks, throttled = _ticks(root), _throttled(root)
    noise = canary()
    after, throttled_after = _ticks(root), _throttled(root)
    share = None
    if ticks is not None and after is not None:
        share = (after[0] - ticks[0]) / max(after[1] - ticks[1], 1)
    more = None
    if throttled is not None and throttled_after is not None:
        more = throttled_after - throttled
    lines = [check("steal", share, (share or 0.0) <= MOST_STEAL, f"{100 * (share or 0):.1f} %",
                   "the hypervisor gives the CPU to others: another time, or a dedicated machine"),
             check("throttling", more, more == 0, f"{more} times",
                   "the container's quota is used up: raise it (cpu.max), or use fewer threads")]
    for name, value in (("FMA loop", noise.fma), ("copy", noise.copy)):
        if noise.runs == 0:
            lines.append(Line("unknown", name, noise.why))
        else:
            lines.append(check(name, value, value <= MOST_NOISE,
                               f"varies by {100 * value:.1f} % in {noise.runs} runs",
                               "something disturbs this CPU or its memory: see the lines above"))
    return lines


def spread(times: list[float]) -> float:
    """The 90 % quantile over the minimum, less 1."""
    import numpy  # not needed without the program

    return float(numpy.quantile(times, 0.9)) / min(times) - 1


def run_canary(given: str | None) -> Canary:
    """The canary of isobit_ab, for two seconds."""
    try:
        program = library.find_program(given)
        folder = Path(program).resolve().parents[1]
        built = build.find_library(folder)
        names = library.list_names(program)
        name = next((n for n in names if n.startswith("gemm/16x16x16/")), names[0] if names else "")
        if built is None or not name:
            return Canary(why=f"no libisobit.so or no benchmarks in {folder}")
        found: list[list[float]] = []
        end = time.monotonic() + SECONDS
        while not found or time.monotonic() < end:
            done = subprocess.run(
                [program, "--a", str(built), "--b", str(built), "--bench", name, "--blocks", "1",
                 "--slot", "0.0001"], capture_output=True, text=True, check=True,
                timeout=60)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            found += [[float(t) for t in row["canary"]] for row in rows if "canary" in row]
            if not found:
                return Canary(why=f"{program} prints no canary")
        fma, copy = ([pair[i] for pair in found] for i in (0, 1))
        return Canary(spread(fma), spread(copy), len(found))
    except PerfError as error:
        return Canary(why=str(error))
    except (OSError, subprocess.SubprocessError, ImportError, ValueError, KeyError,
            TypeError, IndexError, ZeroDivisionError) as error:
        return Canary(why=f"the canary failed: {error}")


def examine(root: Root, canary: Callable[[], Canary]) -> list[Line]:
    """All checks."""
    return [f(root) for f in (cpus, governor, turbo, smt, load, huge_pages, aslr, pmu, power)
            ] + meanwhile(root, canary)


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "doctor", help="what disturbs measurements on this machine", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a line is WARN")
    parser.add_argument("--root", metavar="DIR", default="/", help=argparse.SUPPRESS)
    parser.add_argument("--program", metavar="FILE", help="isobit_ab (that of this tree's build)")


def main(args: argparse.Namespace) -> int:
    lines = examine(Root(Path(args.root)), lambda: run_canary(args.program))
    for line in lines:
        print(f"{line.status:8}{line.name:11} {line.text}")
        if line.advice:
            print(f"{'':19} {line.advice}")
    warnings = sum(line.status == "WARN" for line in lines)
    if warnings:
        print(f"isobit-perf: {warnings} of {len(lines)} checks warn", file=sys.stderr)
    return Exit.REGRESSION if args.strict and warnings else Exit.OK
