# SPDX-License-Identifier: MIT
"""Exact counts of executed instructions, by valgrind's callgrind.

The program is isobit_ab: `--count NAME --a LIB` makes one call of a benchmark inside the function
isobit_ab_counted. Addresses, environment and the lengths of the paths are the same for A and B.
Valgrind knows no AVX-512 and runs one thread at a time: so scalar and AVX2, with one thread.
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .errors import Exit, PerfError
from .library import list_names

SETS = ("scalar", "avx2")
COUNTED = "isobit_ab_counted"
SECONDS = 600.0  # for one call under valgrind

# Program, library, benchmark, folder -> instructions.
Once = Callable[[Path, str, str, Path], int]
Verdict = Literal["REGRESSION", "FASTER", "SAME", "INCONCLUSIVE", "ERROR", "SKIPPED"]


@dataclass(frozen=True)
class Count:
    """Instructions of one call of a benchmark. INCONCLUSIVE: two runs did not agree."""

    bench: str
    a: int | None
    b: int | None
    change: float | None  # b/a - 1
    verdict: Verdict
    why: str = ""


class Skipped(Exception):
    """The benchmark needs an instruction set that is not there."""


def missing() -> str | None:
    """Why nothing can be counted here."""
    for name, package in (("valgrind", "valgrind"), ("setarch", "util-linux")):
        if shutil.which(name) is None:
            return f"{name} is missing (package {package})"
    return None


def _environment() -> dict[str, str]:
    fixed = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "LD_BIND_NOW": "1"}
    if "LD_LIBRARY_PATH" in os.environ:  # where SLEEF lies; the same for both
        fixed["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return fixed


def fixed_addresses() -> list[str]:
    """The prefix that turns address randomisation off; empty where the system forbids it."""
    prefix = ["setarch", "-R"]
    allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if allowed else []


def read_total(text: str, name: str) -> int:
    """The instructions in a file that callgrind wrote."""
    events = re.search(r"^events: (\S+)", text, re.MULTILINE)
    total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
    if events is None or events.group(1) != "Ir" or total is None:
        raise PerfError(f"{name}: is no complete output of callgrind that counts Ir")
    if int(total.group(1)) == 0:
        raise PerfError(f"{name}: the program has never entered {COUNTED}")
    return int(total.group(1))


def count_once(program: Path, library: str, bench: str, folder: Path) -> int:
    """Instructions of one call; `library` is relative to `folder`."""
    out = folder / "callgrind.out"
    out.unlink(missing_ok=True)
    execute([*fixed_addresses(), "valgrind", "--tool=callgrind", "--quiet",
             f"--toggle-collect={COUNTED}", f"--callgrind-out-file={out}", str(program),
             "--count", bench, "--a", library], folder)
    return read_total(out.read_text(errors="replace") if out.exists() else "", bench)


def execute(command: Sequence[str], folder: Path) -> None:
    """Runs a command that counts; an exit status other than 0 is Skipped or an error."""
    try:
        done = subprocess.run(command, env=_environment(), cwd=folder, capture_output=True,
                              text=True, check=False, timeout=SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        raise PerfError(f"not ready after {SECONDS:.0f} s") from None
    lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines()
    why = lines[-1] if lines else ""
    if done.returncode == Exit.SKIP:
        raise Skipped(why or "its instruction set is not there")
    if done.returncode < 0:
        raise PerfError(f"killed by {signal.Signals(-done.returncode).name}: {why}")
    if done.returncode:
        raise PerfError(f"exit status {done.returncode}: {why}")


def judge(bench: str, a: Sequence[int], b: Sequence[int], threshold: float) -> Count:
    """The verdict over the counts of two runs of each library."""
    if len(set(a)) > 1 or len(set(b)) > 1:
        return Count(bench, a[0], b[0], None, "INCONCLUSIVE",
                     f"not reproducible: A {' '.join(map(str, a))}, B {' '.join(map(str, b))}")
    change = b[0] / a[0] - 1
    verdict: Verdict = "SAME"
    if abs(change) > threshold:
        verdict = "REGRESSION" if change > 0 else "FASTER"
    return Count(bench, a[0], b[0], change, verdict)


def benches(program: str) -> list[str]:
    """The names that can be counted, as the program lists them."""
    names = []
    for isa in SETS:
        try:
            names += [n for n in list_names(program, isa) if n.endswith(f"/{isa}/t1")]
        except PerfError as error:
            if error.status != Exit.SKIP:
                raise
    return names


def count(program: Path, a: Path, b: Path, names: Sequence[str], threshold: float,
          once: Once | None = None) -> Iterator[Count]:
    """Counts each benchmark twice with A and twice with B; `once` is count_once."""
    once = once or count_once
    with tempfile.TemporaryDirectory(prefix="isobit-perf.") as made:
        folder = Path(made)
        sides = []
        for side, library in (("a", a), ("b", b)):  # paths of one length: the same stack
            (folder / side).mkdir()
            shutil.copyfile(library, folder / side / "libisobit.so")
            sides.append(f"./{side}/libisobit.so")
        for name in names:
            try:
                # A B A B: what changes with time shows as counts that do not repeat
                runs = [once(program.resolve(), side, name, folder)
                        for side in 2 * sides]
                yield judge(name, runs[::2], runs[1::2], threshold)
            except Skipped as why:
                yield Count(name, None, None, None, "SKIPPED", str(why))
            except PerfError as why:
                yield Count(name, None, None, None, "ERROR", str(why))
