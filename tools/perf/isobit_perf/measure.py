# SPDX-License-Identifier: MIT
"""The sub-commands list, run and ab."""

import argparse
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

from . import build, journal, machine, options, plan, schema, selection, summary
from .driver import ProcessFailed
from .errors import Exit, PerfError
from .library import LibraryDriver, find_program
from .progress import Progress
from .session import exit_status


def add_list_parser(subparsers: Any) -> None:
    """`list`."""
    parser = subparsers.add_parser("list", description="Prints the names of the benchmarks.")
    options.add_selection(parser)


def main_list(args: argparse.Namespace) -> int:
    """`list`."""
    args.suite = args.suite or "full"
    for name in selection.library_names(args, find_program(args.program)):
        print(name)
    return Exit.OK


# ------------------------------------------------------------------------------------------ run


def add_run_parser(subparsers: Any) -> None:
    """`run`."""
    parser = subparsers.add_parser(
        "run", description="Measures one build; writes JSON as Google Benchmark does, one "
        "repetition for each process.")
    parser.add_argument("build", nargs="?", default="build", metavar="A",
                        help="build folder, libisobit.so or git revision (build)")
    parser.add_argument("-o", "--output", type=Path, default=Path("run.json"), metavar="FILE",
                        help="(run.json)")
    parser.add_argument("--budget", type=options.seconds, metavar="TIME",
                        help="no new process after so long (none)")
    parser.add_argument("--processes", type=options.count, default=12, metavar="N", help="(12)")
    options.add_selection(parser)
    options.add_measuring(parser)


def _entries(process: journal.Process, repetition: int) -> list[dict[str, Any]]:
    found = []
    for line in process.benches.values():
        wall = median(line.a + line.b)
        cpu = [time for time in (line.cpu_a, line.cpu_b) if time is not None] or [wall]
        found.append({"name": line.bench, "run_name": line.bench, "run_type": "iteration",
                      "repetition_index": repetition, "iterations": line.calls,
                      "real_time": wall, "cpu_time": sum(cpu) / len(cpu),
                      "time_unit": "ns", "isobit.work": line.work, "isobit.hash": line.hash_a,
                      "isobit.canary": line.canary})
    return found


def main_run(args: argparse.Namespace) -> int:
    """`run`."""
    program = find_program(args.program)
    names = selection.library_names(args, program)
    library = build.resolve(args.build, args.repository, args.cache)
    driver = LibraryDriver(program, library.path, library.path, options.slots(args),
                           args.time_limit or 30.0)
    seed = options.new_seed() if args.seed is None else args.seed
    progress, begun = Progress(quiet=args.quiet), time.monotonic()
    entries: list[dict[str, Any]] = []
    errors: dict[str, str] = {}
    for number in range(1, args.processes + 1):
        passed = time.monotonic() - begun
        each = passed / (number - 1) if number > 1 else 0.0
        if args.budget and number > 1 and passed + each > args.budget:
            break
        progress.process(number, args.processes, len(names), each * (args.processes - number + 1))
        try:
            lines = driver.process(number, seed + number, names, progress.bench)
        except ProcessFailed as failed:
            raise PerfError(f"process {number} {failed}") from None
        process = journal.make_process(lines, number, 0.0)
        entries += _entries(process, number - 1)
        errors.update((error.bench, error.why) for error in process.errors)
    here = machine.describe(library.path)
    context = {"date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "host_name": os.uname().nodename,
               "executable": program, "num_cpus": here.threads, "mhz_per_cpu": 0,
               "cpu_scaling_enabled": False, "caches": [], "load_avg": list(machine.load()),
               "library_build_type": "release", "isobit.version": library.side.version,
               "isobit.commit": library.side.commit, "isobit.seed": seed,
               **{f"isobit.{key}": value for key, value in vars(here).items()}}
    for name, why in errors.items():
        progress.say(f"{name}: {why}")
        entries.append({"name": name, "run_name": name, "run_type": "iteration",
                        "error_occurred": True, "error_message": why})
    schema.write(args.output, {"context": context, "benchmarks": entries})
    progress.say(f"{args.output}: {len(names)} benchmarks")
    return Exit.OK


# ------------------------------------------------------------------------------------------- ab


def add_ab_parser(subparsers: Any) -> None:
    """`ab`."""
    parser = subparsers.add_parser(
        "ab", description="Compares two builds, or with --command two programs of Google "
        "Benchmark. Each of A and B is a build folder, a libisobit.so, a git revision, or "
        "env:VAR=value: the library of the other side in this environment.")
    parser.add_argument("sides", nargs="*", metavar="A B")
    parser.add_argument("--command", nargs=2, metavar=("A", "B"),
                        help="two commands, with their arguments, instead")
    parser.add_argument("--repetitions", type=options.count, default=5,
                        help="per execution of a command (5)")
    parser.add_argument("-o", "--output", type=Path, default=Path("ab.json"), metavar="FILE",
                        help="(ab.json; the journal lies beside it)")
    parser.add_argument("--resume", type=Path, metavar="JOURNAL",
                        help="go on with a session that was killed, with its options")
    parser.add_argument("--strict", action="store_true", help="exit with 3 when inconclusive")
    parser.add_argument("--allow-different", action="store_true",
                        help="other outputs are no failure")
    parser.add_argument("--json", action="store_true", help="the result to standard output")
    options.add_selection(parser)
    options.add_measuring(parser)
    options.add_deciding(parser)


def restore(args: argparse.Namespace, name: str, add: Any) -> argparse.Namespace:
    """The options of the session that --resume names, in the folder where it was begun."""
    path = args.resume.absolute()
    head, _, _ = journal.read(path)
    if not head.arguments or head.arguments[0] != name:
        raise PerfError(f"{args.resume}: not a journal of {name}")
    parser = argparse.ArgumentParser(prog="isobit-perf")
    add(parser.add_subparsers())
    restored = parser.parse_args(head.arguments)
    restored.resume, restored.quiet, restored.arguments = path, args.quiet, head.arguments
    os.chdir(head.cwd)
    return restored


def main_ab(args: argparse.Namespace) -> int:
    """`ab`."""
    if args.resume:
        if args.sides or args.command:
            raise PerfError("--resume takes both sides from the journal")
        args = restore(args, "ab", add_ab_parser)
    if args.command and not args.sides:
        planned = plan.for_commands(args, *args.command)
    elif len(args.sides) == 2 and not args.command:
        planned = plan.for_libraries(args, *args.sides)
    else:
        raise PerfError("ab needs two sides: ab A B, or ab --command A B")
    try:
        result = plan.identical(args, planned, args.output) or plan.run(
            args, planned, args.output, args.resume, args.seed)
    except PerfError as error:
        if error.result is not None:
            summary.show(error.result, args.output, args.json)
        raise
    summary.show(result, args.output, args.json)
    return exit_status(result, args.strict)
