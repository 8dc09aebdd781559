/* SPDX-License-Identifier: MIT
 *
 * Floats become numbers of fewer bits. Rounding is that of the operations, or plain C in double, so
 * that the bits are the same on every machine.
 */
#include "quantize.h"

#include <math.h>
#include <string.h>

/* F16 of a float that is one; subnormal ones are multiples of 2^-24. */
static uint16_t f16_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 255;
    if (exponent < 113)
        return (uint16_t)(sign | (uint32_t)(fabsf(x) * 0x1p24f));
    return (uint16_t)(sign | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

static void add_error(model_errors *errors, double x, double instead) {
    const double error = fabs(instead - x);
    errors->largest = error > errors->largest ? error : errors->largest;
    errors->errors += error * error;
    errors->squares += x * x;
}

iso_status model_make_16(unsigned char *to, const float *x, size_t count, model_made made,
                         model_errors *errors, size_t *bad, const iso_context *context) {
    enum { SOME = 256 };
    float rounded[SOME];
    for (size_t done = 0; done < count; done += SOME) {
        const size_t some = count - done < SOME ? count - done : SOME;
        const iso_status status =
            iso_round_w16(rounded, some, x + done, some, 1, some,
                          made == MADE_F16 ? ISOBIT_F16 : ISOBIT_BF16, context);
        if (status)
            return status;
        for (size_t i = 0; i < some; i++) {
            uint32_t bits;
            memcpy(&bits, &rounded[i], sizeof bits);
            if ((bits & 0x7f800000) == 0x7f800000) {
                *bad = done + i;
                return ISOBIT_E_RANGE;
            }
            const uint32_t half = made == MADE_F16 ? f16_bits(rounded[i]) : bits >> 16;
            to[2 * (done + i)] = (unsigned char)half;
            to[2 * (done + i) + 1] = (unsigned char)(half >> 8);
            add_error(errors, (double)x[done + i], (double)rounded[i]);
        }
    }
    return ISOBIT_OK;
}

iso_status model_make_int8(int8_t *numbers, float *scales, const float *x, size_t rows, size_t k,
                           model_errors *errors, const iso_context *context) {
    const iso_status status = iso_quantize_s8(numbers, k, scales, x, k, rows, k, context);
    if (status)
        return status;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < k; j++)
            add_error(errors, (double)x[i * k + j], (double)numbers[i * k + j] * (double)scales[i]);
    for (size_t i = 0; i < rows; i++) {
        uint32_t bits;
        unsigned char *to = (unsigned char *)(scales + i);
        memcpy(&bits, &scales[i], sizeof bits);
        for (size_t b = 0; b < 4; b++)
            to[b] = (unsigned char)(bits >> 8 * b);
    }
    return ISOBIT_OK;
}

/* ---------------------------------------------------------------------------------- groups */

#define NARROWEST 6.0 /* of 4 bits: the largest magnitude becomes this, at least, */
#define STEP 0.25     /* this more, */
#define STEPS 13      /* so often */
#define REFINED 2     /* times the scale is adapted to the numbers */

typedef struct group_try {
    double scale, error;
    double products, squares; /* sums of x q and q q */
} group_try;

/* The nearest F16 that is above 0; or 0, if that is an infinity. */
static double f16_above_0(double scale) {
    if (!(scale < 65520))
        return 0;
    if (scale < 0x1p-14) { /* multiples of 2^-24 */
        const double whole = scale * 0x1p24 + 0x1.8p52 - 0x1.8p52;
        return whole < 1 ? 0x1p-24 : whole * 0x1p-24;
    }
    int exponent;
    const double fraction = frexp(scale, &exponent);
    return ldexp(fraction * 0x1p11 + 0x1.8p52 - 0x1.8p52, exponent - 11);
}

/* The numbers that a scale gives, to nearest, to even, within [-half, half - 1]. */
static void try_scale(group_try *t, double scale, const float *x, size_t n, double half) {
    enum { LANES = 4 };
    double error[LANES] = {0}, products[LANES] = {0}, squares[LANES] = {0};
    const double inverse = 1 / scale;
    for (size_t i = 0; i < n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double v = (double)x[i + l], near = v * inverse + 0x1.8p52 - 0x1.8p52;
            const double high = near < half - 1 ? near : half - 1, q = high > -half ? high : -half;
            const double e = v - q * scale;
            error[l] += e * e;
            products[l] += v * q;
            squares[l] += q * q;
        }
    *t = (group_try){scale, (error[0] + error[1]) + (error[2] + error[3]),
                     (products[0] + products[1]) + (products[2] + products[3]),
                     (squares[0] + squares[1]) + (squares[2] + squares[3])};
}

/* The scale with the least squared error, of those that were tried; 0: F16 has it not. */
static double choose_scale(const float *x, size_t n, unsigned bits) {
    const double half = bits == 4 ? 8 : 128;
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
    group_try best = {.scale = f16_above_0(most / (half - 1))}, t;
    if (best.scale == 0 || bits == 8 || most == 0)
        return best.scale;
    try_scale(&best, best.scale, x, n, half);
    for (int i = 0; i < STEPS; i++) {
        const double scale = f16_above_0(most / (NARROWEST + STEP * i));
        if (scale == 0) /* F16 has it not */
            continue;
        try_scale(&t, scale, x, n, half);
        best = t.error < best.error ? t : best;
    }
    for (int i = 0; i < REFINED && best.squares > 0; i++) {
        const double scale = f16_above_0(best.products / best.squares);
        if (scale == 0 || scale == best.scale)
            break;
        try_scale(&t, scale, x, n, half);
        best = t.error < best.error ? t : best;
    }
    return best.scale;
}

iso_status model_make_groups(unsigned char *numbers, unsigned char *scales, const float *x,
                             size_t rows, size_t k, unsigned bits, size_t group,
                             model_errors *errors, size_t *bad) {
    const double half = bits == 4 ? 8 : 128;
    for (size_t g = 0; g < rows * k / group; g++, x += group, scales += 2) {
        const double scale = choose_scale(x, group, bits), inverse = 1 / scale;
        if (scale == 0) {
            *bad = g * group;
            return ISOBIT_E_RANGE;
        }
        const uint16_t stored = f16_bits((float)scale);
        scales[0] = (unsigned char)stored;
        scales[1] = (unsigned char)(stored >> 8);
        for (size_t i = 0; i < group; i++) {
            const double v = (double)x[i], near = v * inverse + 0x1.8p52 - 0x1.8p52;
            const double high = near < half - 1 ? near : half - 1, q = high > -half ? high : -half;
            const unsigned number = (unsigned)(int)(q + half);
            if (bits == 8)
                *numbers++ = (unsigned char)number;
            else if (i % 2 == 0)
                *numbers = (unsigned char)number;
            else
                *numbers++ |= (unsigned char)(number << 4);
            add_error(errors, v, q * scale);
        }
    }
    return ISOBIT_OK;
}
