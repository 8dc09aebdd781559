# SPDX-License-Identifier: MIT
"""The sub-command bisect: `git bisect run` in a worktree of its own, judged by A/B sessions.

Each revision is compared with GOOD, one benchmark only. A REGRESSION is bad, SAME and FASTER are
good; where the budget ends before either, the estimate decides. A revision that does not build,
or in which the benchmark fails, is skipped.
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import build, child, options, plan
from .errors import Exit, PerfError
from .files import Bench, Result
from .summary import interval, percent

ABORT = 128  # ends `git bisect run`


def add_parser(subparsers: Any) -> None:
    """`bisect`."""
    parser = subparsers.add_parser(
        "bisect", description="Finds the first commit between GOOD and BAD that is slower than "
        "GOOD by more than --delta. Your checkout is not touched.")
    parser.add_argument("good", metavar="GOOD")
    parser.add_argument("bad", metavar="BAD")
    parser.add_argument("--bench", required=True, help="name of the benchmark")
    parser.add_argument("--step", action="store_true", help=argparse.SUPPRESS)
    options.add_selection(parser)
    options.add_measuring(parser)
    options.add_deciding(parser, "1m")


def _compare(args: argparse.Namespace, good: str, bad: str) -> tuple[Result, Bench | None]:
    args.suite, args.filter = "full", f"^{re.escape(args.bench)}$"
    planned = plan.for_libraries(args, good, bad)
    with tempfile.TemporaryDirectory(prefix="isobit-perf-") as folder:
        result = plan.run(args, planned, Path(folder) / "ab.json", seed=args.seed)
    return result, next((b for b in result.benches if b.bench == args.bench), None)


def _is_bad(bench: Bench, delta: float) -> bool:
    return bench.verdict == "REGRESSION" or (bench.verdict == "INCONCLUSIVE"
                                             and bench.change > delta)


def _step(args: argparse.Namespace) -> int:
    """One revision, checked out in the working folder: 0 good, 1 bad, 125 skipped."""
    source = Path.cwd()
    commit = build.git(source, "rev-parse", "HEAD")
    try:
        library = build.build_source(source, commit, args.cache)
        _, bench = _compare(args, args.good, str(library))
        if bench is None:
            raise build.Unbuildable(f"{commit[:12]}: {args.bench} was not measured")
    except PerfError as error:
        if error.status == Exit.UNBUILDABLE or "nothing was measured" in str(error):
            print(f"{commit[:12]}: skipped: {error}", flush=True)
            return Exit.UNBUILDABLE
        print(f"isobit-perf: {error}", flush=True)
        return ABORT
    except KeyboardInterrupt:
        return ABORT
    bad = _is_bad(bench, args.delta)
    print(f"{commit[:12]}: {percent(bench.change)} {interval(bench.ci)} {bench.verdict}: "
          f"{'bad' if bad else 'good'}", flush=True)
    return Exit.REGRESSION if bad else Exit.OK


def _step_argv(args: argparse.Namespace, good: Path) -> list[str]:
    argv = [sys.executable, "-m", "isobit_perf", "bisect", str(good), "HEAD", "--step", "--quiet",
            "--bench", args.bench, "--cache", str(Path(args.cache).absolute()),
            "--perf", str(options.perf_folder(args).absolute())]
    if args.program:
        argv += ["--program", str(Path(args.program).absolute())]
    for name in ("seed", "blocks", "slot", "seconds", "time_limit", "budget", "delta", "fdr",
                 "confidence", "geomean_delta", "first", "processes"):
        value = getattr(args, name)
        if value is not None:
            argv += [f"--{name.replace('_', '-')}", str(value)]
    return argv


def _git_bisect(tree: Path, good: str, bad: str, argv: list[str]) -> str:
    build.git(tree, "bisect", "start", bad, good)
    package = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        if re.match(r"[0-9a-f]{12}: |isobit-perf: |Bisecting: ", line):
            print(line, flush=True)

    try:
        child.run(["git", "-C", str(tree), "bisect", "run", *argv], on_line,
                  environment={"PYTHONPATH": path})
    except child.ChildFailed as error:
        raise PerfError(str(error), Exit.SKIP) from None
    return "\n".join(lines)


def main(args: argparse.Namespace) -> int:
    """`bisect`."""
    if args.step:
        return _step(args)
    repository = Path(build.git(args.repository, "rev-parse", "--show-toplevel"))
    commits = [build.git(repository, "rev-parse", "--verify", "--end-of-options",
                         f"{text}^{{commit}}") for text in (args.good, args.bad)]
    good = build.resolve(commits[0], repository, args.cache)
    args.repository = repository
    result, bench = _compare(args, str(good.path), commits[1])
    if bench is None:
        why = result.errors[0].why if result.errors else "it was not measured"
        raise PerfError(f"{args.bench}: {why}")
    print(f"{args.bad} beside {args.good}: {percent(bench.change)} {interval(bench.ci)} "
          f"{bench.verdict}")
    if not _is_bad(bench, args.delta):
        raise PerfError(f"{args.bad} is not slower than {args.good} by more than "
                        f"{100 * args.delta:g} %, there is nothing to find")
    with build.worktree(repository, commits[1]) as tree:
        output = _git_bisect(tree, commits[0], commits[1], _step_argv(args, good.path))
    first = re.search(r"^([0-9a-f]{40}) is the first bad commit", output, re.MULTILINE)
    if first:
        print("first bad commit: " + build.git(repository, "show", "--no-patch",
                                               "--format=%h %an %as %s", first.group(1)))
        return Exit.OK
    skipped = re.findall(r"^([0-9a-f]{40})$", output, re.MULTILINE)
    if skipped:
        print("the first bad commit is one of these, some of which could not be judged: "
              + " ".join(commit[:12] for commit in skipped))
        return Exit.UNBUILDABLE
    raise PerfError("git bisect ended without an answer: " + output.splitlines()[-1])
