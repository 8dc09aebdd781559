# SPDX-License-Identifier: MIT
"""What git knows of commits: their order and their subjects."""

import subprocess
from pathlib import Path

from .errors import PerfError


def _git(repository: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True,
                              text=True, encoding="utf-8", errors="replace", check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def subjects(repository: Path) -> dict[str, str]:
    """Hash and subject of all that HEAD has, the oldest first; empty outside a repository."""
    log = _git(repository, "log", "--topo-order", "--reverse", "--format=%H%x09%s", "HEAD", "--")
    pairs = (line.partition("\t") for line in (log or "").split("\n") if line)
    return {name: subject for name, _, subject in pairs}


def resolve(repository: Path, revision: str) -> str:
    """The full hash of a revision."""
    found = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options",
                 revision + "^{commit}")
    if not found:
        raise PerfError(f"{revision!r} is no revision of the repository {repository}")
    return found.strip()
