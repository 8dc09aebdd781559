# SPDX-License-Identifier: MIT
"""The sub-command inject: slows benchmarks of B down on purpose, and counts what is found."""

import argparse
import dataclasses
import random
from pathlib import Path
from typing import Any

from . import campaign, figures, options, plan, records, schema
from .errors import Exit, PerfError
from .files import Result
from .library import LibraryDriver
from .progress import duration

WANTED_BLAME = 0.01


def add_parser(subparsers: Any) -> None:
    """`inject`."""
    parser = subparsers.add_parser(
        "inject", description="Compares a build with a copy of itself, of which some benchmarks "
        "are slowed down by isobit_ab. In each run every percentage goes into another benchmark, "
        "chosen by the seed; --all slows all of them. Counts how often the right ones were "
        "found, and how often others were blamed.")
    parser.add_argument("build", nargs="?", default="build", metavar="A",
                        help="build folder, libisobit.so or git revision (build)")
    parser.add_argument("--percent", type=options.percents, metavar="P,...",
                        help="slowdowns, each into one benchmark of the same run (3)")
    parser.add_argument("--all", type=options.percents, metavar="P",
                        help="slow down all benchmarks by this instead")
    campaign.add_keep(parser)
    parser.add_argument("-o", "--output", type=Path, default=Path("inject"), metavar="DIR",
                        help="folder of the runs and of inject.json (inject)")
    campaign.add_neighbour(parser)
    options.add_selection(parser)
    options.add_measuring(parser)
    options.add_deciding(parser)


def choose(names: list[str], percents: list[float], seed: int) -> dict[str, float]:
    """Another benchmark for each of the percentages."""
    if len(percents) > len(names):
        raise PerfError(f"{len(percents)} slowdowns need as many benchmarks, not {len(names)}")
    return dict(zip(random.Random(f"inject/{seed}").sample(names, len(percents)), percents))


@dataclasses.dataclass
class Score:
    """What became of one percentage over the runs."""

    percent: float
    runs: int = 0
    found: int = 0
    inconclusive: int = 0
    seconds: list[float] = dataclasses.field(default_factory=list)  # until it was found
    changes: list[float] = dataclasses.field(default_factory=list)  # as estimated


def score_run(result: Result, path: Path, injected: dict[str, float],
              scores: dict[float, Score]) -> int:
    """Adds a run to the scores; how many benchmarks were blamed for nothing."""
    by_name = {bench.bench: bench for bench in result.benches}
    for name, percent in injected.items():
        score, bench = scores[percent], by_name.get(name)
        score.runs += 1
        if bench is None:
            continue
        score.changes.append(bench.change)
        score.inconclusive += bench.verdict == "INCONCLUSIVE"
        if bench.verdict == "REGRESSION":
            score.found += 1
            score.seconds.append(campaign.seconds_until(path, bench.n))
    return sum(bench.verdict == "REGRESSION" for name, bench in by_name.items()
               if name not in injected)


def _show(scores: dict[float, Score], blamed: int, runs: int, folder: Path) -> None:
    rows = [["slowdown", "runs", "found", "inconclusive", "median change", "median time",
             "longest time"]]
    for score in scores.values():
        times, changes = sorted(score.seconds), sorted(score.changes)
        rows.append([f"{score.percent:g} %", str(score.runs), str(score.found),
                     str(score.inconclusive),
                     f"{100 * changes[len(changes) // 2]:+.2f} %" if changes else "-",
                     duration(times[len(times) // 2]) if times else "-",
                     duration(times[-1]) if times else "-"])
    campaign.show(campaign.table(rows))
    campaign.show(f"{blamed} others blamed in {runs} runs; {folder / 'inject.json'}")


def _enough(scores: dict[float, Score], blamed: int, runs: int, delta: float) -> bool:
    return blamed <= WANTED_BLAME * runs and all(
        score.found >= campaign.WANTED_POWER * score.runs for score in scores.values()
        if score.percent > 100 * delta)


def main(args: argparse.Namespace) -> int:
    """`inject`."""
    if args.all and (args.percent or len(args.all) != 1):
        raise PerfError("--all takes one percentage, and no --percent beside it")
    planned = plan.for_libraries(args, args.build, args.build, "aa")
    driver = planned.driver
    assert isinstance(driver, LibraryDriver)
    args.seed = campaign.keep_seed(args.output, args.seed, options.new_seed())
    percents = args.all or args.percent or [3.0]
    keeper = records.keeper(args, planned, percents, bool(args.all))
    runs = keeper.left(args.runs)
    if not runs:
        return figures.show(args.keep, keeper.fingerprint)
    scores = {percent: Score(percent) for percent in percents}
    done = blamed = 0
    everywhere = {"inject_all": True} if args.all else {}
    found_by_mean: list[dict[str, Any]] = []
    try:
        for number in range(1, runs + 1):
            injected = (dict.fromkeys(planned.names, percents[0]) if args.all else
                        choose(planned.names, percents, campaign.seed_of(args.seed, number)))
            planned.driver = dataclasses.replace(driver, inject=injected)
            result = campaign.run_number(args, planned, args.output, number,
                                         {"inject": injected, **everywhere})
            path = args.output / f"run-{number:03}.json"
            keeper.add(result, path, number)
            if args.all:
                found_by_mean.append({"run": number, "verdict": result.verdict,
                                      **dataclasses.asdict(result.geomean),
                                      "seconds": result.seconds})
            else:
                blamed += score_run(result, path, injected, scores)
            done += 1
    except PerfError as error:
        if error.status != Exit.INTERRUPTED:
            raise
    except KeyboardInterrupt:
        pass
    if not done:
        raise campaign.interrupted(args.output, 0, runs)
    if args.all:
        found = sum(row["verdict"] == "REGRESSION" for row in found_by_mean)
        schema.write(args.output / "inject.json", {"v": 1, "all": percents[0], "runs": done,
                                                   "found": found, "results": found_by_mean})
        campaign.show(f"{percents[0]:g} % on all: found in {found} of {done} runs")
        good = found >= campaign.WANTED_POWER * done
    else:
        schema.write(args.output / "inject.json",
                     {"v": 1, "runs": done, "blamed": blamed,
                      "scores": [dataclasses.asdict(score) for score in scores.values()]})
        _show(scores, blamed, done, args.output)
        good = _enough(scores, blamed, done, args.delta)
    if done < runs:
        raise campaign.interrupted(args.output, done, runs)
    if args.keep:
        return figures.show(args.keep, keeper.fingerprint)
    return Exit.OK if good else Exit.REGRESSION
