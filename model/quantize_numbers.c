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
