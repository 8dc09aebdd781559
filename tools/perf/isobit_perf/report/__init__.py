# SPDX-License-Identifier: MIT
"""isobit-perf report: a result or the history in the formats of others."""

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import history, schema
from ..errors import Exit, PerfError
from ..files import read_result
from . import bmf, csv, gha, junit, markdown

Writer = Callable[[Any], str]


def add_parser(subparsers: Any) -> None:
    """The arguments of `report`."""
    p = subparsers.add_parser("report", description="Writes a result of `ab`, or the history, in "
                              "other formats. FILE may be - for the standard output.")
    p.add_argument("what", metavar="AB.json|history",
                   help="a result; or the word history, which --db and the options below choose")
    for name, text in (("md", "Markdown of at most 60 lines"), ("html", "one page"),
                       ("svg", "the picture"), ("csv", "a table (history: as Otava reads it)"),
                       ("junit", "JUnit XML (of a result)"),
                       ("gha", "github-action-benchmark, customSmallerIsBetter"),
                       ("bmf", "Bencher Metric Format")):
        p.add_argument(f"--{name}", metavar="FILE", help=text)
    history.add_selection(p)


def _drawn(module: str, function: str) -> Writer:
    """A writer whose module needs Matplotlib: imported only when its format is asked for."""
    def write(document: Any) -> str:
        try:
            found = importlib.import_module(f".{module}", __name__)
        except ModuleNotFoundError as error:
            raise PerfError(f"report: needs the Python package {error.name}", Exit.SKIP) from None
        return str(getattr(found, function)(document))
    return write


_OF_RESULT: dict[str, Writer] = {
    "md": markdown.of_result, "html": _drawn("html", "of_result"),
    "svg": _drawn("pictures", "file_of_result"), "csv": csv.of_result,
    "junit": junit.of_result, "gha": gha.of_result, "bmf": bmf.of_result}
_OF_HISTORY: dict[str, Writer] = {
    "md": markdown.of_history, "html": _drawn("html", "of_history"),
    "svg": _drawn("pictures", "file_of_history"), "csv": csv.of_history,
    "gha": gha.of_history, "bmf": bmf.of_history}


def main(args: argparse.Namespace) -> int:
    """Writes all that was asked for; without any, Markdown to the standard output."""
    is_history = args.what == "history"
    writers = _OF_HISTORY if is_history else _OF_RESULT
    wanted = {name: getattr(args, name) for name in _OF_RESULT if getattr(args, name)}
    for name in wanted.keys() - writers.keys():
        raise PerfError(f"--{name} is for a result, not for the history")
    document = history.selected(args) if is_history else read_result(args.what)
    pages = {path: writers[name](document) for name, path in (wanted or {"md": "-"}).items()}
    for path, page in pages.items():
        _put(path, page)
    return 0


def _put(path: str, content: str) -> None:
    """Names may hold half a surrogate pair, which no file can: it becomes its escape."""
    content = content.encode("utf-8", "backslashreplace").decode("utf-8")
    if path == "-":
        sys.stdout.write(content)
    else:
        schema.write_text(Path(path), content)
