# SPDX-License-Identifier: MIT
"""CSV: a row for each benchmark; of a history a row for each commit, as Apache Otava reads it."""

import csv
import io
from typing import Any

from ..files import Result
from ..series import History

_COLUMNS = ("bench", "verdict", "n", "a_ns", "b_ns", "change", "ci_low", "ci_high", "p", "q",
            "margin", "noise", "same_output")


def _write(rows: list[list[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def of_result(result: Result) -> str:
    """All benchmarks, in the order of the result. What is not known is empty."""
    rows: list[list[Any]] = [list(_COLUMNS)]
    for b in result.benches:
        low, high = b.ci or ("", "")
        same = "" if b.same_output is None else str(b.same_output).lower()
        rows.append([b.bench, b.verdict, b.n, b.a_ns, b.b_ns, b.change, low, high, b.p, b.q,
                     b.margin, "" if b.noise is None else b.noise, same])
    return _write(rows)


def of_history(history: History) -> str:
    """time, commit, and a column of nanoseconds for each benchmark."""
    rows: list[list[Any]] = [["time", "commit", *(s.bench for s in history.series)]]
    cells = [{p.commit: p for p in s.points} for s in history.series]
    for point in history.commits:
        rows.append([point.t, point.commit,
                     *(c[point.commit].ns if point.commit in c else "" for c in cells)])
    return _write(rows)
