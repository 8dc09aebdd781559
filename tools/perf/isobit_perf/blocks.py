# SPDX-License-Identifier: MIT
"""From the blocks of all processes to one difference per process and benchmark.

A block takes less than a millisecond where calls are short, so that what disturbs the machine
(another guest, a change of the clock rate, a page that is moved) mostly meets A and B alike, or one
block only. The median over the blocks of a process does not see such a block; nothing is dropped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .journal import BenchLine, Process


def differences(line: BenchLine) -> npt.NDArray[np.float64]:
    """ln(tB / tA) of each block."""
    logs = np.log(np.array([line.b, line.a], dtype=np.float64)).reshape(2, -1, 2).mean(axis=2)
    found: npt.NDArray[np.float64] = logs[0] - logs[1]
    return found


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
    """What the blocks say: per benchmark, and per process {bench: d}."""

    series: dict[str, Series]
    rows: list[dict[str, float]]


def reduce(processes: Sequence[Process], left_out: Iterable[str] = ()) -> Data:
    """The differences of all processes, without the benchmarks that are `left_out`."""
    skip = set(left_out)
    data = Data({}, [])
    for process in processes:
        row: dict[str, float] = {}
        for name, line in process.benches.items():
            if name in skip:
                continue
            series = data.series.setdefault(name, Series())
            if line.hash_a is not None and line.hash_b is not None:
                series.hashes.add((line.hash_a, line.hash_b))
            row[name] = float(np.median(differences(line)))
            series.d.append(row[name])
            series.a_ns.append(float(np.median(line.a)))
            series.b_ns.append(float(np.median(line.b)))
        data.rows.append(row)
    return data
