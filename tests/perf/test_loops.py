# SPDX-License-Identifier: MIT
"""loops: each number of a signature, on texts of ours and on objects that a compiler makes."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from isobit_perf.errors import Exit, PerfError
from isobit_perf.loops import (Function, Loop, Signature, accesses, architecture, hot_loops,
                               instruction, loops_of, parse, shuffles, sources, PATTERNS)

CC = os.environ.get("CC", "gcc")
ARM = "aarch64-linux-gnu-gcc"
x86_only = pytest.mark.skipif(os.uname().machine != "x86_64", reason="needs an x86-64 compiler")


def read(arch: str, body: str, name: str = "f") -> list[Loop]:
    """The loops of one function, whose lines are numbered by 4 bytes from 0x1000 on."""
    lines = [f"    {0x1000 + 4 * i:x}:\t{line}" for i, line in enumerate(body.splitlines())]
    code = "\n".join(["Disassembly of section .text:", "", f"0000000000001000 <{name}>:", *lines])
    (function,) = parse(arch, "", code)
    return list(loops_of(arch, function))


def test_every_number_x86() -> None:
    (loop,) = read("x86_64", """vmovups (%rsi),%zmm0
vfmadd231ps 0x40(%rsi){1to16},%zmm0,%zmm1
vfnmsub213ps %zmm2,%zmm3,%zmm4
vmovaps %zmm1,-0x40(%rsp)
vaddps 0x40(%rsp,%rax,4),%zmm1,%zmm1        # spilled
mov    0x8(%rsp),%rax
vshufps $0x1,%zmm1,%zmm2,%zmm3
vbroadcastss (%rdi),%zmm5
vbroadcastss %xmm5,%zmm5
vmovups %zmm1,(%rdx)
nopw   0x0(%rax,%rax,1)
addl   $0x1,(%rcx)
cmpq   $0x1,(%rcx)
lea    0x8(%rcx),%rcx
prefetcht0 0x40(%rcx)
jne    1000 <f>""")
    # Loads: vmovups, the FMA's, the reload, mov, the broadcast, addl, cmpq. The nop only pads.
    assert loop.signature == Signature(15, 2, 7, 3, 2, 2, 1)
    assert loop.text[0] == ".Lloop:" and loop.text[-1] == "jne .Lloop"
    assert not any("#" in line or "nop" in line for line in loop.text)


def test_every_number_neon() -> None:
    (loop,) = read("aarch64", """ldp\tq0, q1, [x1], #32
fmla\tv2.4s, v0.4s, v1.s[0]
fmls\tv3.4s, v0.4s, v1.4s
fmadd\ts4, s5, s6, s4
str\tq2, [sp, #32]
ldr\tq7, [x29, #48]
ldr\tx9, [sp]
zip1\tv0.4s, v0.4s, v1.4s
mov\tv0.s[1], v1.s[2]
mov\tv0.16b, v1.16b
nop
prfm\tpldl1keep, [x1, #256]
st1\t{v0.4s-v3.4s}, [x2]
subs\tx0, x0, #0x1
b.ne\t1000 <f>  // b.any""")
    assert loop.signature == Signature(14, 3, 3, 2, 2, 2, 1)
    assert loop.text[-1] == "b.ne .Lloop"


def test_arm_branches_with_a_register() -> None:
    for jump in ("cbnz\tx0, 1000 <f>", "tbnz\tw0, #3, 1000 <f>"):
        (loop,) = read("aarch64", f"fadd\tv0.4s, v0.4s, v0.4s\n{jump}")
        assert loop.text[-1] == jump.replace("\t", " ").replace("1000 <f>", ".Lloop")


@pytest.mark.parametrize("text,expected", [
    ("mov %rax,(%rdi)", (False, True)), ("mov (%rdi),%rax", (True, False)),
    ("mov %fs:0x28,%rax", (True, False)), ("mov $0x28,%rax", (False, False)),
    ("add %rax,(%rdi)", (True, True)), ("cmpxchg %rax,(%rdi)", (True, True)),
    ("cmp %rax,(%rdi)", (True, False)), ("imul 0x8(%rdi),%rax", (True, False)),
    ("lea (%rdi),%rax", (False, False)), ("prefetchw (%rdi)", (False, False)),
    ("vmovups %zmm0,(%rdi){%k1}", (False, True)), ("vextractf128 $0x1,%ymm0,(%rdi)", (False, True)),
    ("vptest (%rdi),%ymm0", (True, False)), ("vgatherdps (%rax,%zmm1,4),%zmm0{%k1}", (True, False)),
    ("vmulps %zmm0,%zmm1,%zmm2", (False, False))])
def test_memory_of_x86(text: str, expected: tuple[bool, bool]) -> None:
    one = instruction(f"  10:\t{text}", PATTERNS["x86_64"])
    assert one is not None and accesses("x86_64", one) == expected


@pytest.mark.parametrize("text,expected", [
    ("vunpcklps %ymm0,%ymm1,%ymm2", True), ("vpermilps $0x1,(%rax),%ymm2", True),
    ("vperm2f128 $0x1,%ymm0,%ymm1,%ymm2", True), ("vinsertf128 $0x1,(%rax),%ymm0,%ymm1", False),
    ("vinsertf128 $0x1,%xmm2,%ymm0,%ymm1", True), ("vextractf32x8 $0x1,%zmm0,%ymm1", True),
    ("vextractf32x8 $0x1,%zmm0,(%rax)", False), ("vblendps $0x1,%ymm0,%ymm1,%ymm2", False),
    ("vmovaps %ymm0,%ymm1", False), ("vpsrld $0x1,%ymm0,%ymm1", False)])
def test_shuffles_of_x86(text: str, expected: bool) -> None:
    one = instruction(f"  10:\t{text}", PATTERNS["x86_64"])
    assert one is not None and shuffles("x86_64", one) == expected


def test_only_innermost_straight_loops_with_vectors_count() -> None:
    body = "vaddps %ymm0,%ymm1,%ymm1\n{}\njne 1000 <f>"
    assert len(read("x86_64", body.format("dec %rax"))) == 1
    assert read("x86_64", body.format("call 2000 <g>")) == []
    assert read("x86_64", body.format("je 1008 <f+0x8>")) == []
    assert read("x86_64", "dec %rax\njne 1000 <f>") == []  # no vectors
    assert read("x86_64", "vaddps %ymm0,%ymm1,%ymm1\njne 2000 <g>") == []  # leaves the function
    assert read("x86_64", "jne 1004 <f+0x4>\nvaddps %ymm0,%ymm1,%ymm1\njmp *%rax") == []
    inner = "vaddps %ymm0,%ymm1,%ymm1\njne 1000 <f>\nvmovaps %ymm1,(%rax)\njne 1000 <f>"
    assert [loop.signature.instructions for loop in read("x86_64", inner)] == [2]


def test_the_frame_pointer_is_the_stack_only_in_a_function_with_a_frame() -> None:
    loop = "vaddps -0x40(%rbp),%ymm1,%ymm1\njne {} <f>"
    assert read("x86_64", loop.format("1000"))[0].signature.spills == 0
    framed = read("x86_64", "mov    %rsp,%rbp\n" + loop.format("1004"))
    assert framed[0].signature.spills == 1


def test_clones_and_sources() -> None:
    symbols = """
0000000000000000 l    df *ABS*\t0000000000000000              /x/avx2.c
0000000000001000 l     F .text\t0000000000000010              f.part.0
0000000000000000 l    df *ABS*\t0000000000000000              avx512.c
0000000000002000 l     F .text\t0000000000000010              f
0000000000003000 g     F .text\t0000000000000010              open
"""
    assert sources(symbols) == {(".text", 0x1000): "avx2.c", (".text", 0x2000): "avx512.c"}
    code = ("Disassembly of section .text:\n0000000000001000 <f.part.0>:\n  1000:\tret\n"
            "0000000000002000 <f>:\n  2000:\tret\n")
    found = parse("x86_64", symbols, code)
    assert [(f.name, f.source) for f in found] == [("f", "avx2.c"), ("f", "avx512.c")]
    assert isinstance(found[0], Function)


TILE = r"""
#include <stddef.h>
#include <immintrin.h>
#define N %d
static __attribute__((noinline)) void tile(float *c, const float *a, const float *b, size_t k) {
    __m256 s[N];
    for (int i = 0; i < N; i++)
        s[i] = _mm256_loadu_ps(c + 8 * i);
    for (; k; k--, a += N, b += 8) {
        __m256 v = _mm256_loadu_ps(b);
#pragma GCC unroll 32
        for (int i = 0; i < N; i++)
            s[i] = _mm256_fmadd_ps(_mm256_set1_ps(a[i]), v, s[i]);
    }
    for (int i = 0; i < N; i++)
        _mm256_storeu_ps(c + 8 * i, s[i]);
}
void (*kernel)(float *, const float *, const float *, size_t) = tile;
"""


def build_avx2(folder: Path, rows: int) -> Path:
    """A library from avx2.c with a tile of so many rows: beyond 16 registers it must spill."""
    folder.mkdir()
    (folder / "avx2.c").write_text(TILE % rows)
    subprocess.run([CC, "-O3", "-mavx2", "-mfma", "-fPIC", "-shared", "-nostdlib", "-o",
                    str(folder / "lib.so"), str(folder / "avx2.c")], check=True)
    return folder / "lib.so"


@x86_only
def test_a_compiled_tile(tmp_path: Path) -> None:
    (loop,) = hot_loops(str(build_avx2(tmp_path / "a", 8)))["avx2"]["tile"]
    s = loop.signature
    assert (s.fmas, s.loads, s.stores, s.shuffles, s.spills, s.stack) == (8, 9, 0, 0, 0, 0)
    assert s.instructions > 8 + 8


@x86_only
def test_a_compiled_tile_with_a_forced_spill(tmp_path: Path) -> None:
    (loop, *_) = hot_loops(str(build_avx2(tmp_path / "a", 24)))["avx2"]["tile"]
    s = loop.signature
    assert s.fmas == 24
    assert s.spills >= 24 - 16 and s.stores > 0  # at least what does not fit is stored


@pytest.mark.skipif(shutil.which(ARM) is None, reason=f"{ARM} is missing")
def test_a_compiled_neon_tile(tmp_path: Path) -> None:
    source = """#include <arm_neon.h>
static __attribute__((noinline)) float32x4_t dot(const float *a, const float *b, long k) {
    float32x4_t s = vdupq_n_f32(0);
    for (; k; k--, a += 4, b += 4)
        s = vfmaq_f32(s, vld1q_f32(a), vld1q_f32(b));
    return s;
}
float32x4_t (*kernel)(const float *, const float *, long) = dot;
"""
    (tmp_path / "neon.c").write_text(source)
    made = tmp_path / "neon.o"
    subprocess.run([ARM, "-O2", "-c", "-o", str(made), str(tmp_path / "neon.c")], check=True)
    (loop,) = hot_loops(str(made))["neon"]["dot"]
    s = loop.signature
    assert (s.fmas, s.loads, s.stores, s.shuffles, s.spills, s.stack) == (1, 2, 0, 0, 0, 0)


@x86_only
def test_a_stripped_library_is_an_error(tmp_path: Path) -> None:
    made = build_avx2(tmp_path / "a", 8)
    subprocess.run(["strip", str(made)], check=True)
    with pytest.raises(PerfError, match="stripped") as error:
        hot_loops(str(made))
    assert error.value.status == Exit.TROUBLE


@pytest.mark.parametrize("data,message", [
    (b"", "no ELF"), (b"!<arch>\n" + bytes(20), "no ELF"), (b"\x7fELF", "no ELF"),
    (b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x03\x00", "ELF machine 3 "),
    (b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e\x00", "objdump")])
def test_what_is_no_library_is_an_error(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(data)
    with pytest.raises(PerfError, match=message) as error:
        hot_loops(str(path))
    assert str(path) in str(error.value)
    with pytest.raises(PerfError, match="No such file"):
        architecture(str(tmp_path / "none"))


def test_a_missing_objdump_is_a_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xb7\x00")  # aarch64
    monkeypatch.setenv("OBJDUMP_AARCH64", "no-such-objdump")
    monkeypatch.setenv("OBJDUMP", "no-such-objdump")
    with pytest.raises(PerfError, match="no-such-objdump is missing") as error:
        hot_loops(str(path))
    assert error.value.status == Exit.SKIP
