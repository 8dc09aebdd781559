/* SPDX-License-Identifier: MIT
 *
 * A softmax in plain C and one for AVX2 that give the same bits: both add up in eight lanes and
 * compute exp by the same steps. With SOFTMAX_IS_WRONG the second forgets an element of the sum
 * when a row has seven beyond a multiple of eight.
 */
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include <stddef.h>

void softmax_scalar(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n);
void softmax_avx2(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n);

/* exp(x) = 2^k exp(r), k = round(x / log 2), for x <= 0. Adding SHIFT rounds to an integer. */
#define EXP_LEAST -104.0f
#define EXP_SHIFT 0x1.8p23f
#define EXP_LOG2E 0x1.715476p+0f
#define EXP_LN2_HIGH 0x1.62e4p-1f
#define EXP_LN2_LOW 0x1.7f7d1cp-20f
#define EXP_C2 0x1p-1f
#define EXP_C3 0x1.555556p-3f
#define EXP_C4 0x1.555556p-5f
#define EXP_C5 0x1.111112p-7f
#define EXP_C6 0x1.6c16c2p-10f
#define EXP_C7 0x1.a01a02p-13f

#endif
