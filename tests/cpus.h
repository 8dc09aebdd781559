/* SPDX-License-Identifier: MIT
 *
 * CPUs to show to the dispatcher, as they answer CPUID (or fill AT_HWCAP) under Linux, and some
 * that hypervisors, kernels and mistakes make of them. The numbers are register values and not
 * names of bits, so that they check the table of bits in dispatch/cpu.h.
 *
 * X86(name, highest leaf, 1.ecx, 7.eax, 7.ebx, 7.ecx, 7.edx, 7.1.eax, xcr0,
 *     expected set, why not avx512)
 * ARM(name, hwcap, hwcap2, all that is expected of asimd asimddp fphp i8mm bf16 sve sve2)
 */

/* clang-format off */
#define NO_AVX "the CPU lacks avx"
#define NO_AVX2 "the CPU lacks avx2"
#define NO_512 "the CPU lacks avx512f"
#define NO_OSXSAVE "OSXSAVE is off: the operating system saves no vector state beyond SSE"
#define NO_YMM "XCR0 lacks YMM state: the operating system does not save it"
#define NO_ZMM "XCR0 lacks ZMM state: the operating system does not save it"

/* Before AVX2. */
X86("Core 2", 0xa, 0x0008e3bd, 0, 0, 0, 0, 0, 0, "scalar", NO_AVX)
X86("Nehalem", 0xb, 0x0098e3bd, 0, 0, 0, 0, 0, 0, "scalar", NO_AVX)
X86("Westmere", 0xb, 0x029ee3ff, 0, 0, 0, 0, 0, 0, "scalar", NO_AVX)
X86("Sandy Bridge", 0xd, 0x1fbae3ff, 0, 0, 0, 0, 0, 0x7, "scalar", "the CPU lacks f16c")
X86("Ivy Bridge", 0xd, 0x7fbae3ff, 0, 0x00000281, 0, 0, 0, 0x7, "scalar", "the CPU lacks fma")
X86("Goldmont", 0x15, 0x4ff8ebbf, 0, 0x2294e283, 0, 0, 0, 0x1b, "scalar", NO_AVX)
X86("Jaguar", 0xd, 0x3ed8220b, 0, 0x00000008, 0, 0, 0, 0x7, "scalar", "the CPU lacks fma")
X86("Piledriver (FMA without AVX2)", 0xd, 0x3e98320b, 0, 0x00000008, 0, 0, 0, 0x7, "scalar", NO_AVX2)
/* AVX2. */
X86("Haswell", 0xd, 0x7ffafbff, 0, 0x000027ab, 0, 0, 0, 0x7, "avx2", NO_512)
X86("Broadwell", 0x14, 0x7ffafbff, 0, 0x021c27ab, 0, 0, 0, 0x7, "avx2", NO_512)
X86("Skylake client", 0x16, 0x7ffafbbf, 0, 0x029c6fbf, 0, 0xbc002e00, 0, 0x1f, "avx2", NO_512)
X86("Excavator", 0xd, 0x7ed8320b, 0, 0x000001a9, 0, 0, 0, 0x7, "avx2", NO_512)
X86("Zen 1", 0xd, 0x7ed8320b, 0, 0x209c01a9, 0, 0, 0, 0x7, "avx2", NO_512)
X86("Zen 2", 0x10, 0x7ed8320b, 0, 0x219c91a9, 0x00400004, 0, 0, 0x207, "avx2", NO_512)
X86("Zen 3", 0x10, 0x7ef8320b, 0, 0x219c97a9, 0x0040068c, 0x00000010, 0, 0x207, "avx2", NO_512)
X86("Alder Lake", 0x20, 0x7ffafbff, 2, 0x239c27eb, 0x98c027ac, 0xfc1cc410, 0x00400810, 0x207, "avx2_vnni", NO_512)
X86("Alder Lake-N", 0x20, 0x7ffafbbf, 2, 0x239ca7eb, 0x98c007bc, 0xfc184410, 0x00400810, 0x207, "avx2_vnni", NO_512)
/* AVX-512. */
X86("Skylake-X", 0x16, 0x7ffefbff, 0, 0xd39ffffb, 0, 0xbc000400, 0, 0x2ff, "avx512", NULL)
X86("Cascade Lake", 0x16, 0x7ffefbff, 0, 0xd39ffffb, 0x00000818, 0xbc000400, 0, 0x2ff, "avx512_vnni", NULL)
X86("Ice Lake", 0x1b, 0x7ffafbff, 0, 0xf2bf27ef, 0x40405f4e, 0xbc000410, 0, 0xe7, "avx512_vnni", NULL)
X86("Rocket Lake", 0x1b, 0x7ffafbff, 0, 0xf2bf27eb, 0x40405f4e, 0xbc000410, 0, 0x2e7, "avx512_vnni", NULL)
X86("Alder Lake, E-cores off", 0x20, 0x7ffafbff, 1, 0xf3bfa7eb, 0x98c05fee, 0xfc9cc510, 0x00001c30, 0x2e7, "avx512_bf16", NULL)
X86("Sapphire Rapids", 0x20, 0x7ffefbff, 1, 0xf3bfbfff, 0xfb417ffe, 0xffdd4432, 0x00001c30, 0x602e7, "avx512_amx", NULL)
X86("Zen 4", 0x10, 0x7ef8320b, 1, 0xf1bf97a9, 0x00405fce, 0x10000010, 0x00000020, 0x2e7, "avx512_bf16", NULL)
X86("Zen 5", 0x10, 0x7ef8320b, 1, 0xf1bf97ab, 0x18405fde, 0x10000110, 0x00000030, 0x2e7, "avx512_bf16", NULL)
/* What the operating system or the hypervisor takes away. */
X86("Skylake-X, XCR0 without ZMM", 0x16, 0x7ffefbff, 0, 0xd39ffffb, 0, 0, 0, 0x7, "avx2", NO_ZMM)
X86("Skylake-X, XCR0 with opmask only", 0x16, 0x7ffefbff, 0, 0xd39ffffb, 0, 0, 0, 0x27, "avx2", NO_ZMM)
X86("Skylake-X, XCR0 without zmm16-31", 0x16, 0x7ffefbff, 0, 0xd39ffffb, 0, 0, 0, 0x67, "avx2", NO_ZMM)
X86("Skylake-X, XCR0 of MPX and PKRU", 0x16, 0x7ffefbff, 0, 0xd39ffffb, 0, 0, 0, 0x21f, "avx2", NO_ZMM)
X86("Sapphire Rapids, XCR0 without tiles", 0x20, 0x7ffefbff, 1, 0xf3bfbfff, 0xfb417ffe, 0xffdd4432, 0x00001c30, 0x2e7, "avx512_bf16", NULL)
X86("Sapphire Rapids, XCR0 of tile configuration only", 0x20, 0x7ffefbff, 1, 0xf3bfbfff, 0xfb417ffe, 0xffdd4432, 0x00001c30, 0x202e7, "avx512_bf16", NULL)
X86("Sapphire Rapids, AMX masked", 0x20, 0x7ffefbff, 1, 0xf3bfbfff, 0xfb417ffe, 0xfcdd4432, 0x00001c30, 0x602e7, "avx512_bf16", NULL)
X86("Zen 4, XCR0 without ZMM", 0x10, 0x7ef8320b, 1, 0xf1bf97a9, 0x00405fce, 0x10000010, 0x20, 0x207, "avx2", NO_ZMM)
X86("Zen 4, XCR0 of ZMM without YMM", 0x10, 0x7ef8320b, 1, 0xf1bf97a9, 0x00405fce, 0x10000010, 0x20, 0xe3, "scalar", NO_YMM)
X86("Haswell, XCR0 of SSE only", 0xd, 0x7ffafbff, 0, 0x000027ab, 0, 0, 0, 0x3, "scalar", NO_512)
X86("Ice Lake, XCR0 of SSE only", 0x1b, 0x7ffafbff, 0, 0xf2bf27ef, 0x40405f4e, 0, 0, 0x3, "scalar", NO_YMM)
X86("Haswell, OSXSAVE off", 0xd, 0x77fafbff, 0, 0x000027ab, 0, 0, 0, 0x7, "scalar", NO_512)
X86("Ice Lake, OSXSAVE off", 0x1b, 0x77fafbff, 0, 0xf2bf27ef, 0x40405f4e, 0, 0, 0xe7, "scalar", NO_OSXSAVE)
X86("Haswell, AVX2 masked", 0xd, 0x7ffafbff, 0, 0x0000278b, 0, 0, 0, 0x7, "scalar", NO_AVX2)
X86("Haswell, FMA masked", 0xd, 0x7ffaebff, 0, 0x000027ab, 0, 0, 0, 0x7, "scalar", "the CPU lacks fma")
X86("Haswell, AVX masked but not AVX2", 0xd, 0x6ffafbff, 0, 0x000027ab, 0, 0, 0, 0x7, "scalar", NO_AVX)
X86("Ice Lake, FMA masked", 0x1b, 0x7ffaebff, 0, 0xf2bf27ef, 0x40405f4e, 0, 0, 0xe7, "scalar", "the CPU lacks fma")
X86("Haswell, highest leaf 6", 0x6, 0x7ffafbff, 0, 0x000027ab, 0, 0, 0, 0x7, "scalar", NO_AVX2)
X86("highest leaf 4, garbage above", 0x4, 0x7ffafbff, ~0u, ~0u, ~0u, ~0u, ~0u, 0xe7, "scalar", NO_AVX2)
X86("highest leaf 0, garbage above", 0x0, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0xe7, "scalar", NO_AVX)
X86("no CPUID at all", 0x0, 0, 0, 0, 0, 0, 0, 0, "scalar", NO_AVX)
/* AVX-512 that is not all of what we need. */
X86("Knights Landing", 0xd, 0x7ff8f3bf, 0, 0x1c0d23ab, 0x00000001, 0, 0, 0xe7, "avx2", "the CPU lacks avx512dq")
X86("Skylake-X, BW masked", 0x16, 0x7ffefbff, 0, 0x939ffffb, 0, 0, 0, 0xe7, "avx2", "the CPU lacks avx512bw")
X86("Skylake-X, VL masked", 0x16, 0x7ffefbff, 0, 0x539ffffb, 0, 0, 0, 0xe7, "avx2", "the CPU lacks avx512vl")
X86("Skylake-X, F masked", 0x16, 0x7ffefbff, 0, 0xd39efffb, 0, 0, 0, 0xe7, "avx2", NO_512)
X86("VNNI without VL", 0x16, 0x7ffefbff, 0, 0x539ffffb, 0x00000818, 0, 0, 0xe7, "avx2", "the CPU lacks avx512vl")
/* Emulators. */
X86("qemu -cpu max", 0xd, 0xfeda3203, 0, 0x019c47ab, 0x00400004, 0, 0, 0x21f, "avx2", NO_512)
X86("AVX2 without FMA or F16C", 0xd, 0x1f9ae3bf, 0, 0x000027ab, 0, 0, 0, 0x7, "scalar", "the CPU lacks f16c")
X86("AVX2 without F16C", 0xd, 0x1f9af3bf, 0, 0x000027ab, 0, 0, 0, 0x7, "scalar", "the CPU lacks f16c")

ARM("Cortex-A53", 0x8ff, 0, "asimd")
ARM("Cortex-A72", 0x8ff, 0, "asimd")
ARM("Cortex-A76", 0x10119fff, 0, "asimd asimddp fphp")
ARM("Neoverse N1", 0x10119fff, 0, "asimd asimddp fphp")
ARM("Neoverse V1", 0xdfffffff, 0x1f201, "asimd asimddp fphp i8mm bf16 sve")
ARM("Neoverse V2", 0xffffffff, 0x1f3ff, "asimd asimddp fphp i8mm bf16 sve sve2")
ARM("A64FX", 0x46ffff, 0, "asimd fphp sve")
ARM("Apple M1", 0xefb3ffff, 0x181, "asimd asimddp fphp")
ARM("Apple M2", 0xefb3ffff, 0x6181, "asimd asimddp fphp i8mm bf16")
ARM("hypervisor that hides SIMD", 0x1, 0, "")
/* clang-format on */
