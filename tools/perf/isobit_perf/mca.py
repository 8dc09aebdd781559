# SPDX-License-Identifier: MIT
"""`isobit-perf mca`: what the inner loops can reach on CPUs that are not at hand.

Compiles the kernels as the build does, takes the hot loops out of the objects, and lets llvm-mca
compute how many cycles an iteration takes on each CPU.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .errors import Exit, PerfError
from .loops import Loop, hot_loops

ROOT = Path(__file__).resolve().parents[3]
FLAGS = ("-std=c11", "-O3", "-DNDEBUG", "-ffp-contract=off", "-fno-math-errno", "-fPIC",
         "-fvisibility=hidden")
LEAST = 95.0  # per cent of the FMA units, for the tile
TILE = "gemm tile"
HEAD = """\
| set | CPU | loop | FMAs | instructions | cycles | FMAs per cycle | of the FMA units \
| vectors on the stack | other stack |
|---|---|---|--:|--:|--:|--:|--:|--:|--:|"""


@dataclass(frozen=True)
class Set:
    """An instruction set: its CPUs, the compiler's options, and an FMA on register {n}."""

    triple: str
    cpus: tuple[str, ...]
    options: tuple[str, ...]
    tile: int  # rows of the widest tile
    direct: int
    chains: int  # independent FMAs that fill the units
    fma: str


SETS = {
    "avx512": Set("x86_64-linux-gnu", ("skylake-avx512", "icelake-server", "sapphirerapids",
                                       "znver4"),
                  ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma",
                   "-mprefer-vector-width=512"), 14, 8, 24, "vfmadd231ps %zmm30, %zmm31, %zmm{n}"),
    "avx2": Set("x86_64-linux-gnu", ("haswell", "znver3", "alderlake"), ("-mavx2", "-mfma"),
                6, 6, 14, "vfmadd231ps %ymm14, %ymm15, %ymm{n}"),
    "neon": Set("aarch64-linux-gnu", ("cortex-a76", "neoverse-n1", "neoverse-v1", "neoverse-v2",
                                      "apple-m1"),
                ("-fno-schedule-insns",),  # as kernels/CMakeLists.txt
                6, 6, 24, "fmla v{n}.4s, v30.4s, v31.s[0]"),
}
# Title of a row -> the functions; compilers may inline one into another that calls it.
ROWS = (
    (TILE, "gemm_rows_{tile}"),
    ("A in place", "direct_rows_{direct}"),
    ("B called, too", "gemm_linear"),
    ("B packed, too", "gemm_packing|packing_l[12]"),
    ("product of one row", "gemm_rows_1"),
    ("attention: exp", "columns_block"),
    ("softmax: exp", "softmax"),
    ("layernorm", "layernorm"),
    ("gemv", "gemv|gemv_rows"),
    ("FMA peak", "fma_peak"),
)
# Where the model of a CPU is known to be wrong: the number of a remark below the table.
WRONG = {
    ("avx512", "skylake-avx512"): 1,
    ("avx512", "icelake-server"): 2,
    ("avx512", "sapphirerapids"): 2,
    ("avx512", "znver4"): 3,
    ("neon", "cortex-a76"): 4,
    ("neon", "apple-m1"): 5,
}
# Known uses of the stack by vectors; more are a failure. (6) is their remark.
KNOWN = {("avx2", "attention: exp"): 4, ("avx2", "softmax: exp"): 28}
REMARKS = """
1. The model lets each load of a vector use an ALU port as well; the CPU has ports of their own for
   loads. Counted by hand the tile needs 14 cycles: 28 FMAs on two ports, 16 loads on two others.
2. The model has one unit for FMAs of 512 bits. Most of these CPUs have two, as skylake-avx512.
3. The model lets broadcasts from memory wait for the FMA units. The CPU does not: the tile was
   measured at 97 % (docs/measured/zen4.md).
4. LLVM uses its model of Cortex-A57, with one FMA a cycle. Neoverse N1 is the server variant of
   Cortex-A76 and has a model of its own.
5. LLVM uses its model of Cyclone, with three FMAs a cycle; M1 has four units.
6. Constants and sums of exp for which AVX2's 16 registers do not suffice. More is a failure."""


def find_mca() -> str | None:
    """MCA, or the newest llvm-mca of Debian's packages."""
    names = [os.environ["MCA"]] if os.environ.get("MCA") else ["llvm-mca-19", "llvm-mca-14"]
    return next((name for name in names if shutil.which(name)), None)


class Simulator:
    """llvm-mca for one instruction set."""

    def __init__(self, program: str, isa: str) -> None:
        self.program, self.set = program, SETS[isa]
        self.peak = cache(self._peak)

    def _figure(self, name: str, cpu: str, text: Sequence[str], iterations: int = 100) -> float:
        done = subprocess.run(
            [self.program, f"-mtriple={self.set.triple}", f"-mcpu={cpu}",
             f"-iterations={iterations}"], input="\n".join(text) + "\n", text=True,
            capture_output=True, check=False)
        found = re.search(rf"^{name}: *([0-9.]+)", done.stdout, re.MULTILINE)
        if done.returncode or found is None or float(found.group(1)) <= 0:
            why = " / ".join(done.stderr.strip().splitlines()[:3])
            raise PerfError(f"{self.program} cannot read a loop for {cpu}: {why or 'no figures'}")
        return float(found.group(1))

    def cycles(self, cpu: str, loop: Loop) -> float:
        """Of one iteration, the start and the end of the loop left out."""
        few, many = (self._figure("Total Cycles", cpu, loop.text, n) for n in (100, 300))
        return (many - few) / 200

    def _peak(self, cpu: str) -> float:
        """Cycles for one FMA as the execution units allow, whatever its latency."""
        text = [self.set.fma.format(n=n) for n in range(self.set.chains)]
        return self._figure("Block RThroughput", cpu, text) / self.set.chains


def compile_kernels(isa: str, folder: Path) -> Path:
    """The object with the kernels of a set. CC and CC_AARCH64 name the compilers."""
    if isa == "neon":
        compiler = shlex.split(os.environ.get("CC_AARCH64", "aarch64-linux-gnu-gcc"))
        include = ["-isystem", str(arm_include())]
    else:
        compiler, include = shlex.split(os.environ.get("CC", "gcc")), []
    if shutil.which(compiler[0]) is None:
        raise PerfError(f"{compiler[0]} is missing", Exit.SKIP)
    made = folder / f"{isa}.o"
    command = [*compiler, *SETS[isa].options, *include, *FLAGS, f"-I{ROOT / 'kernels'}", "-c",
               "-o", str(made), str(ROOT / "kernels" / isa / f"{isa}.c")]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        raise PerfError(f"{shlex.join(command)}: {done.stderr.strip()[:500]}")
    return made


def arm_include() -> Path:
    """The folder with an Arm sleef.h (./run test aarch64 unpacks one)."""
    default = ROOT / "build/sysroot-arm64/usr/include/aarch64-linux-gnu"
    return Path(os.environ.get("ARM_INCLUDE", default))


def pick(functions: dict[str, list[Loop]], pattern: str) -> Loop | None:
    """Of the functions that match, the loop with the most multiply-adds; of equals the shortest."""
    found = [loop for name, loops in functions.items() if re.fullmatch(pattern, name)
             for loop in loops if loop.signature.fmas]
    return min(found, key=lambda loop: (loop.order(), loop.function)) if found else None


def rows(isa: str, functions: dict[str, list[Loop]], program: str,
         bad: list[str]) -> Iterator[str]:
    """Lines of the table; what fails is added to `bad`."""
    it = SETS[isa]
    simulator = Simulator(program, isa)
    for title, pattern in ROWS:
        loop = pick(functions, pattern.format(tile=it.tile, direct=it.direct))
        if loop is None:
            raise PerfError(f"{isa} has no loop in {pattern}", Exit.REGRESSION)
        s = loop.signature
        known = KNOWN.get((isa, title), 0)
        for cpu in it.cpus:
            used = round(simulator.cycles(cpu, loop), 2)
            percent = 100 * s.fmas / used * simulator.peak(cpu)
            why = WRONG.get((isa, cpu))
            yield (f"| {isa} | {cpu}{f' ({why})' if why else ''} | {title} | {s.fmas} "
                   f"| {s.instructions} | {used:.2f} | {s.fmas / used:.2f} | {percent:.1f} % "
                   f"| {s.spills}{' (6)' if known and s.spills else ''} | {s.stack} |")
            if s.spills > known or (title == TILE and not why and percent < LEAST):
                bad.append(f"{isa} on {cpu}, {title}: {percent:.1f} %, "
                           f"{s.spills} vectors on the stack")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "mca", help="cycles of the hot loops on other cores", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status 1: a loop uses the stack for vectors or is not found, or the tile of a "
               "matrix product\nstays below 95 % of the FMA units where the model is believed. "
               "CC, CC_AARCH64, MCA and\nARM_INCLUDE (a folder with an Arm sleef.h) say what else "
               "to use.")
    parser.add_argument("sets", nargs="*", metavar="SET", help="avx512, avx2, neon (all)")


def main(args: argparse.Namespace) -> int:
    for isa in args.sets:
        if isa not in SETS:
            raise PerfError(f"there is no set '{isa}'; the sets are avx2, avx512, neon")
    program = find_mca()
    if program is None:
        raise PerfError("llvm-mca is missing; install llvm-19, or set MCA", Exit.SKIP)
    bad: list[str] = []
    done = 0
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for isa in args.sets or SETS:
            if isa == "neon" and not (arm_include() / "sleef.h").is_file():
                print(f"isobit-perf: neon SKIPPED: no sleef.h in {arm_include()} "
                      "(./run test aarch64 puts it there)", file=sys.stderr)
                continue
            loops = hot_loops(str(compile_kernels(isa, Path(folder)))).get(isa, {})
            for line in rows(isa, loops, program, bad):
                print(line, flush=True)
            done += 1
    print(REMARKS)
    if bad:
        print(f"isobit-perf: vectors on the stack, or the gemm tile below {LEAST:.0f} % of the "
              "FMA units:", *bad, sep="\n", file=sys.stderr)
        return Exit.REGRESSION
    return Exit.OK if done else Exit.SKIP
