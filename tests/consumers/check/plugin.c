/* SPDX-License-Identifier: MIT
 *
 * What `isobit check --plugin` needs to know about the two.
 */
#include <isobit/check.h>

#include "softmax.h"

const struct iso_check_target *iso_check_plugin(void) {
    static const struct iso_check_operations scalar = {.softmax = softmax_scalar};
    static struct iso_check_operations avx2;
    static struct iso_check_variant variants[] = {{"scalar", &scalar, NULL},
                                                  {"avx2", &avx2, "no AVX2 and FMA"}};
    static const struct iso_check_target target = {
        .size = sizeof target,
        .version = ISO_CHECK_VERSION,
        .name = "softmax",
        .variants = variants,
        .variant_count = 2,
        .promises = ISO_CHECK_SAME_BITS | ISO_CHECK_NO_FLAGS | ISO_CHECK_NO_ERRNO};
#if defined(__x86_64__)
    avx2.softmax = softmax_avx2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        variants[1].missing = NULL;
#endif
    return &target;
}
