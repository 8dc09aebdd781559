#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Were our commit messages right? Measures the claims of perf/claims.json with isobit-perf.

usage: perf/claims.py [FOLDER]  (build/perf/claims)

Each commit is compared with its parent: the benchmarks that its message spoke of, and the smoke
suite beside them. Results that are in FOLDER already are not measured again. Writes a table in
Markdown. A ratio is time after / time before; one that was said holds where the interval of
what was measured comes within 0.03 of it.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "perf" / "isobit-perf"
TOLERANCE = 0.03


def measure(claim: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The result of isobit-perf for the commit of a claim."""
    output = folder / f"{claim['commit']}.json"
    if not output.exists():
        smoke = json.loads((ROOT / "perf" / "suites.json").read_text())["suites"]["smoke"]
        names = [f"^{re.escape(name)}$" for name in claim["said"]]
        done = subprocess.run(
            [TOOL, "ab", f"{claim['commit']}~1", claim["commit"], "--suite", "full", "--filter",
             "|".join(names + smoke), "--budget", "2m", "--cache", str(folder / "libraries"),
             "-o", str(output), "--quiet"], stdout=subprocess.DEVNULL, check=False)
        if not output.exists():
            raise SystemExit(f"claims.py: {claim['commit']}: isobit-perf ended with "
                             f"{done.returncode}")
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def holds(said: float, low: float, high: float) -> bool:
    """Whether the interval comes near what was said."""
    return low - TOLERANCE <= said <= high + TOLERANCE


def rows(claim: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """Lines of the table: each benchmark that was spoken of, and who else moved."""
    lines = []
    benches = {bench["bench"]: bench for bench in result["benches"]}
    for name, said in claim["said"].items():
        bench = benches.pop(name, None)
        if bench is None:
            lines.append(f"| {claim['commit']} | {name} | {said:.2f} | not measured | | |")
            continue
        low, high = (1 + end for end in bench["ci"])
        lines.append(
            f"| {claim['commit']} | {name.removesuffix('/t1')} | {said:.2f} ({claim['on']}) | "
            f"{1 + bench['change']:.2f} ({low:.2f} to {high:.2f}) | {bench['verdict']} | "
            f"{'yes' if holds(said, low, high) else 'no'} |")
    lines += [f"| {claim['commit']} | {name.removesuffix('/t1')} | - | "
              f"{1 + bench['change']:.2f} ({1 + bench['ci'][0]:.2f} to {1 + bench['ci'][1]:.2f}) | "
              f"{bench['verdict']} | not said |"
              for name, bench in benches.items() if bench["verdict"] in ("REGRESSION", "FASTER")]
    return lines


def main() -> None:
    """Measures all claims and prints the table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "perf" / "claims"
    folder.mkdir(parents=True, exist_ok=True)
    print("| commit | benchmark | said | measured (95 %) | verdict | right? |\n" + 6 * "|---" + "|")
    for claim in json.loads((ROOT / "perf" / "claims.json").read_text())["claims"]:
        print("\n".join(rows(claim, measure(claim, folder))), flush=True)


if __name__ == "__main__":
    main()
