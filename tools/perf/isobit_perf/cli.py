# SPDX-License-Identifier: MIT
"""The command line: finds the module of a sub-command, and turns errors into exit codes."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from .errors import Exit, PerfError

# Sub-command, its module, and what it does. A module has add_parser(subparsers) and main(args);
# one that serves several sub-commands has add_NAME_parser and main_NAME instead.
COMMANDS = (
    ("doctor", "doctor", "what disturbs measurements on this machine"),
    ("list", "measure", "the names of the benchmarks"),
    ("run", "measure", "measure one build; writes Google Benchmark JSON"),
    ("ab", "measure", "compare two builds, or two benchmark programs"),
    ("aa", "noise", "compare a build with itself: noise and false alarms"),
    ("inject", "inject", "slow one benchmark down on purpose: is it found?"),
    ("others", "others", "what simpler rules say of the runs of aa and inject"),
    ("campaign", "figures", "tables of what aa and inject have kept"),
    ("bisect", "bisect", "find the commit that made a benchmark slower"),
    ("counts", "counts", "exact counts of instructions, and the hot loops"),
    ("mca", "mca", "cycles of the hot loops on other cores"),
    ("compare", "compare", "two files of Google Benchmark, after the fact"),
    ("record", "history", "add a run to the history"),
    ("history", "history", "the history, and where it changed"),
    ("report", "report", "a result as Markdown, HTML, CSV and others"),
)
HELP = """exit status: 0 no regression; 1 a regression; 2 wrong usage or a failed measurement;
3 inconclusive (--strict only); 4 outputs differ; 5 another machine's file; 77 an instruction set
or a tool is not there; 125 a revision does not build; 130 interrupted"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise PerfError(f"{message} (see {self.prog} --help)")


def _find(name: str, module: str) -> tuple[Callable[[Any], None], Callable[[Any], int]]:
    """add_parser and main of a sub-command."""
    try:
        found = importlib.import_module(f".{module}", __package__)
    except ModuleNotFoundError as error:
        if error.name == f"{__package__}.{module}":
            raise PerfError(f"{name}: not part of this version") from None
        raise PerfError(f"{name}: needs the Python package {error.name}", Exit.SKIP) from None
    add = getattr(found, f"add_{name}_parser", None) or found.add_parser
    main_ = getattr(found, f"main_{name}", None) or found.main
    return add, main_


def _run(arguments: list[str]) -> int:
    top = Parser(prog="isobit-perf", epilog=HELP, allow_abbrev=False,
                 description="Compares the speed of builds on machines that are not quiet.",
                 usage="isobit-perf COMMAND [OPTION...] (COMMAND --help says more)")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    wanted = next((a for a in arguments if not a.startswith("-")), None)
    for name, module, text in COMMANDS:
        if name == wanted:  # the others stay unread, with what they import
            add, main_ = _find(name, module)
            add(subparsers)
            subparsers.choices[name].set_defaults(main=main_)
        else:
            subparsers.add_parser(name, help=text)
    args = top.parse_args(arguments)
    args.arguments = arguments
    if wanted is None:
        top.print_help()
        return Exit.TROUBLE
    return int(args.main(args))


def main(arguments: list[str]) -> int:
    """Runs the sub-command of the arguments; the exit status."""
    try:
        # A terminated run takes the same way out as one that Ctrl-C ends.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except PerfError as error:
        print(f"isobit-perf: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("isobit-perf: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except BrokenPipeError:  # `isobit-perf list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        print(f"isobit-perf: {name}{error.strerror}", file=sys.stderr)
        return Exit.TROUBLE


def run() -> None:
    """The command that an installed package has."""
    sys.exit(main(sys.argv[1:]))
