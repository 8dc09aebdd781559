# SPDX-License-Identifier: MIT
"""Regressions that a commit says are wanted: the trailer `Perf-accepted: BENCHMARK reason`.

BENCHMARK is a name, or a pattern of the shell (gemm/*), or "geomean" for the geometric mean. The
verdict stays, it only fails nothing.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from .build import git

GEOMEAN = "geomean"


def trailers(repository: Path, a: str | None, b: str | None) -> dict[str, str]:
    """{pattern: reason} of the commits that B has and A has not."""
    if not a or not b:
        return {}
    text = git(repository, "log", "--format=%(trailers:key=Perf-accepted,valueonly,unfold)",
               f"{a}..{b}")
    found: dict[str, str] = {}
    for line in text.splitlines():
        pattern, _, reason = line.strip().partition(" ")
        if pattern and reason.strip():  # without a reason it does not count
            found[pattern] = reason.strip()
    return found


def reason(accepted: Mapping[str, str], bench: str) -> str | None:
    """Why a regression of this benchmark is wanted, or None."""
    return next((why for pattern, why in accepted.items()
                 if fnmatchcase(bench, pattern) and (bench != GEOMEAN or pattern == bench)), None)
