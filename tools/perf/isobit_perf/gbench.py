# SPDX-License-Identifier: MIT
"""Google Benchmark's JSON of any project: the times of each repetition, in nanoseconds."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import schema
from .errors import PerfError

_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_LONGEST = 1e18  # nanoseconds, 31 years; also bars infinity and integers that no double holds
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_min", "_max", "_BigO", "_RMS")


@dataclass
class Run:
    path: str
    context: dict[str, Any]
    times: dict[str, list[float]] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def text(self, key: str) -> str | None:
        """A string of the context, None where it is absent or empty."""
        value = self.context.get(key)
        return value if isinstance(value, str) and value else None

    def fingerprint(self) -> str:
        """Ours where the file has it; else one over what Google Benchmark says of the machine.

        The clock rate is left out: a virtual machine reports another one after each start.
        """
        own = self.text("isobit.fingerprint")
        if own:
            return own
        keys = ("host_name", "num_cpus", "caches", "library_build_type")
        parts = json.dumps([self.context.get(k) for k in keys], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()[:16]


def read(path: str | Path, clock: str = "real") -> Run:
    """Reads one file; clock is "real" or "cpu".

    Google Benchmark writes NaN for an aggregate that does not exist, so NaN is an error only
    where a time of a repetition is one.
    """
    try:
        data = json.loads(schema.read_text(path))
    except (ValueError, RecursionError) as error:
        raise PerfError(f"{path}: not JSON (cut off?): {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("benchmarks"), list):
        raise PerfError(f'{path}: no list "benchmarks": not a file of Google Benchmark')
    context = data.get("context", {})
    if not isinstance(context, dict):
        raise PerfError(f'{path}: key "context" must be an object')
    run = Run(str(path), context)
    for index, entry in enumerate(data["benchmarks"]):
        _add(run, entry, f"{path}: benchmarks[{index}]", f"{clock}_time")
    if data["benchmarks"] and not run.times and not run.errors:
        raise PerfError(f"{path}: aggregates only; run the benchmarks again without "
                        "--benchmark_report_aggregates_only")
    return run


def _add(run: Run, entry: Any, where: str, key: str) -> None:
    if not isinstance(entry, dict):
        raise PerfError(f"{where}: not an object")
    name = entry.get("run_name", entry.get("name"))
    if not isinstance(name, str) or not name:
        raise PerfError(f'{where}: no "name"')
    kind = entry.get("run_type")
    if kind == "aggregate" or kind is None and name.endswith(_AGGREGATES):
        return
    if entry.get("error_occurred") or entry.get("skipped"):
        why = entry.get("error_message") or entry.get("skip_message") or "no reason given"
        run.errors[name] = str(why)
        return
    unit = entry.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in _UNITS:
        raise PerfError(f'{where}: "time_unit" is {unit!r}, not one of {", ".join(_UNITS)}')
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PerfError(f'{where}: "{key}" is not a number')
    if not 0 < value <= _LONGEST / _UNITS[unit]:
        raise PerfError(f'{where}: "{key}" is {str(value)[:20]}, not a time above 0')
    run.times.setdefault(name, []).append(value * _UNITS[unit])
    run.entries.setdefault(name, entry)
