# SPDX-License-Identifier: MIT
"""Which benchmarks: suites, filters, instruction sets."""

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .errors import Exit, PerfError
from .files import read_suites
from .library import list_names
from .options import perf_folder

OWN = Path(__file__).resolve().parents[3] / "perf"


def suite_patterns(suite: str, folder: Path) -> list[str]:
    """The regular expressions of a suite: the repository's own suites.json, or isobit's."""
    path = folder / "suites.json"
    if not path.exists():
        path = OWN / "suites.json"
    suites = read_suites(path).suites
    if suite not in suites:
        raise PerfError(f"{path}: no suite {suite!r}; there are: {', '.join(suites)}")
    for pattern in suites[suite]:
        try:
            re.compile(pattern)
        except re.error as error:
            raise PerfError(f"{path}: suite {suite}: {pattern!r}: {error}") from None
    return suites[suite]


def select(names: Sequence[str], patterns: Iterable[str], filter_: str | None,
           isas: Sequence[str] = ()) -> list[str]:
    """The names in which one of the patterns is found, and the filter, and one of the sets."""
    patterns = list(patterns)
    return [name for name in dict.fromkeys(names)
            if any(re.search(pattern, name) for pattern in patterns)
            and (not filter_ or re.search(filter_, name))
            and (not isas or set(name.split("/")) & set(isas))]


def library_names(args: argparse.Namespace, program: str) -> list[str]:
    """The benchmarks of isobit_ab that the options choose."""
    isas = [] if args.isa in (None, "all") else args.isa.split(",")
    found: list[str] = []
    for isa in isas or [None]:
        found += list_names(program, isa)
    patterns = suite_patterns(args.suite or "pr", perf_folder(args))
    names = select(found, patterns, args.filter, isas)
    if not names:
        raise PerfError("no benchmark is left" + (f" of suite {args.suite or 'pr'}")
                        + (f" with --filter {args.filter}" if args.filter else "")
                        + (f" with --isa {args.isa}" if isas else ""),
                        Exit.SKIP if isas and not args.filter else Exit.TROUBLE)
    return names
