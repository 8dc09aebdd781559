# SPDX-License-Identifier: MIT
"""`isobit-perf counts A B`: what no noise can hide, executed instructions and the hot loops.

Two parts. Instructions of one call of each benchmark: scalar and AVX2 by callgrind, NEON by QEMU
where both sides are build folders with a build for aarch64 in them. And what the hottest loop of
each kernel function has in it, for AVX2, AVX-512 and NEON, from the disassembly: also for a CPU
that is not at hand.
"""
import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from . import accepted, build, callgrind, emulated, library, mca, schema
from .callgrind import Count
from .errors import Exit, PerfError
from .loops import Loop, Signature, hot_loops

THRESHOLD = 0.005
ARM_LIBRARY = "aarch64/lib/libisobit.so"  # in a build folder that has a build for aarch64 in it
# One call of each takes at most some ten million instructions.
FEW = (r"^((linear|gemm|gemm_bt)/(63x65x67|64x64x64|16x16x16|1x512x512)|gemv(_t)?/512x512|"
       r"softmax/512x512|(add_)?(layer|rms)norm/128x512|attention(_causal)?/B1H8S128d64|"
       r"attention_decode/B1H8K512d64|(gelu_erf|gelu_tanh|silu|relu)/128x512|embed/512x512)/")
# A CPU for the cycles of a changed loop; those of mca.py, of which it shows all.
CPUS = {"avx2": "znver3", "avx512": "sapphirerapids", "neon": "neoverse-n1"}
COLUMNS = ("FMAs", "instructions", "loads", "stores", "shuffles", "spills", "other stack")


@dataclass(frozen=True)
class Hot:
    """The hottest loop of a function in A and in B."""

    isa: str
    function: str
    a: Signature | None
    b: Signature | None
    spills: tuple[int, int]  # of all its loops with multiply-adds (without: of all)
    verdict: Literal["REGRESSION", "CHANGED", "SAME"]
    why: str = ""
    cycles: tuple[float | None, float | None] = (None, None)


def _spills(loops: Sequence[Loop]) -> int:
    fused = [loop for loop in loops if loop.signature.fmas]
    return sum(loop.signature.spills for loop in fused or loops)


def compare_function(isa: str, name: str, a: Sequence[Loop], b: Sequence[Loop]) -> Hot:
    first = a[0].signature if a else None
    second = b[0].signature if b else None
    spills = _spills(a), _spills(b)
    reasons = []
    if spills[1] > spills[0]:
        reasons.append(f"new spills: {spills[0]} -> {spills[1]} in its loops")
    if first is None or second is None:
        reasons.append("no loop in " + ("A" if first is None else "B"))
    elif second.fmas < first.fmas:
        reasons.append("fewer FMAs an iteration")
    micro_kernel = any(s is not None and s.fmas for s in (first, second))
    if spills[1] > spills[0] and micro_kernel:
        return Hot(isa, name, first, second, spills, "REGRESSION", "; ".join(reasons))
    if first == second and spills[0] == spills[1]:
        return Hot(isa, name, first, second, spills, "SAME")
    return Hot(isa, name, first, second, spills, "CHANGED", "; ".join(reasons))


def _cycles(program: str | None, isa: str, loops: Sequence[Loop]) -> float | None:
    if program is None or not loops:
        return None
    try:
        return mca.Simulator(program, isa).cycles(CPUS[isa], loops[0])
    except PerfError as why:  # an older llvm-mca
        print(f"isobit-perf: {why}", file=sys.stderr)
        return None


def compare_loops(a: Path, b: Path, program: str | None) -> list[Hot]:
    """All kernel functions of two libraries; cycles for those that differ, by llvm-mca."""
    loops_a, loops_b = hot_loops(str(a)), hot_loops(str(b))
    found = []
    for isa in sorted({*loops_a, *loops_b}):
        functions_a, functions_b = loops_a.get(isa, {}), loops_b.get(isa, {})
        for name in sorted({*functions_a, *functions_b}):
            both = functions_a.get(name, []), functions_b.get(name, [])
            hot = compare_function(isa, name, *both)
            if hot.verdict != "SAME":
                cycles = _cycles(program, isa, both[0]), _cycles(program, isa, both[1])
                hot = replace(hot, cycles=cycles)
            found.append(hot)
    return found


def _arrow(a: object, b: object) -> str:
    return str(a) if a == b else f"{a} → {b}"


def loops_table(found: Sequence[Hot], everything: bool) -> list[str]:
    lines = ["## Hot loops", ""]
    for isa in dict.fromkeys(hot.isa for hot in found):
        of = [hot for hot in found if hot.isa == isa]
        same = sum(hot.verdict == "SAME" for hot in of)
        lines.append(f"{isa}: {len(of)} functions, {same} with the same loop")
    shown = [hot for hot in found if everything or hot.verdict != "SAME"]
    if shown:
        lines += ["", f"| set | function | {' | '.join(COLUMNS)} | cycles | verdict |",
                  "|---|---|" + "--:|" * (len(COLUMNS) + 1) + "---|"]
    for hot in shown:
        cells = []
        for key in ("fmas", "instructions", "loads", "stores", "shuffles", "spills", "stack"):
            values = [getattr(s, key) if s else "–" for s in (hot.a, hot.b)]
            cells.append(_arrow(*(hot.spills if key == "spills" else values)))
        cycles = [f"{c:.2f}" if c is not None else "–" for c in hot.cycles]
        lines.append(f"| {hot.isa} | {hot.function} | {' | '.join(cells)} | {_arrow(*cycles)} "
                     f"| {hot.verdict}{': ' if hot.why else ''}{hot.why} |")
    return lines


def counts_table(found: Sequence[Count]) -> list[str]:
    lines = ["## Instructions", "", "| benchmark | A | B | change | verdict |",
             "|---|--:|--:|--:|---|"]
    for c in found:
        change = "–" if c.change is None else f"{100 * c.change:+.2f} %"
        lines.append(f"| {c.bench} | {c.a or '–'} | {c.b or '–'} | {change} "
                     f"| {c.verdict}{': ' if c.why else ''}{c.why} |")
    return lines


def status(counted: Sequence[Count], hot: Sequence[Hot], strict: bool,
           wanted: Mapping[str, str] | None = None) -> Exit:
    """wanted: regressions that a commit accepts, by benchmark or SET/FUNCTION of a loop."""
    said = [(str(c.verdict), c.bench) for c in counted]
    said += [(str(h.verdict), f"{h.isa}/{h.function}") for h in hot]
    verdicts = {"ACCEPTED" if verdict == "REGRESSION" and accepted.reason(wanted or {}, name)
                else verdict for verdict, name in said}
    if "REGRESSION" in verdicts:
        return Exit.REGRESSION
    if "ERROR" in verdicts:
        return Exit.TROUBLE
    if not verdicts - {"SKIPPED"}:
        return Exit.SKIP
    return Exit.INCONCLUSIVE if strict and "INCONCLUSIVE" in verdicts else Exit.OK


def pairs(a: Path, b: Path) -> list[tuple[Path, Path]]:
    """The libraries, and those of the builds for aarch64 inside both build folders."""
    found = [(a, b)]
    arm = [side.parents[1] / ARM_LIBRARY for side in (a, b) if side.parent.name == "lib"]
    if len(arm) == 2 and all(path.is_file() for path in arm):
        found.append((arm[0], arm[1]))
    return found


def percent(text: str) -> float:
    m = re.fullmatch(r"(\d+(?:\.\d+)?) ?%?", text)
    if m is None or not 0 < float(m.group(1)) < 100:
        raise argparse.ArgumentTypeError(f"'{text}' is no percentage")
    return float(m.group(1)) / 100


def pattern(text: str) -> "re.Pattern[str]":
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from None


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "counts", help="exact counts of instructions, and the hot loops", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 1 more instructions than the threshold allows, or a loop with "
               "multiply-adds\nkeeps vectors on the stack that it did not; 3 counts are not "
               "reproducible (--strict);\n77 nothing could be counted.")
    parser.add_argument("a", metavar="A", help="build folder, libisobit.so or git revision")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--filter", type=pattern, metavar="RE", default=pattern(FEW),
                        help="benchmarks whose instructions are counted (short ones)")
    parser.add_argument("--threshold", type=percent, metavar="PERCENT", default=THRESHOLD,
                        help="instructions that may be added (0.5%%)")
    parser.add_argument("--only", choices=("instructions", "loops"), help="one of the two parts")
    parser.add_argument("--all", action="store_true", help="show the loops that are the same")
    parser.add_argument("--program", metavar="FILE", help="isobit_ab (that of this tree's build)")
    parser.add_argument("--arm-program", metavar="FILE",
                        help="isobit_ab for aarch64 (build/aarch64/bin of this tree)")
    parser.add_argument("--cache", metavar="DIR", help="libraries of revisions are kept there")
    parser.add_argument("--strict", action="store_true", help="fail if counts do not repeat")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the result as JSON")


def count_all(args: argparse.Namespace, a: Path, b: Path) -> tuple[list[Count], str]:
    """The counts, and why there are none."""
    why = callgrind.missing()
    if why is not None:
        return [], why
    try:
        program = Path(library.find_program(args.program))
    except PerfError as error:
        return [], str(error)
    names = [name for name in callgrind.benches(str(program)) if args.filter.search(name)]
    if not names:
        return [], f"no benchmark of scalar or AVX2 with one thread matches {args.filter.pattern}"
    if not callgrind.fixed_addresses():
        print("isobit-perf: setarch -R is forbidden here; addresses differ from run to run",
              file=sys.stderr)
    found = []
    for one in callgrind.count(program, a, b, names, args.threshold):
        found.append(one)
        print(f"[{len(found)}/{len(names)}] {one.bench} {one.verdict}", file=sys.stderr)
    return found, ""


def count_arm(args: argparse.Namespace, a: Path, b: Path) -> tuple[list[Count], str]:
    """The same of NEON, in an emulator."""
    program = Path(args.arm_program or mca.ROOT / "build" / "aarch64" / "bin" / "isobit_ab")
    why = emulated.missing(program)
    if why is not None:
        return [], why
    names = [name for name in emulated.benches(program) if args.filter.search(name)]
    with emulated.counter() as once:
        return list(callgrind.count(program, a, b, names, args.threshold, once)), ""


def main(args: argparse.Namespace) -> int:
    cache = Path(args.cache) if args.cache else build.default_cache()
    sides = [build.resolve(text, mca.ROOT, cache) for text in (args.a, args.b)]
    a, b = (side.path for side in sides)
    hot: list[Hot] = []
    counted: list[Count] = []
    skipped: list[str] = []
    if args.only != "instructions":
        program = mca.find_mca()
        for pair in pairs(a, b):
            try:
                found = compare_loops(*pair, program)
                hot += found
                if not found:
                    skipped.append(f"hot loops: no kernels of {', '.join(CPUS)} in {pair[0]}")
            except PerfError as why:
                if why.status != Exit.SKIP:
                    raise
                skipped.append(f"hot loops: {why}")
    if args.only != "loops":
        counted, reason = count_all(args, a, b)
        if reason:
            skipped.append(f"instructions: {reason}")
        for pair in pairs(a, b)[1:]:
            more, reason = count_arm(args, *pair)
            counted += more
            if reason:
                skipped.append(f"instructions of NEON: {reason}")
    wanted = accepted.trailers(mca.ROOT, sides[0].side.commit, sides[1].side.commit)
    code = status(counted, hot, args.strict, wanted)
    if hot:
        print("\n".join(loops_table(hot, args.all)) + "\n")
    if counted:
        print("\n".join(counts_table(counted)) + "\n")
    for name, reason in wanted.items():
        print(f"{name}: accepted: {reason}")
    for text in skipped:
        print(f"isobit-perf: SKIPPED {text}", file=sys.stderr)
    if args.output is not None:
        schema.write(args.output, {
            "v": 1, "kind": "counts", "a": asdict(sides[0].side), "b": asdict(sides[1].side),
            "threshold": args.threshold, "verdict": code.name, "skipped": skipped,
            "instructions": [asdict(c) for c in counted], "loops": [asdict(h) for h in hot]})
    return code
