# SPDX-License-Identifier: MIT
"""Options that several sub-commands have, and how their values are read."""

import argparse
import os
import re
from argparse import ArgumentTypeError
from pathlib import Path

from . import build
from .library import Slots
from .verdicts import Rules, looks


def fraction(text: str) -> float:
    """2% or 0.02."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)(%?)", text)
    value = float(match.group(1)) / (100 if match.group(2) else 1) if match else -1.0
    if not 0 < value < 1:
        raise ArgumentTypeError(f"{text!r} must be like 2% or 0.02, above 0 and below 100%")
    return value


def percents(text: str) -> list[float]:
    """3 or 3%, or several with commas between."""
    found = [re.fullmatch(r"(\d+\.?\d*)%?", part) for part in text.split(",")]
    values = [float(match.group(1)) for match in found if match]
    if len(values) != len(found) or not all(0 < value <= 1000 for value in values):
        raise ArgumentTypeError(f"{text!r} must be like 3 or 2,3,5,10, each above 0")
    return values


def seconds(text: str) -> float:
    """90, 90s, 5m, 1m20s, 1h."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", text)
    parts = match.groups() if match else (None, None, None)
    total = sum(float(part or 0) * unit for part, unit in zip(parts, (3600, 60, 1)))
    if total <= 0:
        raise ArgumentTypeError(f"{text!r} must be like 90s or 5m, above 0")
    return total


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not re.fullmatch(r"[1-9]\d{0,6}", text):
        raise ArgumentTypeError(f"{text!r} must be a whole number from 1 on")
    return int(text)


def regex(text: str) -> str:
    """A regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from None
    return text


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Which benchmarks, and where things lie."""
    parser.add_argument("--suite", help="smoke, pr, full, or another one of perf/suites.json "
                        "(pr; with --command all)")
    parser.add_argument("--filter", metavar="RE", type=regex,
                        help="only names in which this regular expression is found")
    parser.add_argument("--isa", metavar="NAMES",
                        help="only these instruction sets, with commas between; or all (all)")
    parser.add_argument("--program", metavar="FILE",
                        help="isobit_ab (that of the build, or what ISOBIT_AB says)")
    parser.add_argument("--perf", metavar="DIR", type=Path,
                        help="folder of suites.json and noise/ (perf in the repository)")


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """How it is measured."""
    parser.add_argument("--seed", type=int, help="of all that is random (a new one, shown)")
    parser.add_argument("--blocks", type=count, default=200,
                        help="blocks A B B A per process and benchmark, at most (200)")
    parser.add_argument("--slot", type=seconds, default=0.0001, metavar="SECONDS",
                        help="one timing takes at least so long (0.0001)")
    parser.add_argument("--seconds", type=seconds, default=0.04, metavar="SECONDS",
                        help="all blocks together take about so long; five are always "
                        "measured (0.04)")
    parser.add_argument("--time-limit", type=seconds, metavar="TIME",
                        help="a process is killed after so long without a result (30s), an "
                        "execution of a --command after so long (5m)")
    parser.add_argument("--repository", metavar="DIR", type=Path, default=Path("."),
                        help="of the revisions (the one of the working folder)")
    parser.add_argument("--cache", metavar="DIR", type=Path, default=build.default_cache(),
                        help="where built revisions are kept (~/.cache/isobit-perf)")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def add_deciding(parser: argparse.ArgumentParser, budget: str | None = "5m") -> None:
    """What decides, and when it ends."""
    parser.add_argument("--budget", type=seconds, default=budget and seconds(budget),
                        metavar="TIME", help=f"no new process after so long ({budget})")
    parser.add_argument("--delta", type=fraction, default=0.02,
                        help="changes below do not matter (2%%)")
    parser.add_argument("--geomean-delta", type=fraction,
                        help="the same of the geometric mean (a quarter of delta)")
    parser.add_argument("--fdr", type=fraction, default=0.05,
                        help="at most this share of the alarms is false (5%%)")
    parser.add_argument("--confidence", type=fraction, default=0.95,
                        help="of the intervals, over all looks (95%%)")
    parser.add_argument("--first", type=count, default=12, metavar="N",
                        help="processes before the first look (12)")
    parser.add_argument("--processes", type=count, default=200, metavar="N",
                        help="at most so many processes (200)")


def rules(args: argparse.Namespace) -> Rules:
    """The rules that the options say."""
    geomean_delta = args.geomean_delta or args.delta / 4
    return Rules(args.delta, args.fdr, args.confidence, geomean_delta,
                 looks(args.processes, min(args.first, args.processes)))


def slots(args: argparse.Namespace) -> Slots:
    """The slots that the options say."""
    return Slots(args.blocks, args.slot, args.seconds)


def perf_folder(args: argparse.Namespace) -> Path:
    """perf/ of the repository that the user is in, or as said."""
    if args.perf:
        return Path(args.perf)
    folder = Path.cwd()
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return place / "perf"
    return folder / "perf"


def new_seed() -> int:
    """A seed that nobody has chosen."""
    return int.from_bytes(os.urandom(4), "little")
