# SPDX-License-Identifier: MIT
"""Bencher Metric Format: the measure latency, in nanoseconds, of each benchmark."""

import json

from ..files import Interval, Result
from ..series import History


def _metric(ns: float, ci: Interval | None) -> dict[str, dict[str, float]]:
    bounds = {"lower_value": ci[0], "upper_value": ci[1]} if ci else {}
    return {"latency": {"value": ns, **bounds}}


def of_result(result: Result) -> str:
    """The times of B; the bounds are those of the change, about A's time."""
    return _dump({b.bench: _metric(b.b_ns, (b.a_ns * (1 + b.ci[0]), b.a_ns * (1 + b.ci[1]))
                                   if b.ci else None) for b in result.benches})


def of_history(history: History) -> str:
    """The newest point of each series."""
    return _dump({s.bench: _metric(s.points[-1].ns, s.points[-1].ci) for s in history.series})


def _dump(metrics: dict[str, dict[str, dict[str, float]]]) -> str:
    return json.dumps(metrics, indent=1, allow_nan=False) + "\n"
