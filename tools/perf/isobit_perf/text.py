# SPDX-License-Identifier: MIT
"""Numbers and names as a reader sees them, and the escapes of each output."""

import math
import re
from collections.abc import Sequence
from statistics import median

from .files import Bench, Result

VERDICTS = ("REGRESSION", "FASTER", "INCONCLUSIVE", "SAME")
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BARS = "▁▂▃▄▅▆▇█"


def percent(change: float, digits: int = 2) -> str:
    """0.0123 -> +1.23 %; a zero has no sign, whatever the rounding left of it."""
    value = round(change * 100, digits)
    return f"{value:+.{digits}f} %" if value else f"{0:.{digits}f} %"


def plain_percent(share: float) -> str:
    """0.02 -> 2 %, for settings."""
    return f"{share * 100:.6g} %"


def interval(bounds: Sequence[float], digits: int = 2) -> str:
    return f"{percent(bounds[0], digits)} … {percent(bounds[1], digits)}"


def unit_of(ns: float) -> tuple[float, str]:
    """The divisor and the name of the unit in which a time reads best."""
    return next((unit for unit in _UNITS if ns >= unit[0]), _UNITS[-1])


def duration(ns: float) -> str:
    """812.4 -> 812.4 ns; four significant digits."""
    divisor, name = unit_of(ns)
    value = ns / divisor
    digits = max(0, 3 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{min(digits, 3)}f} {name}"


def probability(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else f"{p:.0e}"


def printable(text: str) -> str:
    """One line without control characters: all that has no glyph becomes its \\x or \\u escape.

    Lone surrogates and the marks that turn the direction of writing are among them.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shorten(text: str, length: int) -> str:
    """Cuts the middle out: the head names the kernel, the tail the set and the threads."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[:length - 1 - tail]}…{text[len(text) - tail:]}"


def markdown(text: str) -> str:
    """Text for a table cell: a numeric reference for all that Markdown or HTML could read."""
    return re.sub(r"[^\w /.,=+%-]|_", lambda m: f"&#{ord(m[0])};", printable(text))


def plural(count: int, noun: str) -> str:
    """A number and its noun."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{ending}"


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """The last values as bars. A range below 2 % is drawn as 2 %: noise is not a mountain."""
    last = list(values)[-width:]
    if not last:
        return ""
    low, high = min(last), max(last)
    span = max(high - low, 0.02 * high)
    middle = (low + high) / 2
    steps = len(_BARS) - 1
    return "".join(_BARS[round((v - middle + span / 2) / span * steps)] for v in last)


def bounds(bench: Bench) -> str:
    """The interval of a benchmark; too few processes have none."""
    return interval(bench.ci) if bench.ci else "no interval"


def by_change(result: Result) -> list[Bench]:
    """The slowest first; the name decides between equals, so that the order is stable."""
    return sorted(result.benches, key=lambda b: (-b.change, b.bench))


def setting(result: Result, key: str) -> str:
    """A share out of the settings, which hold what they like, as percent."""
    value = result.settings.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e9:
        return "unknown"
    return plain_percent(value)


def summary(result: Result) -> str:
    """How many benchmarks have which verdict."""
    if not result.processes:
        return "Both are the same library, bit by bit: nothing was measured."
    counts = [f"{sum(b.verdict == v for b in result.benches)} {v}" for v in VERDICTS]
    other = sum(b.same_output is False for b in result.benches)
    counts += [f"{other} with other outputs"] * bool(other)
    counts += [f"{len(result.errors)} left out"] * bool(result.errors)
    ended = "" if result.complete else " The run was ended early."
    return (f"{plural(len(result.benches), 'benchmark')}: {', '.join(counts)}; "
            f"{plural(result.processes, 'process')}, "
            f"{result.seconds:.0f} s.{ended}")


def geomean(result: Result) -> str:
    """The geometric mean in words."""
    mean = result.geomean
    ci = f" ({interval(mean.ci)})" if mean.ci else ""
    return f"Geometric mean {percent(mean.change)}{ci}: {mean.verdict}."


def noise(result: Result) -> str:
    """How far A and a copy of A lie apart, and what the run asked for."""
    known = sorted(b.noise for b in result.benches if b.noise is not None)
    floor = (f"Noise floor (A against A, p95): median {plain_percent(round(median(known), 5))}, "
             f"largest {plain_percent(round(known[-1], 5))}" if known else
             "Noise floor: not measured (isobit-perf aa does)")
    return (f"{floor}. Margin {setting(result, 'delta')} or the noise, false discoveries "
            f"{setting(result, 'fdr')}, intervals {setting(result, 'confidence')}.")
