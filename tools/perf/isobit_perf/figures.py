# SPDX-License-Identifier: MIT
"""The sub-command campaign: tables of what `aa` and `inject` have kept, as in docs/perf.md.

Each machine and each set of rules has tables of its own. Shares come with the exact (Clopper and
Pearson's) binomial interval.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from scipy import stats

from . import campaign, records, text
from .errors import Exit, PerfError
from .progress import duration
from .records import Record


def share(count: int, total: int) -> str:
    """The share with its interval of 95 %."""
    if not total:
        return "-"
    low, high = stats.binomtest(count, total).proportion_ci(0.95, method="exact")
    return f"{100 * count / total:.3g} % ({100 * low:.3g} to {100 * high:.3g} %)"


def _slow(record: Record) -> bool:
    return bool(record.alarms) or record.verdict == "REGRESSION"


def _times(found: Sequence[float]) -> list[str]:
    return [duration(median(found)), duration(max(found))] if found else ["-", "-"]


def _aa(runs: Sequence[Record]) -> list[list[str]]:
    rows = [["", "runs", "with a false REGRESSION", "share", "false verdicts", "inconclusive",
             "largest change called SAME", "median time", "longest time"]]
    for title, chosen in (("alone", [r for r in runs if not r.neighbour]),
                          ("beside the neighbour", [r for r in runs if r.neighbour]),
                          ("all", list(runs))):
        if not chosen:
            continue
        false = sum(map(_slow, chosen))
        verdicts = sum(len(r.alarms) + len(r.faster) for r in chosen)
        rows.append([title, str(len(chosen)), str(false), share(false, len(chosen)), str(verdicts),
                     f"{sum(r.counts.get('INCONCLUSIVE', 0) for r in chosen)} of "
                     f"{sum(r.benches for r in chosen)}",
                     text.plain_percent(max(r.largest_same for r in chosen)),
                     *_times([r.seconds for r in chosen])])
    return rows


def _power(runs: Sequence[Record]) -> list[list[str]]:
    rows = [["slowdown", "injected", "found", "share", "inconclusive", "median change",
             "median time", "longest time"]]
    for percent in sorted({s.percent for r in runs for s in r.injected}):
        all_ = [s for r in runs for s in r.injected if s.percent == percent]
        found = [s for s in all_ if s.verdict == "REGRESSION"]
        rows.append([f"{percent:g} %", str(len(all_)), str(len(found)),
                     share(len(found), len(all_)),
                     str(sum(s.verdict == "INCONCLUSIVE" for s in all_)),
                     text.percent(median(s.change for s in all_)),
                     *_times([s.seconds for s in found])])
    return rows


def _everywhere(runs: Sequence[Record]) -> list[list[str]]:
    rows = [["on all", "runs", "found", "share", "median change", "median time", "longest time"]]
    for percent in sorted({r.all for r in runs if r.all is not None}):
        chosen = [r for r in runs if r.all == percent]
        found = [r for r in chosen if r.verdict == "REGRESSION"]
        rows.append([f"{percent:g} %", str(len(chosen)), str(len(found)),
                     share(len(found), len(chosen)),
                     text.percent(median(r.geomean for r in chosen)),
                     *_times([r.seconds for r in found])])
    return rows


def _rules(runs: Sequence[Record]) -> list[list[str]]:
    """Ours and those of others, on the runs for which both are known."""
    runs = [r for r in runs if r.others and r.all is None]
    percents = sorted({s.percent for r in runs for s in r.injected})
    rows = [["rule", "runs", "with a false alarm", "share", "false alarms",
             *(f"{percent:g} % found" for percent in percents)]]
    injected = {percent: sum(s.percent == percent for r in runs for s in r.injected)
                for percent in percents}

    def add(rule: str, alarms: Sequence[int], found: Sequence[int]) -> None:
        false = sum(count > 0 for count in alarms)
        rows.append([rule, str(len(alarms)), str(false), share(false, len(alarms)),
                     str(sum(alarms)), *(f"{k} of {injected[percent]}"
                                         for k, percent in zip(found, percents, strict=True))])

    if runs:
        add("isobit-perf", [len(r.alarms) for r in runs],
            [sum(s.percent == percent and s.verdict == "REGRESSION"
                 for r in runs for s in r.injected) for percent in percents])
    for rule in sorted({name for r in runs for name in r.others or {}}):
        said = [r.others[rule] for r in runs if r.others and rule in r.others]
        add(rule, [other.alarms for other in said],
            [sum(other.found.get(f"{percent:g}", 0) for other in said) for percent in percents])
    return rows


def tables(found: Sequence[Record]) -> str:
    """The tables of one group."""
    first, counted = found[0], [record for record in found if record.enough()]
    rules = first.rules
    days = sorted(record.t[:10] for record in found)
    parts = [
        f"## {first.cpu}, {text.plural(first.threads, 'thread')}, {first.compiler} "
        f"({first.fp})",
        f"{text.plural(len(found), 'run')} of the suite {rules.suite}, {days[0]} to "
        f"{days[-1]}; delta {text.plain_percent(rules.delta)}, budget "
        f"{duration(rules.budget) if rules.budget else 'none'}, looks after "
        f"{', '.join(map(str, rules.looks))} processes; "
        f"{text.plural(len({r.sha256 for r in found}), 'build')} of the library; load "
        f"{min(r.load for r in found):g} to {max(r.load for r in found):g}.",
    ]
    if len(counted) < len(found):
        parts.append(f"{len(found) - len(counted)} of them ended before {rules.looks[0]} "
                     "processes: they could raise no alarm, and do not count below.")
    aa = [record for record in counted if record.kind == "aa"]
    power = [record for record in counted if record.injected]
    for title, rows in (("A against a copy of itself", _aa(aa)),
                        ("Slowdowns of some benchmarks", _power(power)),
                        ("A slowdown of all benchmarks", _everywhere(counted)),
                        ("Other rules, on those of these runs that had one before them",
                         _rules(counted))):
        if len(rows) > 1:
            parts += [f"### {title}", campaign.table(rows)]
            if rows[0][0] == "slowdown":
                blamed = sum(len(record.alarms) for record in power)
                parts.append(f"Others blamed: {blamed} of "
                             f"{sum(r.benches - len(r.injected) for r in power)}.")
    return "\n\n".join(parts)


def keeps_promises(found: Sequence[Record]) -> bool:
    """At most one false run in 100, and 95 of 100 found of what is above the margin."""
    found = [record for record in found if record.enough()]
    aa = [record for record in found if record.kind == "aa"]
    if sum(map(_slow, aa)) > campaign.FALSE_RUNS * len(aa):
        return False
    above: dict[tuple[bool, float], list[bool]] = {}
    for record in found:
        if record.all is not None and record.all > 100 * record.rules.geomean_delta:
            above.setdefault((True, record.all), []).append(record.verdict == "REGRESSION")
        for s in record.injected:
            if s.percent > 100 * record.rules.delta:
                above.setdefault((False, s.percent), []).append(s.verdict == "REGRESSION")
    return all(sum(said) >= campaign.WANTED_POWER * len(said) for said in above.values())


def show(path: Path, fingerprint: str | None = None) -> int:
    """Prints the tables of a file; the exit status."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records.read(path):
        if fingerprint in (None, record.fp):
            groups.setdefault(records.group(record), []).append(record)
    if not groups:
        raise PerfError(f"{path}: no run" + (f" of {fingerprint}" if fingerprint else ""))
    campaign.show("\n\n".join(map(tables, groups.values())))
    return Exit.OK if all(map(keeps_promises, groups.values())) else Exit.REGRESSION


def add_parser(subparsers: Any) -> None:
    """`campaign`."""
    parser = subparsers.add_parser(
        "campaign", description="Tables of the runs that aa and inject have kept (--keep), for "
        "each machine and each set of rules. Ends with 1 if more than one run in 100 had a false "
        "alarm, or fewer than 95 in 100 slowdowns above the margin were found.")
    parser.add_argument("file", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--fingerprint", metavar="FP", help="only this machine")


def main(args: argparse.Namespace) -> int:
    """`campaign`."""
    return show(args.file, args.fingerprint)
