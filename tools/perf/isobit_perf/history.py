# SPDX-License-Identifier: MIT
"""isobit-perf record and history: measurements by commit, and the commits that changed them."""

import argparse
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import commits, gbench, historyfile, machine, schema, series, text
from .changepoints import Options
from .errors import PerfError
from .files import read_result
from .options import fraction, regex

DB = Path("perf/history")


def add_record_parser(subparsers: Any) -> None:
    """The arguments of `record`."""
    p = subparsers.add_parser("record", description="Adds a run (Google Benchmark JSON), or side "
                              "B of a comparison, to the history of its machine.")
    p.add_argument("file", type=Path, metavar="RUN.json|AB.json")
    p.add_argument("--db", type=Path, default=DB, metavar="DIR")
    p.add_argument("--commit", metavar="REV", help="where the file names none, or the wrong one")
    p.add_argument("--repository", type=Path, default=Path("."), metavar="DIR")
    p.add_argument("--again", action="store_true",
                   help="also where the history has this commit and benchmark")


def _is_result(path: Path) -> bool:
    """Whether it is a result of `ab`; what is no JSON at all is left to the reader of runs."""
    try:
        data = json.loads(schema.read_text(path))
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "benchmarks" not in data and "benches" in data


def _commit(args: argparse.Namespace, found: str | None) -> str:
    if args.commit:
        return commits.resolve(args.repository, args.commit)
    if not found:
        raise PerfError(f"{args.file}: names no commit; give --commit REV")
    return found


def main_record(args: argparse.Namespace) -> int:
    """Adds the lines; the exit status."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if _is_result(args.file):
        result = read_result(args.file)
        lines = historyfile.of_result(result, _commit(args, result.b.commit), now)
    else:
        run = gbench.read(args.file)
        lines = historyfile.of_run(run, _commit(args, run.text("isobit.commit")), now)
    if not lines:
        raise PerfError(f"{args.file}: no benchmark to record")
    path, count = historyfile.append(args.db, lines, args.again)
    there = len(lines) - count
    print(f"{path}: {text.plural(count, 'line')} added" + (
        f", {there} already there (--again adds them)" if there else ""))
    return 0


def add_selection(p: argparse.ArgumentParser) -> None:
    """What `history` and `report history` have in common."""
    p.add_argument("--db", type=Path, default=DB, metavar="DIR")
    p.add_argument("--fingerprint", metavar="FP", help="which machine (default: this one)")
    p.add_argument("--bench", metavar="RE", type=regex, help="only benchmarks that match")
    p.add_argument("--since", metavar="REV", help="only from this commit on")
    p.add_argument("--repository", type=Path, default=Path("."), metavar="DIR")
    p.add_argument("--max-p", type=fraction, default=Options.max_p, metavar="P",
                   help="of a change point (default: %(default)s)")
    p.add_argument("--min-change", type=fraction, default=Options.min_change, metavar="1%",
                   help="smaller steps are left out")


def selected(args: argparse.Namespace) -> series.History:
    """The history that the arguments name."""
    path = series.choose(args.db, args.fingerprint, machine.describe().fingerprint)
    return series.load(path, Options(args.max_p, args.min_change), args.repository, args.bench,
                       args.since)


def add_history_parser(subparsers: Any) -> None:
    """The arguments of `history`."""
    p = subparsers.add_parser("history", description="The history of one machine, and the "
                              "commits at which it changed (apache-otava).")
    add_selection(p)
    p.add_argument("--json", action="store_true", help="JSON instead of the table")


def table(history: series.History, width: int = 24) -> str:
    """A line for each benchmark, with what changed below it."""
    name = max((len(text.printable(s.bench)) for s in history.series), default=0)
    lines = []
    for s in history.series:
        lines.append(f"{text.printable(s.bench).ljust(name)}  {len(s.points):4d}  "
                     f"{text.duration(s.values[-1]):>10}  {text.sparkline(s.values, width)}")
        for c in s.changes:
            point = s.points[c.index]
            lines.append(f"    {point.commit[:12]} {text.percent(c.change)} (p "
                         f"{text.probability(c.p)}) {text.printable(point.subject)}".rstrip())
    return "\n".join(lines)


def _document(history: series.History) -> dict[str, Any]:
    return {"v": 1, "kind": "history", "fp": history.fingerprint, "notes": history.notes,
            "searched": history.searched,
            "benches": [{"bench": s.bench, "commits": [p.commit for p in s.points],
                         "med_ns": s.values,
                         "changes": [{"commit": s.points[c.index].commit, "change": c.change,
                                      "p": c.p} for c in s.changes]} for s in history.series]}


def main_history(args: argparse.Namespace) -> int:
    """Prints the history; the exit status."""
    history = selected(args)
    if args.json:
        print(json.dumps(_document(history), indent=1, allow_nan=False))
    elif history.series:
        print(f"{table(history)}\n\nmachine {history.fingerprint}: {history.headline()} (p below {args.max_p:g}, at least "
              f"{text.plain_percent(args.min_change)}, windows of {history.options.window})")
    else:
        print("no benchmark matches")
    for note in history.notes:
        print(f"isobit-perf: {note}", file=sys.stderr)
    return 0
