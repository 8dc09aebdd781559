# SPDX-License-Identifier: MIT
"""NAME.journal.jsonl: what was measured, as it came. A killed session goes on from it.

The first line is the session; then come the lines of each process, written together when the
process has ended, so that a process without its end line does not count.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from . import schema
from .errors import PerfError
from .files import BenchError, Machine, Side


@dataclass
class Session:
    """Line 1. arguments and cwd: the command line that began it, for --resume."""

    type: Literal["session"]
    v: Literal[1]
    kind: Literal["ab", "aa", "command"]
    a: Side
    b: Side
    machine: Machine
    suite: list[str]
    settings: dict[str, Any]
    seed: int
    started: str
    arguments: list[str] = field(default_factory=list)
    cwd: str = "."


@dataclass
class BenchLine:
    """One benchmark in one process.

    a, b: nanoseconds per call, two timings of each side per block (A B B A or B A A B).
    """

    type: Literal["bench"]
    bench: str
    a: list[float]
    b: list[float]
    cpu_a: float | None = None
    cpu_b: float | None = None
    calls: int = 0
    hash_a: str | None = None
    hash_b: str | None = None
    canary: list[float] | None = None
    work: dict[str, Any] | None = None
    process: int = 0


@dataclass
class ErrorLine:
    """A benchmark that the program could not run."""

    type: Literal["error"]
    bench: str
    which: str
    why: str


@dataclass
class FailedLine:
    """A process that crashed, hung or printed garbage, and the benchmarks that are why."""

    type: Literal["failed"]
    process: int
    why: str
    seconds: float
    errors: list[BenchError]


@dataclass
class Process:
    """A process that ended well."""

    number: int
    seconds: float
    benches: dict[str, BenchLine]
    errors: list[BenchError]


def parse_bench(text: str, name: str | Path, line: int = 1) -> BenchLine:
    """A bench line, its times checked."""
    found = schema.parse(BenchLine, text, name, line)
    if not found.a or len(found.a) != len(found.b) or len(found.a) % 2:
        raise PerfError(f"{name}:{line}: {found.bench}: {len(found.a)} and {len(found.b)} "
                        "timings are no blocks of two and two")
    if min(found.a + found.b) <= 0:
        raise PerfError(f"{name}:{line}: {found.bench}: a time that is not positive")
    return found


def line_type(text: str) -> str:
    """The "type" of a line, "" where it has none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


class Journal:
    """Appends to a journal; each process is one write."""

    def __init__(self, path: Path, text: str) -> None:
        """Begins the file anew with `text`, of which each line is complete."""
        self.path = path
        schema.write_text(path, text)

    def append(self, lines: list[str]) -> None:
        """Adds the lines of a process. After an error the file is as it was before."""
        data = "".join(line + "\n" for line in lines).encode()
        size = None
        try:
            with open(self.path, "ab", buffering=0) as file:
                size = file.tell()
                if file.write(data) != len(data):
                    raise OSError(28, os.strerror(28))
                os.fsync(file.fileno())
        except OSError as error:
            if size is not None:
                os.truncate(self.path, size)
            raise PerfError(f"{self.path}: cannot be written: {error.strerror}; it holds all "
                            f"processes before this one, --resume {self.path} goes on") from None


def make_process(lines: list[str], number: int, seconds: float, path: str | Path = "process",
                 first: int = 1) -> Process:
    """The process of these lines, which begin in line `first` of the file `path`."""
    benches: dict[str, BenchLine] = {}
    errors: list[BenchError] = []
    for at, text in enumerate(lines, first):
        kind = line_type(text)
        if kind == "bench":
            bench = parse_bench(text, path, at)
            benches[bench.bench] = bench
        elif kind == "error":
            error = schema.parse(ErrorLine, text, path, at)
            errors.append(BenchError(error.bench, error.which, error.why))
    return Process(number, seconds, benches, errors)


@dataclass
class _End:
    type: str
    process: int
    seconds: float


def read(path: str | Path) -> tuple[Session, list[Process | FailedLine], str]:
    """The session, its complete processes, and the text that these take.

    What follows the last complete process is left out, half a line included.
    """
    path = Path(path)
    rows = schema.read_text(path).split("\n")
    complete = rows[:-1]  # the last one has no end
    if not complete:
        raise PerfError(f"{path}:1: no session")
    session = schema.parse(Session, complete[0], path)
    found: list[Process | FailedLine] = []
    pending: list[str] = []
    kept = 1
    for at, text in enumerate(complete[1:], 2):
        kind = line_type(text)
        if kind == "end":
            end = schema.parse(_End, text, path, at)
            found.append(make_process(pending, end.process, end.seconds, path,
                                      at - len(pending)))
        elif kind == "failed":
            found.append(schema.parse(FailedLine, text, path, at))
        elif kind in ("process", "bench", "error"):
            pending.append(text)
            continue
        elif at < len(complete):
            raise PerfError(f"{path}:{at}: no line of a journal: {text[:40]!r}")
        pending, kept = [], at if kind else kept
    return session, found, "".join(row + "\n" for row in complete[:kept])
