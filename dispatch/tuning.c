/* SPDX-License-Identifier: MIT */
#include "tuning.h"

#define VALUES(...)                                                                                \
    { __VA_ARGS__ }
static const struct iso_gemm_tuning tunings[ISO_ISA_COUNT] = {
#define CONSTANT(...)
#if defined(__x86_64__)
#define TUNING(name, avx512, ...) .name = VALUES avx512,
    [ISO_ISA_avx512] =
        {
#include "tuning.def"
        },
#undef TUNING
#define TUNING(name, avx512, avx2, ...) .name = VALUES avx2,
    [ISO_ISA_avx2] =
        {
#include "tuning.def"
        },
#undef TUNING
#elif defined(__aarch64__)
#define TUNING(name, avx512, avx2, neon, ...) .name = {neon, neon, neon},
    [ISO_ISA_neon] =
        {
#include "tuning.def"
        },
#undef TUNING
#endif
#define TUNING(name, avx512, avx2, neon, scalar, ...) .name = {scalar, scalar, scalar},
    [ISO_ISA_scalar] =
        {
#include "tuning.def"
        },
#undef TUNING
#undef CONSTANT
};

struct iso_gemm_machine iso_gemm_machine_of(const struct iso_kernels *kernels,
                                            enum iso_gemm_class class) {
    return (struct iso_gemm_machine){kernels, &tunings[kernels->isa], class};
}

/* Cores with much L2 have, as a rule, a slow L3: servers of Intel read it at a third of what Zen 5
 * does. L1 caches of 32 KiB have 8 ways, larger ones 12, and few misses at a time. */
struct iso_gemm_machine iso_gemm_this_machine(const struct iso_kernels *kernels) {
    return iso_gemm_machine_of(kernels, iso_l3_is_slow()                 ? ISO_GEMM_SERVER
                                        : iso_l1_has_low_associativity() ? ISO_GEMM_SMALL_L1
                                                                         : ISO_GEMM_OTHER);
}
