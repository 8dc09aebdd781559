/* SPDX-License-Identifier: MIT
 *
 * softmax in plain C. Eight lanes, as the other one has.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "softmax.h"

static float power_of_two(int32_t k) {
    uint32_t bits = (uint32_t)(k + 127) << 23;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

static float exp_below_zero(float x) {
    x = x < EXP_LEAST ? EXP_LEAST : x; /* NaN stays */
    const float shifted = fmaf(x, EXP_LOG2E, EXP_SHIFT), k = shifted - EXP_SHIFT;
    float r = fmaf(-k, EXP_LN2_HIGH, x);
    r = fmaf(-k, EXP_LN2_LOW, r);
    float p = fmaf(EXP_C7, r, EXP_C6);
    p = fmaf(p, r, EXP_C5);
    p = fmaf(p, r, EXP_C4);
    p = fmaf(p, r, EXP_C3);
    p = fmaf(p, r, EXP_C2);
    p = fmaf(p, r * r, r) + 1.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    const int32_t n = x == x ? bits - 0x4b400000 : 0;
    const int32_t half = n >> 1;
    return p * power_of_two(half) * power_of_two(n - half); /* 2^n may be too small for a float */
}

void softmax_scalar(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++, y += ldy, x += ldx) {
        float max = -INFINITY, lanes[8] = {0};
        for (size_t j = 0; j < n; j++)
            max = x[j] > max ? x[j] : max;
        for (size_t j = 0; j < n; j++) {
            y[j] = exp_below_zero(x[j] - max);
            lanes[j % 8] += y[j];
        }
        for (size_t h = 4; h > 0; h /= 2) {
            for (size_t j = 0; j < h; j++)
                lanes[j] += lanes[j + h];
        }
        for (size_t j = 0; j < n; j++)
            y[j] /= lanes[0];
    }
}
