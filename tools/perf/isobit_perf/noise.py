# SPDX-License-Identifier: MIT
"""The sub-command aa: a build beside a copy of itself. What it finds is noise."""

import argparse
from collections import Counter
from math import log1p
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats as scipy_stats

from . import campaign, figures, files, options, plan, records, schema, stats, summary
from .errors import Exit, PerfError
from .files import BenchNoise, Noise, Result
from .progress import duration

RESAMPLES = 1000


def add_parser(subparsers: Any) -> None:
    """`aa`."""
    parser = subparsers.add_parser(
        "aa", description="Compares a build with a copy of itself. Writes "
        "perf/noise/<fingerprint>.json, which widens the margins of later comparisons, and "
        "counts false alarms: a REGRESSION or FASTER here is one. --runs repeats the whole "
        "suite; each run is kept in the folder, where the same command goes on after a stop.")
    parser.add_argument("build", nargs="?", default="build", metavar="A",
                        help="build folder, libisobit.so or git revision (build)")
    parser.add_argument("--command", metavar="A", help="a program of Google Benchmark instead")
    parser.add_argument("--repetitions", type=options.count, default=5,
                        help="per execution of a command (5)")
    campaign.add_keep(parser)
    parser.add_argument("-o", "--output", type=Path, default=Path("aa"), metavar="DIR",
                        help="folder of the runs and of aa.json (aa)")
    parser.add_argument("--no-noise", action="store_true", help="leave perf/noise/ as it is")
    campaign.add_neighbour(parser)
    options.add_selection(parser)
    options.add_measuring(parser)
    options.add_deciding(parser)


def noise_of(d: list[float], n: int, delta: float, error: float) -> BenchNoise:
    """How far off a session of n processes is, of which d are samples.

    p95 is the quantile of |estimate| over sessions that are drawn from d with replacement.
    """
    rng = np.random.default_rng(len(d))
    values = np.asarray(d)
    drawn = values[rng.integers(0, len(values), (RESAMPLES, n))]
    i, j = np.triu_indices(n)
    estimates = np.median((drawn[:, i] + drawn[:, j]) / 2, axis=1)
    p95 = float(np.quantile(np.abs(estimates), 0.95))
    spread = stats.minimum_detectable(values, error) * np.sqrt(len(values) / n)
    return BenchNoise(len(d), float(scipy_stats.median_abs_deviation(values)), p95,
                      float(max(log1p(delta), p95) + spread))


def gather(results: list[Result], fingerprint: str, args: argparse.Namespace) -> Noise:
    """The noise of each benchmark over all runs."""
    pooled: dict[str, list[float]] = {}
    for result in results:
        for bench in result.benches:
            pooled.setdefault(bench.bench, []).extend(bench.d)
    rules = options.rules(args)
    error = (1 - rules.confidence) / 2 * rules.share(0)
    return Noise(1, fingerprint, {name: noise_of(d, rules.looks[0], rules.delta, error)
                                  for name, d in pooled.items()})


def count(results: list[Result]) -> dict[str, Any]:
    """The table of the runs, and what was false in them."""
    rows = []
    for number, result in enumerate(results, 1):
        verdicts: Counter[str] = Counter(bench.verdict for bench in result.benches)
        rows.append({"run": number, **{name: verdicts[name] for name in
                     ("REGRESSION", "FASTER", "SAME", "INCONCLUSIVE")},
                     "geomean": result.geomean.verdict, "seconds": result.seconds,
                     "processes": result.processes})
    false_runs = sum(result.verdict == "REGRESSION" for result in results)
    return {"v": 1, "runs": rows, "false_regression_runs": false_runs,
            "false_regressions": sum(row["REGRESSION"] for row in rows),
            "false_faster": sum(row["FASTER"] for row in rows)}


def _show(found: dict[str, Any], folder: Path) -> None:
    keys = ["run", "REGRESSION", "FASTER", "SAME", "INCONCLUSIVE", "geomean", "processes"]
    rows = [[*keys, "time"]]
    rows += [[*(str(row[key]) for key in keys), duration(row["seconds"])]
             for row in found["runs"]]
    campaign.show(campaign.table(rows))
    campaign.show(f"{found['false_regression_runs']} of {len(found['runs'])} runs with a false "
                  f"REGRESSION, {found['false_regressions']} false REGRESSION and "
                  f"{found['false_faster']} false FASTER; {folder / 'aa.json'}")


def main(args: argparse.Namespace) -> int:
    """`aa`."""
    if args.command:
        planned = plan.for_commands(args, args.command, args.command, "aa")
    else:
        planned = plan.for_libraries(args, args.build, args.build, "aa")
    args.seed = campaign.keep_seed(args.output, args.seed, options.new_seed())
    keeper = records.keeper(args, planned)
    runs = keeper.left(args.runs)
    if not runs:
        return figures.show(args.keep, keeper.fingerprint)
    results: list[Result] = []
    try:
        for number in range(1, runs + 1):
            results.append(campaign.run_number(args, planned, args.output, number))
            keeper.add(results[-1], args.output / f"run-{number:03}.json", number)
    except PerfError as error:
        if error.status != Exit.INTERRUPTED:
            raise
    except KeyboardInterrupt:
        pass
    if not results:
        raise campaign.interrupted(args.output, 0, runs)
    found = count(results)
    schema.write(args.output / "aa.json", found)
    if len(results) == 1:
        campaign.show(summary.text(results[0], args.output / "run-001.json"))
    _show(found, args.output)
    if not args.no_noise:
        fingerprint = planned.machine.fingerprint
        path = files.noise_path(options.perf_folder(args), fingerprint)
        files.write_noise(path, gather(results, fingerprint, args))
        campaign.show(f"noise: {path}")
    if len(results) < runs:
        raise campaign.interrupted(args.output, len(results), runs)
    if args.keep:
        return figures.show(args.keep, keeper.fingerprint)
    false = found["false_regression_runs"] / len(results)
    return Exit.REGRESSION if false > campaign.FALSE_RUNS else Exit.OK
