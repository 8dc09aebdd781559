# SPDX-License-Identifier: MIT
"""JSON for github-action-benchmark, tool customSmallerIsBetter."""

import json
from typing import Any

from .. import text
from ..files import Result
from ..series import History


def _dump(entries: list[dict[str, Any]]) -> str:
    return json.dumps(entries, indent=1, allow_nan=False) + "\n"


def of_result(result: Result) -> str:
    """The times of B."""
    return _dump([{"name": b.bench, "unit": "ns", "value": b.b_ns,
                   "range": text.bounds(b),
                   "extra": f"{text.percent(b.change)} against A ({text.duration(b.a_ns)}): "
                            f"{b.verdict}, q {text.probability(b.q)}, n {b.n}"}
                  for b in result.benches])


def of_history(history: History) -> str:
    """The newest point of each series."""
    entries = []
    for s in history.series:
        last = s.points[-1]
        entry = {"name": s.bench, "unit": "ns", "value": last.ns, "extra": f"commit {last.commit}"}
        if last.ci:
            entry["range"] = f"{last.ci[0]:.6g} … {last.ci[1]:.6g}"
        entries.append(entry)
    return _dump(entries)
