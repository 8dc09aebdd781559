# SPDX-License-Identifier: MIT
"""From the blocks of all processes to one difference per process and benchmark.

A block is dropped when something outside moved beyond the usual: involuntary context switches,
steal, throttling of the cgroup, or the canary (a fixed loop that is timed before each benchmark).
The usual is what this session shows: the quartiles of all its blocks, with Tukey's outer fence.
None of these says whether A or B was slower, so dropping favours neither.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from . import stats
from .journal import BenchLine, Block, Process

CANARY_DRIFT = 1.03


def difference(block: Block) -> float:
    """ln(tB / tA) of a block."""
    return float(np.mean(np.log(block.b)) - np.mean(np.log(block.a)))


@dataclass
class Series:
    """A benchmark over the processes."""

    d: list[float] = field(default_factory=list)
    a_ns: list[float] = field(default_factory=list)
    b_ns: list[float] = field(default_factory=list)
    hashes: set[tuple[str, str]] = field(default_factory=set)

    def same_output(self) -> bool | None:
        """Whether A and B gave the same bits in every process; None where it is not known."""
        return all(a == b for a, b in self.hashes) if self.hashes else None


@dataclass
class Data:
    """What is left of the blocks: per benchmark, and per process {bench: d}."""

    series: dict[str, Series]
    rows: list[dict[str, float]]
    dropped: Counter[str]


@dataclass
class _Limits:
    nivcsw: float
    steal: float
    throttled: float


def _limits(lines: Sequence[BenchLine]) -> _Limits:
    return _Limits(stats.fence([block.nivcsw for line in lines for block in line.blocks]) + 1,
                   stats.fence([line.steal for line in lines]) + 1,
                   stats.fence([line.throttled for line in lines]))


def _canary_limits(lines: Iterable[BenchLine]) -> list[float]:
    by_loop = zip(*(line.canary for line in lines if line.canary))
    return [max(CANARY_DRIFT * float(np.median(times)), stats.fence(times)) for times in by_loop]


def _reason(line: BenchLine, block: Block, limits: _Limits, canary: Sequence[float]) -> str:
    if block.nivcsw > limits.nivcsw:
        return "context switches"
    if line.steal > limits.steal:
        return "steal"
    if line.throttled > limits.throttled:
        return "throttling"
    if any(time > most for time, most in zip(line.canary or (), canary)):
        return "canary"
    return ""


def reduce(processes: Sequence[Process], left_out: Iterable[str] = ()) -> Data:
    """The differences of all processes, without the benchmarks that are `left_out`."""
    lines: dict[str, list[BenchLine]] = {}
    skip = set(left_out)
    for process in processes:
        for name, line in process.benches.items():
            if name not in skip:
                lines.setdefault(name, []).append(line)
    limits = {name: _limits(found) for name, found in lines.items()}
    canary = _canary_limits(line for found in lines.values() for line in found)
    data = Data({name: Series() for name in lines}, [], Counter())
    for process in processes:
        row: dict[str, float] = {}
        for name, line in process.benches.items():
            if name in skip:
                continue
            series = data.series[name]
            if line.hash_a is not None and line.hash_b is not None:
                series.hashes.add((line.hash_a, line.hash_b))
            kept = []
            for block in line.blocks:
                reason = _reason(line, block, limits[name], canary)
                if reason:
                    data.dropped[reason] += 1
                else:
                    kept.append(block)
            if kept:
                row[name] = float(np.mean([difference(block) for block in kept]))
                series.d.append(row[name])
                series.a_ns.append(float(np.mean([block.a for block in kept])))
                series.b_ns.append(float(np.mean([block.b for block in kept])))
        data.rows.append(row)
    return data
