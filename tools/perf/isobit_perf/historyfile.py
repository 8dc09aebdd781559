# SPDX-License-Identifier: MIT
"""perf/history/<fingerprint>.jsonl: one line for each commit and benchmark."""

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from . import gbench, schema
from .errors import Exit, PerfError
from .files import Interval, Result

_ISA = re.compile(r"(?:^|/)(?:isa:)?(scalar|sse\w*|avx\w*|fma\w*|neon\w*|sve\w*)(?=/|$)")


@dataclass
class Line:
    """One measurement. ci is the interval of the median; null where n is too small for one."""
    v: Literal[1]
    t: str
    commit: str
    bench: str
    fp: str
    n: int
    med_ns: float
    isa: str | None = None
    ci: Interval | None = None
    min_ns: float | None = None
    gflops: float | None = None
    peak_pct: float | None = None
    canary_ns: float | None = None
    ir: float | None = None
    hash: str | None = None


def file_of(db: Path, fingerprint: str) -> Path:
    """The file of a machine. The name comes from a file of others, so it is checked."""
    if not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", fingerprint):
        raise PerfError(f"{fingerprint!r} is no fingerprint")
    return db / f"{fingerprint}.jsonl"


def read(path: Path) -> list[Line]:
    """All lines. A line of another machine makes the file useless: Exit.FINGERPRINT."""
    found: list[Line] = []
    for number, text in enumerate(schema.read_text(path).split("\n"), 1):
        if not text.strip():
            continue
        line = schema.parse(Line, text, path, number)
        where = f"{path}:{number}: key"
        if not 0 < line.med_ns:
            raise PerfError(f'{where} "med_ns" must be above 0')
        if not utc(line.t):
            raise PerfError(f'{where} "t" is not a time such as 2026-05-01T10:00:00Z')
        if not line.commit or not line.bench:
            raise PerfError(f'{where} "commit" or "bench" is empty')
        if line.fp != path.stem:
            raise PerfError(f'{where} "fp" is {line.fp}, the file holds {path.stem}: times of two '
                            "machines are not compared", Exit.FINGERPRINT)
        found.append(line)
    return found


def utc(text: str) -> str:
    """An ISO time in UTC, with Z; empty where it is none. A time without a zone is UTC."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return ""
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    try:
        return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return ""


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else None


def _extras(entry: dict[str, Any], ns: float) -> dict[str, Any]:
    """What `run` adds to an entry; of other programs' files it is absent."""
    work, canary, digest = (entry.get(f"isobit.{key}") for key in ("work", "canary", "hash"))
    flops = _number(work.get("flops")) if isinstance(work, dict) else None
    return {"gflops": flops / ns if flops else None,
            "canary_ns": _number(canary[0]) if isinstance(canary, list) and canary else None,
            "hash": digest if isinstance(digest, str) else None}


def _isa(name: str) -> str | None:
    match = _ISA.search(name)
    return match[1] if match else None


def _median_interval(times: list[float]) -> Interval | None:
    """The order statistics about the median that hold it with 95 %, by the sign test."""
    cut = int(stats.binom.ppf(0.025, len(times), 0.5))  # so many at each end lie outside
    return (sorted(times)[cut - 1], sorted(times)[-cut]) if cut else None


def of_run(run: gbench.Run, commit: str, now: str) -> list[Line]:
    """The lines of a run."""
    when = utc(run.text("date") or "") or now
    lines = []
    for name, times in run.times.items():
        ns = float(np.median(times))
        lines.append(Line(1, when, commit, name, run.fingerprint(), len(times), ns, _isa(name),
                          _median_interval(times), min(times), **_extras(run.entries[name], ns)))
    return lines


def of_result(result: Result, commit: str, now: str) -> list[Line]:
    """The lines of B, the newer side of a comparison. Its interval is one of the ratio: none."""
    when = utc(result.started) or now
    return [Line(1, when, commit, b.bench, result.machine.fingerprint, b.n, b.b_ns, _isa(b.bench))
            for b in result.benches]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two that record at once take turns; a lock on the folder leaves no file behind."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def append(db: Path, lines: list[Line], again: bool) -> tuple[Path, int]:
    """Adds what is new (all, with again) in one step; the file and how many lines it grew by."""
    path = file_of(db, lines[0].fp)
    db.mkdir(parents=True, exist_ok=True)
    with _locked(db):
        present = {(line.commit, line.bench) for line in read(path)} if path.exists() else set()
        new = [x for x in lines if again or (x.commit, x.bench) not in present]
        if new:
            old = schema.read_text(path) if path.exists() else ""
            if old and not old.endswith("\n"):
                old += "\n"
            schema.write_text(path, old + "".join(_dump(line) + "\n" for line in new))
    return path, len(new)


def _dump(line: Line) -> str:
    return json.dumps({k: v for k, v in asdict(line).items() if v is not None}, allow_nan=False)
