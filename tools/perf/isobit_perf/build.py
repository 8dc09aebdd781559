# SPDX-License-Identifier: MIT
"""A side as the user says it, into a library: a build folder, a libisobit.so, a git revision.

A revision is checked out into a worktree of its own, built, and kept by its tree; the checkout
of the user is never touched.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import child, machine
from .errors import Exit, PerfError
from .files import Side

LIBRARY = "libisobit.so"
TARGET = "isobit_shared"
OPTIONS = ("-DCMAKE_BUILD_TYPE=Release", "-DISOBIT_TESTS=OFF", "-DISOBIT_BENCH=OFF",
           "-DISOBIT_TOOLS=OFF", "-DISOBIT_MODEL=OFF", "-DISOBIT_BLAS=OFF")


class Unbuildable(PerfError):
    """A revision that does not build."""

    def __init__(self, text: str) -> None:
        super().__init__(text, Exit.UNBUILDABLE)


@dataclass(frozen=True)
class Library:
    """A side that is ready to be measured."""

    side: Side
    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    def digest(self) -> str:
        """Of the library's bytes: a resumed session must find the same ones."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]


def git(repository: Path, *arguments: str) -> str:
    """The output of git, or a clear error."""
    try:
        done = subprocess.run(["git", "-C", str(repository), *arguments], text=True,
                              capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise PerfError(f"git: {error.strerror}", Exit.SKIP) from None
    if done.returncode:
        last = done.stderr.strip().splitlines()
        raise PerfError(f"git {arguments[0]}: {last[-1] if last else 'failed'}")
    return done.stdout.strip()


def find_library(folder: Path) -> Path | None:
    """libisobit.so in a build folder."""
    for place in (folder, folder / "lib", folder / "build" / "lib"):
        if (place / LIBRARY).is_file():
            return place / LIBRARY
    return None


def default_cache() -> Path:
    """Where the libraries of revisions are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "isobit-perf"


def _first_errors(log: str, count: int = 3) -> str:
    lines = log.splitlines()
    wrong = [line.strip() for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
    return "\n  ".join(wrong[:count] or lines[-count:])


def _step(commit: str, argv: Sequence[str]) -> None:
    lines: list[str] = []
    try:
        status, errors = child.run(argv, lines.append)
    except child.ChildFailed as error:
        raise PerfError(str(error), Exit.SKIP) from None
    if status:
        log = "\n".join([errors, *lines])
        raise Unbuildable(f"{commit[:12]} does not build:\n  {_first_errors(log)}")


@contextmanager
def worktree(repository: Path, commit: str) -> Iterator[Path]:
    """A checkout of `commit` for a while."""
    with tempfile.TemporaryDirectory(prefix="isobit-perf-") as folder:
        tree = Path(folder) / "source"
        git(repository, "worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            yield tree
        finally:
            git(repository, "worktree", "remove", "--force", str(tree))


def _kept(repository: Path, commit: str, cache: Path) -> Path:
    """By the tree: a commit with another message alone has the same library."""
    tree = git(repository, "rev-parse", f"{commit}^{{tree}}")
    key = hashlib.sha256("\n".join((os.environ.get("CC", "cc"), *OPTIONS)).encode()).hexdigest()
    return cache / f"{tree}-{key[:8]}" / LIBRARY


def build_source(source: Path, commit: str, cache: Path) -> Path:
    """The library of the revision that is checked out in `source`, built unless it is kept."""
    kept = _kept(source, commit, cache)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with open(kept.parent / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another session may be building it
        if kept.exists():
            return kept
        with tempfile.TemporaryDirectory(prefix="isobit-perf-") as build:
            _step(commit, ["cmake", "-S", str(source), "-B", build, *OPTIONS])
            _step(commit, ["cmake", "--build", build, "--target", TARGET, "-j",
                           str(len(os.sched_getaffinity(0)))])
            library = find_library(Path(build))
            if library is None:
                raise Unbuildable(f"{commit[:12]}: the build made no {LIBRARY}")
            shutil.copyfile(library, kept.with_suffix(".new"))
            os.replace(kept.with_suffix(".new"), kept)
    return kept


def _revision(text: str, repository: Path, cache: Path) -> Library:
    try:
        commit = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options",
                     f"{text}^{{commit}}")
        version = git(repository, "describe", "--always", "--tags", commit)
    except PerfError as error:
        if error.status == Exit.SKIP:
            raise
        raise PerfError(f"{text}: no build folder, no library, no environment (env:VAR=value) "
                        f"and no revision in {repository}") from None
    path = _kept(repository, commit, cache)
    if not path.exists():
        with worktree(repository, commit) as tree:
            path = build_source(tree, commit, cache)
    return Library(Side(text, commit, str(path), version), path)


def _plain(text: str, library: Path) -> Library:
    return Library(Side(text, None, str(library), machine.library_version(library)), library)


def resolve(text: str, repository: Path, cache: Path) -> Library:
    """The library that `text` names."""
    path = Path(text)
    if path.is_dir():
        library = find_library(path)
        if library is None:
            raise PerfError(f"{text}: no {LIBRARY} in this folder")
        return _plain(text, library.resolve())
    if path.is_file():
        return _plain(text, path.resolve())
    return _revision(text, repository, cache)


def resolve_pair(a: str, b: str, repository: Path, cache: Path) -> tuple[Library, Library]:
    """Both sides. "env:VAR=value" is the library of the other side, in this environment."""
    found: dict[str, Library] = {}
    sides = {"a": a, "b": b}
    for side, text in sides.items():
        if not text.startswith("env:"):
            found[side] = resolve(text, repository, cache)
    if not found:
        raise PerfError("one of the sides must be a build, the other one can be env:VAR=value")
    for side, text in sides.items():
        if text.startswith("env:"):
            name, equals, value = text.removeprefix("env:").partition("=")
            if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise PerfError(f"{text}: must be env:VAR=value")
            other = next(iter(found.values()))
            found[side] = Library(Side(text, other.side.commit, other.side.path,
                                       other.side.version), other.path, {name: value})
    return found["a"], found["b"]
