# SPDX-License-Identifier: MIT
"""isobit-perf compare: two archived files of Google Benchmark, of any project, after the fact."""

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import gbench, text
from .errors import Exit, PerfError
from .options import fraction
from .stats import benjamini_hochberg
from .unpaired import FEWEST, Shift, least_p, shift

UNPAIRED = """These runs are not paired: B ran at another time than A, so a change of the clock
rate, the heat or the neighbours in between looks like a change of the code, and repetitions of one
process share one memory layout. `isobit-perf ab --command A B` measures in pairs."""


@dataclass(frozen=True)
class Row:
    """A benchmark that both files have."""
    bench: str
    shift: Shift
    q: float
    verdict: str


@dataclass(frozen=True)
class Comparison:
    rows: list[Row]
    warnings: list[str]

    @property
    def geomean(self) -> float:
        return math.expm1(sum(math.log1p(r.shift.change) for r in self.rows) / len(self.rows))

    def count(self, verdict: str) -> int:
        return sum(r.verdict == verdict for r in self.rows)


def judge(found: Shift, q: float, delta: float, fdr: float) -> str:
    """The rules of `ab`. An interval of less than the confidence asked proves nothing."""
    low, high = found.ci
    if not found.attained:
        return "INCONCLUSIVE"
    if low > delta and q < fdr:
        return "REGRESSION"
    if high < -delta and q < fdr:
        return "FASTER"
    return "SAME" if -delta <= low and high <= delta else "INCONCLUSIVE"


def compare(a: gbench.Run, b: gbench.Run, delta: float, fdr: float,
            confidence: float) -> Comparison:
    """All benchmarks of both files. Files of two fingerprints are refused."""
    prints = a.text("isobit.fingerprint"), b.text("isobit.fingerprint")
    if None not in prints and prints[0] != prints[1]:
        raise PerfError(f"{a.path} and {b.path} come from two machines or compilers "
                        f"({prints[0]}, {prints[1]})", Exit.FINGERPRINT)
    names = [name for name in a.times if name in b.times]
    if not names:
        raise PerfError(f"{a.path} and {b.path} have no benchmark in common")
    shifts = [shift(a.times[name], b.times[name], confidence) for name in names]
    rows = [Row(name, s, q, judge(s, q, delta, fdr)) for name, s, q in
            zip(names, shifts, benjamini_hochberg([s.p for s in shifts]), strict=True)]
    rows.sort(key=lambda row: (-row.shift.change, row.bench))
    return Comparison(rows, _warnings(a, b, shifts))


def _warnings(a: gbench.Run, b: gbench.Run, shifts: list[Shift]) -> list[str]:
    found = []
    for key in ("host_name", "num_cpus", "library_build_type", "cpu_scaling_enabled"):
        if a.context.get(key) != b.context.get(key):
            found.append(f"{key} differs: {a.context.get(key)!r} and {b.context.get(key)!r}")
    for run, other in ((a, b), (b, a)):
        for name, why in run.errors.items():
            found.append(f"{text.printable(name)} failed in {run.path}: {text.printable(why)}")
        for name in run.times:
            if name not in other.times and name not in other.errors:
                found.append(f"{text.printable(name)} is in {run.path} only")
    few = [s for s in shifts if min(s.n_a, s.n_b) < FEWEST]
    if few:
        least = min(few, key=lambda s: (s.n_a + s.n_b, s.n_a))
        found.append(
            f"{text.plural(len(few), 'benchmark')} with fewer than {FEWEST} repetitions: with "
            f"{least.n_a} and {least.n_b} the least possible p is {_p(least.least_p)} "
            f"({FEWEST} and {FEWEST}: {_p(least_p(FEWEST, FEWEST))})")
    loose = sum(not s.attained for s in shifts)
    if loose:
        found.append(f"{text.plural(loose, 'interval')} marked ~ are the whole range: too few "
                     "repetitions for the confidence asked")
    return found


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def table(comparison: Comparison) -> str:
    """The rows as aligned columns."""
    head = ("benchmark", "n", "A", "B", "change", "interval", "p", "q", "verdict")
    lines = [head]
    for row in comparison.rows:
        s = row.shift
        lines.append((text.printable(row.bench), f"{s.n_a}/{s.n_b}", text.duration(s.a_ns),
                      text.duration(s.b_ns), text.percent(s.change),
                      ("" if s.attained else "~ ") + text.interval(s.ci), text.probability(s.p),
                      text.probability(row.q), row.verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    last = len(head) - 1
    return "\n".join(
        "  ".join(cell.ljust(w) if i in (0, last) else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths, strict=True))).rstrip()
        for line in lines)


def _document(comparison: Comparison, settings: dict[str, float]) -> dict[str, Any]:
    return {"v": 1, "kind": "compare", "paired": False, "settings": settings,
            "geomean": {"change": comparison.geomean}, "warnings": comparison.warnings,
            "benches": [{"bench": r.bench, **asdict(r.shift), "q": r.q, "verdict": r.verdict}
                        for r in comparison.rows]}


def add_parser(subparsers: Any) -> None:
    """The arguments of `compare`."""
    p = subparsers.add_parser("compare", description="Compares two files of Google Benchmark by "
                              "the U test, the Hodges-Lehmann shift and Benjamini-Hochberg.")
    p.add_argument("a", type=Path, metavar="A.json")
    p.add_argument("b", type=Path, metavar="B.json")
    p.add_argument("--delta", type=fraction, default=0.02, metavar="2%",
                   help="changes below do not matter")
    p.add_argument("--fdr", type=fraction, default=0.05, metavar="5%",
                   help="rate of false discoveries")
    p.add_argument("--confidence", type=fraction, default=0.95, metavar="95%")
    p.add_argument("--time", choices=("real", "cpu"), default="real", help="which time")
    p.add_argument("--strict", action="store_true", help="exit 3 where a result is inconclusive")
    p.add_argument("--json", action="store_true", help="JSON instead of the table")


def main(args: argparse.Namespace) -> int:
    """Prints the comparison; the exit status."""
    found = compare(gbench.read(args.a, args.time), gbench.read(args.b, args.time),
                    args.delta, args.fdr, args.confidence)
    if args.json:
        settings = {key: getattr(args, key) for key in ("delta", "fdr", "confidence")}
        print(json.dumps(_document(found, settings), indent=1, allow_nan=False))
    else:
        print(table(found))
        counts = ", ".join(f"{found.count(v)} {v}" for v in text.VERDICTS)
        print(f"\n{text.plural(len(found.rows), 'benchmark')}: {counts}. Geometric mean "
              f"{text.percent(found.geomean)}. Margin {text.plain_percent(args.delta)}, false "
              f"discoveries {text.plain_percent(args.fdr)}, intervals "
              f"{text.plain_percent(args.confidence)}.\n\n{UNPAIRED}")
    for warning in found.warnings:
        print(f"isobit-perf: warning: {warning}", file=sys.stderr)
    if found.count("REGRESSION"):
        return Exit.REGRESSION
    return Exit.INCONCLUSIVE if args.strict and found.count("INCONCLUSIVE") else Exit.OK
