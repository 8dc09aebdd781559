# SPDX-License-Identifier: MIT
"""From options to a session that can be run: sides, driver, names, settings; and running it."""

import argparse
import datetime
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from . import accepted, build, files, journal, machine, options, selection
from .command import CommandRunner, EnvironmentRunner, PairedDriver, common_names
from .driver import Driver
from .errors import Exit, PerfError
from .files import BenchError, Geomean, Machine, Result, Side
from .library import LibraryDriver, find_program
from .progress import Progress
from .session import SessionRun


@dataclass
class Plan:
    """All that a session needs but its seed and its files."""

    kind: Literal["ab", "aa", "command"]
    a: Side
    b: Side
    machine: Machine
    driver: Driver
    names: list[str]
    errors: list[BenchError] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)


def for_libraries(args: argparse.Namespace, a: str, b: str,
                  kind: Literal["ab", "aa"] = "ab") -> Plan:
    """A plan by isobit_ab."""
    program = find_program(args.program)
    names = selection.library_names(args, program)
    left, right = build.resolve_pair(a, b, args.repository, args.cache)
    silence = args.time_limit or 30.0
    driver: Driver
    if left.environment or right.environment:
        driver = PairedDriver({side: EnvironmentRunner(LibraryDriver(
            program, library.path, library.path, options.slots(args), silence,
            library.environment)) for side, library in (("a", left), ("b", right))})
    else:
        driver = LibraryDriver(program, left.path, right.path, options.slots(args), silence)
    return Plan(kind, left.side, right.side, machine.describe(left.path), driver, names,
                settings={"suite": args.suite or "pr", "a_sha256": left.digest(),
                          "b_sha256": right.digest(), "blocks": args.blocks,
                          "slot": args.slot, "seconds": args.seconds,
                          "accepted": accepted.trailers(args.repository, left.side.commit,
                                                        right.side.commit)})


def for_commands(args: argparse.Namespace, a: str, b: str,
                 kind: Literal["aa", "command"] = "command") -> Plan:
    """A plan by two programs of Google Benchmark."""
    runners = [CommandRunner(command, args.repetitions, args.time_limit or 300.0)
               for command in (a, b)]
    names, lacks = common_names(*runners)
    patterns = [".*"]
    if args.suite:
        patterns = selection.suite_patterns(args.suite, options.perf_folder(args))
    chosen = selection.select(names, patterns, args.filter)
    lacks = [e for e in lacks if selection.select([e.bench], patterns, args.filter)]
    if not chosen:
        raise PerfError("no benchmark is left that both programs have")
    sides = [Side(runner.command, None, runner.argv()[0], "") for runner in runners]
    return Plan(kind, sides[0], sides[1], machine.describe(),
                PairedDriver(dict(zip("ab", runners))), chosen, lacks,
                {"suite": args.suite or "all", "repetitions": args.repetitions})


def settings(args: argparse.Namespace, plan: Plan, extra: Mapping[str, Any]) -> dict[str, Any]:
    """What a result says of how it came about."""
    rules = options.rules(args)
    shares = [round(rules.share(i), 6) for i in range(len(rules.looks))]
    return {"delta": rules.delta, "fdr": rules.fdr, "confidence": rules.confidence,
            "geomean_delta": rules.geomean_delta, "looks": rules.looks, "shares": shares,
            "error_split": "Bonferroni over the looks: each has its share of 1 - confidence "
            "and of fdr", "budget": args.budget,
            "outputs": "ignored" if getattr(args, "allow_different", False) else "compared",
            **plan.settings, **extra}


def journal_path(output: Path) -> Path:
    """The journal that belongs to a result."""
    return output.with_name(output.name.removesuffix(".json") + ".journal.jsonl")


def _check_same(path: Path, old: journal.Session, plan: Plan, now: dict[str, Any]) -> None:
    if old.machine.fingerprint != plan.machine.fingerprint:
        raise PerfError(f"{path}: begun on {old.machine.fingerprint}, this machine is "
                        f"{plan.machine.fingerprint}", Exit.FINGERPRINT)
    if old.kind != plan.kind or old.suite != plan.names:
        raise PerfError(f"{path}: its benchmarks are not those of this session")
    for key, value in now.items():
        if old.settings.get(key) != value:
            raise PerfError(f"{path}: {key} was {old.settings.get(key)!r} and is now {value!r}")


def run(args: argparse.Namespace, plan: Plan, output: Path, resume: Path | None = None,
        seed: int | None = None, extra: Mapping[str, Any] | None = None) -> Result:
    """Runs the session and writes its result; a PerfError after that says why it ended early."""
    path = resume or journal_path(output)
    now_set = settings(args, plan, extra or {})
    noise = files.read_noise(files.noise_path(options.perf_folder(args),
                                              plan.machine.fingerprint),
                             plan.machine.fingerprint)
    progress = Progress(quiet=args.quiet)
    if resume:
        head, found, text = journal.read(resume)
        _check_same(resume, head, plan, now_set)
    else:
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        head = journal.Session("session", 1, plan.kind, plan.a, plan.b, plan.machine,
                               plan.names, now_set,
                               options.new_seed() if seed is None else seed, now,
                               args.arguments, os.getcwd())
        if path.is_file():  # perhaps of a run that was killed: nothing is thrown away
            os.replace(path, path.with_name(path.name + ".old"))
    session = SessionRun(head, path, plan.driver, options.rules(args), noise, args.budget,
                         progress)
    if resume:
        session.resume(found, text)
    else:
        session.begin(plan.errors)
    return _finish(session, output, path, progress)


def identical(args: argparse.Namespace, plan: Plan, output: Path) -> Result | None:
    """The result of two revisions that build the same library, bit by bit: nothing to measure."""
    a, b = plan.a, plan.b
    if not a.commit or not b.commit or a.commit == b.commit or (
            plan.settings["a_sha256"] != plan.settings["b_sha256"]):
        return None
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    result = Result(1, "ab", a, b, plan.machine, settings(args, plan, {}), 0, now, 0.0, 0, "SAME",
                    Geomean(0.0, None, "SAME"), shlex.join(["isobit-perf", *args.arguments]), [],
                    [])
    files.write_result(output, result)
    return result


def _finish(session: SessionRun, output: Path, path: Path, progress: Progress) -> Result:
    head = session.head
    progress.say(f"{len(head.suite)} benchmarks, seed {head.seed}, journal {path}")
    trouble: PerfError | None = None
    try:
        session.run()
    except KeyboardInterrupt:
        trouble = PerfError(f"interrupted; the result is of what was measured until then, "
                            f"--resume {path} goes on", Exit.INTERRUPTED)
    except PerfError as error:
        trouble = error
    except OSError as error:  # a full /tmp, for example
        trouble = PerfError(f"{error.filename or 'a file'}: {error.strerror}; --resume {path} "
                            "goes on")
    if trouble and not session.state.processes:
        raise trouble
    result = session.result(shlex.join(["isobit-perf", *head.arguments]))
    try:
        files.write_result(output, result)
    except PerfError:
        if not trouble:
            raise
    if trouble:
        trouble.result = result
        raise trouble
    return result
