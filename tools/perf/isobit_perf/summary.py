# SPDX-License-Identifier: MIT
"""A result on the terminal."""

import sys
from collections import Counter
from pathlib import Path

from . import schema
from .files import Interval, Result
from .progress import duration


def percent(change: float) -> str:
    """+1.23 %."""
    return f"{100 * change:+.2f} %"


def interval(ci: Interval | None) -> str:
    """[-0.10 %, +0.20 %]."""
    return f"[{percent(ci[0])}, {percent(ci[1])}]" if ci else "[too few processes]"


def text(result: Result, output: Path) -> str:
    """All that is not SAME, and the rest in numbers."""
    if not result.processes:  # nothing to measure
        return f"{result.verdict}: both are the same library, bit by bit; {output}"
    verdicts = Counter(bench.verdict for bench in result.benches)
    lines = [f"{'bench':<44} {'A ns':>12} {'B ns':>12} {'change':>10}  interval, q"]
    shown = [bench for bench in result.benches if bench.verdict != "SAME"]
    for bench in sorted(shown, key=lambda bench: -bench.change):
        lines.append(f"{bench.bench:<44} {bench.a_ns:>12.1f} {bench.b_ns:>12.1f} "
                     f"{percent(bench.change):>10}  {interval(bench.ci)}, q={bench.q:.2g}, "
                     f"{bench.verdict}")
    if not shown:
        lines = []
    for bench in result.benches:
        if bench.same_output is False:
            lines.append(f"{bench.bench}: the outputs of A and B differ")
    for pattern, why in result.settings.get("accepted", {}).items():
        lines.append(f"{pattern}: accepted: {why}")
    for error in result.errors:
        side = f" ({error.which.upper()})" if error.which else ""
        lines.append(f"{error.bench}{side}: left out: {error.why}")
    mean = result.geomean
    lines.append(f"geometric mean {percent(mean.change)} {interval(mean.ci)} {mean.verdict}; "
                 + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    lines.append(f"{result.verdict}: {result.processes} processes, {duration(result.seconds)}, "
                 f"seed {result.seed}; {output}"
                 + ("" if result.complete else "; ended early"))
    return "\n".join(lines)


def show(result: Result, output: Path, as_json: bool = False) -> None:
    """Prints it."""
    if as_json:
        sys.stdout.write(schema.dump(result) + "\n")
    else:
        print(text(result, output))
