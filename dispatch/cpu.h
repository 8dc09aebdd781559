/* SPDX-License-Identifier: MIT
 *
 * What the machine can do: feature bits, cache sizes, a name to show.
 *
 * Reading the machine and making sense of what was read are separate: iso_cpu_decode_x86 and
 * iso_cpu_decode_arm are pure functions of plain structs and exist on every architecture, so that
 * the tests can show any CPU to any machine. Features are decided by feature bits and by the state
 * that the operating system saves, never by vendor, family or model.
 */
#ifndef ISOBIT_CPU_H
#define ISOBIT_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parts of XCR0: what the operating system saves when it switches tasks. */
enum {
    ISO_XCR0_YMM = 0x6,     /* SSE and the upper halves of ymm */
    ISO_XCR0_ZMM = 0xe6,    /* the same, opmask, upper halves of zmm0-15, zmm16-31 */
    ISO_XCR0_TILE = 0x60000 /* AMX: tile configuration and tile data */
};

/*
 * FEATURE(ID, "name", leaf, register, bit, state of XCR0 that it needs). The leaves: 1 and 7 are
 * CPUID leaves (subleaf 0), 71 is leaf 7 subleaf 1.
 */
#define ISO_X86_FEATURES(FEATURE)                                                                  \
    FEATURE(SSE42, "sse4.2", 1, ECX, 20, 0)                                                        \
    FEATURE(POPCNT, "popcnt", 1, ECX, 23, 0)                                                       \
    FEATURE(AVX, "avx", 1, ECX, 28, ISO_XCR0_YMM)                                                  \
    FEATURE(F16C, "f16c", 1, ECX, 29, ISO_XCR0_YMM)                                                \
    FEATURE(FMA, "fma", 1, ECX, 12, ISO_XCR0_YMM)                                                  \
    FEATURE(AVX2, "avx2", 7, EBX, 5, ISO_XCR0_YMM)                                                 \
    FEATURE(AVX_VNNI, "avxvnni", 71, EAX, 4, ISO_XCR0_YMM)                                         \
    FEATURE(AVX512F, "avx512f", 7, EBX, 16, ISO_XCR0_ZMM)                                          \
    FEATURE(AVX512DQ, "avx512dq", 7, EBX, 17, ISO_XCR0_ZMM)                                        \
    FEATURE(AVX512CD, "avx512cd", 7, EBX, 28, ISO_XCR0_ZMM)                                        \
    FEATURE(AVX512BW, "avx512bw", 7, EBX, 30, ISO_XCR0_ZMM)                                        \
    FEATURE(AVX512VL, "avx512vl", 7, EBX, 31, ISO_XCR0_ZMM)                                        \
    FEATURE(AVX512IFMA, "avx512ifma", 7, EBX, 21, ISO_XCR0_ZMM)                                    \
    FEATURE(AVX512VBMI, "avx512vbmi", 7, ECX, 1, ISO_XCR0_ZMM)                                     \
    FEATURE(AVX512VBMI2, "avx512vbmi2", 7, ECX, 6, ISO_XCR0_ZMM)                                   \
    FEATURE(AVX512VNNI, "avx512vnni", 7, ECX, 11, ISO_XCR0_ZMM)                                    \
    FEATURE(AVX512BF16, "avx512bf16", 71, EAX, 5, ISO_XCR0_ZMM)                                    \
    FEATURE(AVX512FP16, "avx512fp16", 7, EDX, 23, ISO_XCR0_ZMM)                                    \
    FEATURE(AMX_TILE, "amx-tile", 7, EDX, 24, ISO_XCR0_TILE)                                       \
    FEATURE(AMX_INT8, "amx-int8", 7, EDX, 25, ISO_XCR0_TILE)                                       \
    FEATURE(AMX_BF16, "amx-bf16", 7, EDX, 22, ISO_XCR0_TILE)

/*
 * FEATURE(ID, "name", word, bit): the kernel's AT_HWCAP (word 0) and AT_HWCAP2 (word 1). What is
 * listed there is enabled, state saving included. The names are the kernel's.
 */
#define ISO_ARM_FEATURES(FEATURE)                                                                  \
    FEATURE(ASIMD, "asimd", 0, 1)                                                                  \
    FEATURE(FPHP, "fphp", 0, 9)                                                                    \
    FEATURE(ASIMDHP, "asimdhp", 0, 10)                                                             \
    FEATURE(ASIMDDP, "asimddp", 0, 20)                                                             \
    FEATURE(ASIMDFHM, "asimdfhm", 0, 23)                                                           \
    FEATURE(SVE, "sve", 0, 22)                                                                     \
    FEATURE(SVE2, "sve2", 1, 1)                                                                    \
    FEATURE(I8MM, "i8mm", 1, 13)                                                                   \
    FEATURE(BF16, "bf16", 1, 14)                                                                   \
    FEATURE(SME, "sme", 1, 23)

/* A set of features is a uint64_t of one bit for each. */
enum iso_feature {
#define FEATURE(id, ...) ISO_FEATURE_##id,
    ISO_X86_FEATURES(FEATURE) ISO_ARM_FEATURES(FEATURE)
#undef FEATURE
        ISO_FEATURE_COUNT
};
_Static_assert(ISO_FEATURE_COUNT <= 64, "a set of features is a uint64_t");
#define ISO_HAS(id) (UINT64_C(1) << ISO_FEATURE_##id)

/* What was read of an x86 CPU. Registers in the order eax, ebx, ecx, edx. */
enum { ISO_EAX, ISO_EBX, ISO_ECX, ISO_EDX };
enum { ISO_CACHE_LEAVES = 8 };
struct iso_x86_raw {
    uint32_t leaf0[4], leaf1[4], leaf7[4], leaf7_1[4];
    uint32_t ext0[4], ext1[4], brand[3][4];
    uint32_t leaf4[ISO_CACHE_LEAVES][4];  /* caches as Intel lists them */
    uint32_t leaf1d[ISO_CACHE_LEAVES][4]; /* 0x8000001D: as AMD does, in the same form */
    uint64_t xcr0;                        /* 0 unless leaf 1 has OSXSAVE */
};

struct iso_arm_raw {
    uint64_t hwcap, hwcap2;
    uint32_t midr; /* the main ID register, 0 when unknown: only for the name */
};

struct iso_cpu {
    char name[64];
    const char *architecture;
    uint64_t present; /* features that the CPU claims */
    uint64_t usable;  /* those of them whose state the operating system saves */
    uint64_t xcr0;
    bool osxsave;
    size_t l1d, l2, l3; /* bytes; 0 only for l3: there may be none */
};

void iso_cpu_decode_x86(struct iso_cpu *cpu, const struct iso_x86_raw *raw);
void iso_cpu_decode_arm(struct iso_cpu *cpu, const struct iso_arm_raw *raw);

/* Reads this machine. Slow (traps under a hypervisor): select.c does it once. */
void iso_cpu_detect(struct iso_cpu *cpu);

/* Whether this process may use the tiles of AMX. Linux wants to be asked, and then keeps room for
 * them on the stack of each signal handler: so the first call asks, and nothing else does. */
bool iso_cpu_permits_tiles(void);

/* The first reason why a CPU falls short of a set of features; NULL when it does not. Static. */
const char *iso_cpu_missing(const struct iso_cpu *cpu, uint64_t required);

const char *iso_feature_name(enum iso_feature feature);

/* The version of libcpuid, "" where there is none. */
const char *iso_cpuid_version(void);

#endif
