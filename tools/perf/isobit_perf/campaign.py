# SPDX-License-Identifier: MIT
"""Many sessions into one folder; what is there already is not measured again."""

import argparse
import os
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import files, journal, neighbour, options, plan, schema
from .errors import Exit, PerfError
from .files import Result
from .plan import Plan

FALSE_RUNS = 0.01  # A/A: at most
WANTED_POWER = 0.95


def run_number(args: argparse.Namespace, planned: Plan, folder: Path, number: int,
               extra: Mapping[str, Any] | None = None) -> Result:
    """Run `number` of a campaign: read, gone on with, or begun."""
    output = folder / f"run-{number:03}.json"
    if output.exists():
        result = files.read_result(output)
        if result.complete:
            if result.a.path != planned.a.path or result.machine != planned.machine:
                raise PerfError(f"{output}: of another build or machine; choose another folder")
            return result
    started = plan.journal_path(output)
    folder.mkdir(parents=True, exist_ok=True)
    noisy = args.neighbour and number % 2 == 0
    with neighbour.running(noisy):
        return plan.run(args, planned, output, started if started.exists() else None,
                        seed_of(args.seed, number), {**(extra or {}), "neighbour": noisy})


def seed_of(seed: int, number: int) -> int:
    """The seed of a run of a campaign."""
    return random.Random(f"campaign/{seed}/{number}").getrandbits(32)


def keep_seed(folder: Path, seed: int | None, new: int) -> int:
    """The seed of the campaign in this folder: a second call goes on with the first one's."""
    path = folder / "campaign.json"
    if path.exists():
        kept = schema.read(_Campaign, path).seed
        if seed not in (None, kept):
            raise PerfError(f"{path}: begun with the seed {kept}, not {seed}")
        return kept
    schema.write(path, {"v": 1, "seed": new if seed is None else seed,
                        "name": os.urandom(4).hex()})
    return new if seed is None else seed


def name_of(folder: Path) -> str:
    """The name of the campaign in this folder; no other one has it."""
    kept = schema.read(_Campaign, folder / "campaign.json")
    return kept.name or f"{kept.seed:08x}"


@dataclass
class _Campaign:
    seed: int
    name: str = ""


def add_keep(parser: argparse.ArgumentParser) -> None:
    """How many runs, and where they are kept."""
    parser.add_argument("--runs", type=options.count, default=1, metavar="N",
                        help="runs of the whole suite; with --keep those count that the file has "
                        "of other folders (1)")
    parser.add_argument("--keep", type=Path, metavar="FILE.jsonl",
                        help="add a line for each run to this file; `campaign` makes tables of it")


def add_neighbour(parser: argparse.ArgumentParser) -> None:
    """The option that aa and inject have."""
    parser.add_argument("--neighbour", action="store_true",
                        help="every second run beside a process that streams memory in bursts")


def seconds_until(result_path: Path, processes: int) -> float:
    """The time that a session took until it had so many processes."""
    _, entries, _ = journal.read(plan.journal_path(result_path))
    total, count = 0.0, 0
    for entry in entries:
        total += entry.seconds
        count += isinstance(entry, journal.Process)
        if count == processes:
            break
    return total


def table(rows: list[list[str]]) -> str:
    """Rows in columns, as Markdown; the first one is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths)) + " |"
             for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return "\n".join(lines)


def interrupted(folder: Path, done: int, wanted: int) -> PerfError:
    """What a campaign says that Ctrl-C ended."""
    return PerfError(f"interrupted after {done} of {wanted} runs; the same command goes on in "
                     f"{folder}", Exit.INTERRUPTED)


def show(text: str) -> None:
    """A part of the report."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
