/* SPDX-License-Identifier: MIT
 *
 * The functions of math.h, softmax and logsumexp as a library of their own, in which constants can
 * be changed while it runs. ISO_VEC names the vocabulary; templates/ is looked for on the include
 * path, where a math.h of constants.py comes first: each constant is an element of an array there.
 */
#include "kernels.h"

#include <string.h>

#include ISO_VEC

#include <templates/math.h>

#include <templates/lanes.h>

#include <templates/eltwise.h>

#include <templates/softmax.h>

#include "mutate/constants.h"

/* The functions of one vector at a time, which is quicker to compile than `unary` and gives the
 * same bits; and beside those that it has, exp as softmax and attention have it. */
static void bare(float *y, const float *x, size_t n, int function) {
#define EACH_VECTOR(f)                                                                             \
    case f:                                                                                        \
        for (size_t i = 0; i < n; i += VF_N) {                                                     \
            const size_t w = n - i < VF_N ? n - i : VF_N;                                          \
            vf v = load_w(x + i, w);                                                               \
            if (f == PROBE_EXP_NEG)                                                                \
                v = vf_exp_neg(v);                                                                 \
            else                                                                                   \
                vf_functions(&v, &v, f, 1);                                                        \
            store_w(y + i, v, w);                                                                  \
        }                                                                                          \
        break
    switch (function) {
        EACH_VECTOR(ISO_UNARY_RELU);
        EACH_VECTOR(ISO_UNARY_SILU);
        EACH_VECTOR(ISO_UNARY_GELU_ERF);
        EACH_VECTOR(ISO_UNARY_GELU_TANH);
        EACH_VECTOR(ISO_UNARY_TANH);
        EACH_VECTOR(ISO_UNARY_EXP);
        EACH_VECTOR(ISO_UNARY_ERF);
        EACH_VECTOR(PROBE_EXP_NEG);
    default: break;
    }
}

__attribute__((visibility("default")))
const struct iso_kernels PROBE_TABLE = {.unary = bare, .softmax = softmax, .logsumexp = logsumexp};
