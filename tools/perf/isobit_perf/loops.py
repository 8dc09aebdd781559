# SPDX-License-Identifier: MIT
"""The innermost loops of compiled kernels, and what is in them.

objdump disassembles a library or an object that has its local symbols. A loop is a straight piece
of code that ends with a jump to its own first instruction, wherever it is entered.
"""
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, fields

from .errors import Exit, PerfError

SETS = {"x86_64": ("avx2", "avx512"), "aarch64": ("neon",)}
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of the ELF header


@dataclass(frozen=True)
class Patterns:
    """How the disassembly of an architecture is read. Memory operands have a bracket."""

    jump: re.Pattern[str]
    fma: re.Pattern[str]
    vector: re.Pattern[str]
    shuffle: re.Pattern[str]
    stack: re.Pattern[str]
    frame: re.Pattern[str]  # the frame pointer, which counts as the stack where `has_frame` matches
    has_frame: re.Pattern[str]
    comment: re.Pattern[str]


PATTERNS = {
    "x86_64": Patterns(
        jump=re.compile(r"(j\w+|call\w*|ret\w*|loop\w*)$"),
        fma=re.compile(r"vfn?m(add|sub)\d+[ps][sd]$"),
        vector=re.compile(r"%[xyz]mm\d"),
        shuffle=re.compile(
            r"v?(p?shuf|p?unpck|perm|p?broadcast|p?insr?|p?extr|p?align|p?compress|p?expand"
            r"|movddup|movs[lh]dup|movhlps|movlhps|packs|packus|ps[lr]ldq)"),
        stack=re.compile(r"\(%[re]sp"),
        frame=re.compile(r"\(%[re]bp"),
        has_frame=re.compile(r"^mov +%rsp,%rbp$"),
        comment=re.compile(r"\s*#.*")),
    "aarch64": Patterns(
        jump=re.compile(r"(b|bl|br|blr|ret|b\.\w+|cbn?z|tbn?z)$"),
        fma=re.compile(r"(fml[as]|fn?m(add|sub))$"),
        vector=re.compile(r"\b[qvds]\d"),
        shuffle=re.compile(r"(zip[12]|uzp[12]|trn[12]|ext|tbl|tbx|dup|ins|rev(16|32|64))$"),
        stack=re.compile(r"\[(sp|x29)"),
        frame=re.compile(r"\[x29"),
        has_frame=re.compile(r"^mov +x29, sp$"),
        comment=re.compile(r"\s*//.*")),
}
# x86-64: memory as the last operand is written, but by these; some of the rest read it as well.
READS_LAST = re.compile(r"(cmp(?!xchg)|test|vp?test|v?u?comis|i?mul|i?div|push|bt[bwlq]?$)")
ONLY_WRITES = re.compile(r"(v|mov|set|pop|stos|stmxcsr)")
NO_ACCESS = re.compile(r"(lea|prefetch)")
IN_MEMORY_NO_SHUFFLE = re.compile(r"v?p?(broadcast|ins|extr)")
PREFIXES = re.compile(r"(?:(?:repz?|repnz|bnd|notrack|lock|data16|addr32|cs|ds|es|ss) +)+(?=[a-z])")
LANE_MOVE = re.compile(r"\.[bhsd]\[")


@dataclass(frozen=True)
class Signature:
    """What one iteration has. A register spilled or reloaded counts as a store or load, too."""

    instructions: int = 0
    fmas: int = 0
    loads: int = 0
    stores: int = 0
    shuffles: int = 0
    spills: int = 0  # uses of the stack by vectors
    stack: int = 0  # other uses of the stack

    def changed(self, other: "Signature") -> list[str]:
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name)]


@dataclass(frozen=True)
class Instruction:
    address: int
    mnemonic: str
    operands: str
    target: int | None = None  # of a jump


@dataclass(frozen=True)
class Function:
    name: str  # without what the compiler appends to the name of a clone
    source: str  # of the compilation: "avx2.c"
    code: tuple[Instruction, ...]


@dataclass(frozen=True)
class Loop:
    function: str
    signature: Signature
    vectors: int  # instructions with a vector register
    text: tuple[str, ...]  # for an assembler

    def order(self) -> tuple[int, int]:
        """The hottest first: most multiply-adds, then shortest; without, most vectors."""
        s = self.signature
        return (-s.fmas, s.instructions if s.fmas else -self.vectors)


def architecture(path: str) -> str:
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError as error:
        raise PerfError(f"{path}: {error.strerror}") from None
    if len(head) < 20 or head[:4] != b"\x7fELF":
        raise PerfError(f"{path}: is no ELF file")
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    if number not in MACHINES:
        raise PerfError(f"{path}: ELF machine {number} is neither x86-64 nor aarch64")
    return MACHINES[number]


def objdump_for(arch: str) -> str:
    name = os.environ.get("OBJDUMP", "objdump")
    if arch != os.uname().machine:
        name = os.environ.get("OBJDUMP_" + arch.upper(), f"{arch}-linux-gnu-objdump")
    if shutil.which(name) is None:
        package = "" if arch == os.uname().machine else f"-{arch.replace('_', '-')}-linux-gnu"
        raise PerfError(f"{name} is missing (package binutils{package})", Exit.SKIP)
    return name


def disassemble(path: str) -> tuple[str, str, str]:
    """The architecture, and what objdump prints as symbols and as code."""
    arch = architecture(path)
    texts = []
    for options in (["-t"], ["-d", "-w", "--no-show-raw-insn"]):
        done = subprocess.run([objdump_for(arch), *options, path], text=True, check=False,
                              capture_output=True, env={**os.environ, "LC_ALL": "C"})
        if done.returncode:
            raise PerfError(f"{path}: objdump: {done.stderr.strip() or done.returncode}")
        texts.append(done.stdout)
    return arch, texts[0], texts[1]


def sources(symbols: str) -> dict[tuple[str, int], str]:
    """(section, address) of each local function -> the file it was compiled from."""
    found = {}
    source = ""
    for line in symbols.splitlines():
        m = re.match(r"([0-9a-f]+) (.{7}) (\S+)\t[0-9a-f]+\s*(.*)$", line)
        if m is None:
            continue
        address, flags, section, name = m.groups()
        if "f" in flags:
            source = name.split("/")[-1]
        elif "F" in flags and flags[0] == "l":
            found[section, int(address, 16)] = source
    return found


def instruction(line: str, patterns: Patterns) -> Instruction | None:
    """Of one line of the disassembly; None for what pads."""
    m = re.match(r"\s*([0-9a-f]+):\s+(\S.*?)\s*$", line)
    if m is None:
        return None
    text = PREFIXES.sub("", patterns.comment.sub("", m.group(2)))
    mnemonic, _, operands = text.replace("\t", " ").partition(" ")
    operands = operands.strip()
    if mnemonic.startswith("nop") or text.split() == ["xchg", "%ax,%ax"]:
        return None
    target = None
    if patterns.jump.match(mnemonic):
        to = re.search(r"\b([0-9a-f]+) <[^>]*>$", operands)
        target = int(to.group(1), 16) if to else None
    return Instruction(int(m.group(1), 16), mnemonic,
                       re.sub(r"\s*<[^>]*>$", "", operands), target)


def parse(arch: str, symbols: str, code: str) -> list[Function]:
    patterns = PATTERNS[arch]
    where = sources(symbols)
    found = []
    section = ""
    body: list[Instruction] = []
    for line in code.splitlines():
        if line.startswith("Disassembly of section "):
            section = line.removeprefix("Disassembly of section ").rstrip(":")
            continue
        m = re.match(r"([0-9a-f]+) <(.+)>:$", line)
        if m is not None:
            body = []
            name = m.group(2).partition(".")[0]
            found.append((name, where.get((section, int(m.group(1), 16)), ""), body))
        else:
            one = instruction(line, patterns)
            if one is not None:
                body.append(one)
    return [Function(name, source, tuple(code)) for name, source, code in found]


def accesses(arch: str, one: Instruction) -> tuple[bool, bool]:
    """Does it read memory, does it write it?"""
    if arch == "aarch64":
        return one.mnemonic.startswith("ld"), one.mnemonic.startswith("st")
    operands = re.split(r",(?![^(]*\))", one.operands)
    in_memory = [bool(re.match(r"[^$]*\(|(%\ws:)?0x[0-9a-f]+$", o.strip())) for o in operands]
    if not any(in_memory) or NO_ACCESS.match(one.mnemonic):
        return False, False
    if not in_memory[-1] or READS_LAST.match(one.mnemonic):
        return True, False
    return not ONLY_WRITES.match(one.mnemonic), True


def shuffles(arch: str, one: Instruction) -> bool:
    """Moves elements between lanes. On x86-64 a part that goes to or comes from memory does not."""
    if arch == "aarch64" and one.mnemonic == "mov":
        return bool(LANE_MOVE.search(one.operands))
    if not PATTERNS[arch].shuffle.match(one.mnemonic):
        return False
    return not (IN_MEMORY_NO_SHUFFLE.match(one.mnemonic) and any(accesses(arch, one)))


def inspect(arch: str, code: tuple[Instruction, ...], frame: bool) -> tuple[Signature, int]:
    """The signature of straight code, and how many instructions have a vector register."""
    p = PATTERNS[arch]
    vector = [bool(p.vector.search(i.operands)) for i in code]
    stack = [bool(p.stack.search(i.operands) or (frame and p.frame.search(i.operands)))
             for i in code]
    access = [accesses(arch, i) for i in code]
    return Signature(
        instructions=len(code), fmas=sum(bool(p.fma.match(i.mnemonic)) for i in code),
        loads=sum(reads for reads, _ in access), stores=sum(writes for _, writes in access),
        shuffles=sum(shuffles(arch, i) for i in code),
        spills=sum(s and v for s, v in zip(stack, vector)),
        stack=sum(s and not v for s, v in zip(stack, vector))), sum(vector)


def loops_of(arch: str, function: Function) -> Iterator[Loop]:
    """Its innermost loops that have vectors."""
    p = PATTERNS[arch]
    code = function.code
    frame = any(p.has_frame.match(f"{i.mnemonic} {i.operands}") for i in code)
    places = {one.address: i for i, one in enumerate(code)}
    straight = 0  # where the straight piece begins
    for end, last in enumerate(code):
        if not p.jump.match(last.mnemonic):
            continue
        start = places.get(last.target, -1) if last.target is not None else -1
        if straight <= start <= end:
            body = code[start:end + 1]
            signature, vectors = inspect(arch, body, frame)
            if vectors:
                before, comma, _ = last.operands.rpartition(",")
                text = [f"{i.mnemonic} {i.operands}" for i in body[:-1]]
                text.append(" ".join([last.mnemonic, *(f"{before}{comma}".split()), ".Lloop"]))
                yield Loop(function.name, signature, vectors, (".Lloop:", *text))
        straight = end + 1


def hot_loops(path: str, isa: str | None = None) -> dict[str, dict[str, list[Loop]]]:
    """Instruction set -> function -> its loops, the hottest first.

    The set is the name of the compilation (avx2.c), or `isa` for an object that has one only.
    """
    arch, symbols, code = disassemble(path)
    if not sources(symbols):
        raise PerfError(f"{path}: has no local symbols (stripped?); take the library of a build")
    found: dict[str, dict[str, list[Loop]]] = {}
    for function in parse(arch, symbols, code):
        name = isa or function.source.removesuffix(".c")
        if name in SETS[arch]:
            for loop in loops_of(arch, function):
                found.setdefault(name, {}).setdefault(function.name, []).append(loop)
    for functions in found.values():
        for loops in functions.values():
            loops.sort(key=Loop.order)
    return found
