/* SPDX-License-Identifier: MIT
 *
 * Canonical orders, epilogues, gates, positions and rotary ones; see oracle_kernels.h.
 */
#include "oracle_kernels.h"

#include <math.h>

#include <isobit/ops.h>

#include "kernels.h"

_Static_assert((int)ORACLE_EXP == (int)ISO_UNARY_EXP && (int)ORACLE_ERF == (int)ISO_UNARY_ERF,
               "numbers of functions");

static double larger(double a, double b) { return a > b ? a : b; }

float iso_oracle_chain(float start, const float *a, size_t sa, const float *b, size_t sb,
                       size_t k) {
    for (size_t p = 0; p < k; p++)
        start = fmaf(a[p * sa], b[p * sb], start);
    return start;
}

float iso_oracle_gemm_chain(const float *a, size_t sa, const float *b, size_t sb, size_t k,
                            size_t block) {
    float sum = iso_oracle_chain(0.0f, a, sa, b, sb, k < block ? k : block);
    for (size_t p = block; p < k; p += block) {
        size_t left = k - p < block ? k - p : block;
        sum = sum + iso_oracle_chain(0.0f, a + p * sa, sa, b + p * sb, sb, left);
    }
    return sum;
}

float iso_oracle_lanes(const float *a, size_t sa, const float *b, size_t sb, size_t k) {
    float lane[ISO_LANES] = {0};
    for (size_t p = 0; p < k; p++)
        lane[p % ISO_LANES] = fmaf(a[p * sa], b[p * sb], lane[p % ISO_LANES]);
    for (size_t h = ISO_LANES / 2; h > 0; h /= 2) {
        for (size_t i = 0; i < h; i++)
            lane[i] += lane[i + h];
    }
    return lane[0];
}

double iso_oracle_quality_bound(double magnitude, double depth) {
    return (4 + 0.25 * sqrt(depth)) * ORACLE_U * magnitude + 4 * ORACLE_TINY;
}

double iso_oracle_gemm_depth(size_t k, size_t block) {
    size_t first = k < block ? k : block;
    size_t blocks = (k + block - 1) / block;
    return (double)first + (blocks > 1 ? (double)(blocks - 1) : 0.0);
}

double iso_oracle_epilogue(double *bound, double t, double tb,
                           const struct iso_oracle_epilogue *e) {
    if (e->alpha != 1) {
        t *= e->alpha;
        tb = tb * fabs(e->alpha) + ORACLE_U * fabs(t) + ORACLE_TINY;
    }
    if (e->beta != 0) {
        t += e->beta * (double)*e->c;
        tb += ORACLE_U * (fabs(t) + tb) + ORACLE_TINY;
    }
    if (e->bias) {
        t += (double)*e->bias;
        tb += ORACLE_U * (fabs(t) + tb) + ORACLE_TINY;
    }
    double y = t;
    if (e->act == ISOBIT_ACT_RELU) {
        y = iso_oracle_function(t, e->act);
    } else if (e->act != ISOBIT_ACT_NONE) {
        y = iso_oracle_function(t, e->act);
        /* no activation is steeper than 1.13; its own error is taken at the far end of tb */
        tb = 1.13 * tb + larger(iso_oracle_function_bound(t, e->act),
                                larger(iso_oracle_function_bound(t - tb, e->act),
                                       iso_oracle_function_bound(t + tb, e->act)));
    }
    if (e->residual) {
        y += (double)*e->residual;
        tb += ORACLE_U * (fabs(y) + tb) + ORACLE_TINY;
    }
    *bound = tb > 0 ? tb : ORACLE_EQUAL;
    return y;
}

float iso_oracle_epilogue_exact(float t, const struct iso_oracle_epilogue *e) {
    if (e->alpha != 1)
        t = (float)e->alpha * t;
    if (e->beta != 0)
        t = fmaf((float)e->beta, *e->c, t);
    if (e->bias)
        t = t + *e->bias;
    if (e->act == ISOBIT_ACT_RELU)
        t = t < 0 ? 0.0f : t;
    if (e->residual)
        t = t + *e->residual;
    return t;
}

double iso_oracle_gate(double *bound, double a, double b, int act) {
    const double f = iso_oracle_function(a, act), y = f * b;
    const double error = act <= ISOBIT_ACT_RELU ? 0 : fabs(b) * iso_oracle_function_bound(a, act);
    /* the error of act(a) times b, and one rounding */
    *bound = error + ORACLE_U * (fabs(y) + error) * (1 + 0x1p-20) + ORACLE_TINY / 2;
    return y;
}

double iso_oracle_position(double *bound, size_t t, size_t c, size_t d, int layout) {
    size_t i, half;
    int cosine;
    long double exponent;
    switch (layout) {
    case ISOBIT_POS_INTERLEAVED:
        i = c / 2, cosine = c % 2 == 1;
        exponent = 2 * (long double)i / (long double)d;
        break;
    case ISOBIT_POS_HALF_D:
        half = (d + 1) / 2;
        cosine = c >= half, i = cosine ? c - half : c;
        exponent = 2 * (long double)i / (long double)d;
        break;
    default:
        half = d / 2;
        *bound = ORACLE_EQUAL;
        if (c >= 2 * half)
            return 0;
        cosine = c >= half, i = cosine ? c - half : c;
        exponent = half > 1 ? (long double)i / (long double)(half - 1) : 0;
        break;
    }
    long double angle = (long double)t * powl(10000.0L, -exponent);
    double y = (double)(cosine ? cosl(angle) : sinl(angle));
    /* one rounding to f32, and an angle that is off by a few units of double */
    *bound = 0.501 * iso_oracle_ulp(y) + (double)angle * 0x1p-51;
    if (t == 0)
        *bound = ORACLE_EQUAL;
    return y;
}

double iso_oracle_rope(double *bound, float *exact, float a, float b, float c, float s,
                       int second) {
    const float x = second ? b : a, other = second ? a : -b;
    const float p = x * c, q = other * s; /* rounded: no test is compiled with contraction */
    *exact = p + q;
    const double dp = (double)x * (double)c, dq = (double)other * (double)s, y = dp + dq;
    /* two products and their sum; the products may be subnormal, and the sum of those is exact */
    *bound = ORACLE_U * (fabs(dp) + fabs(dq)) + ORACLE_TINY;
    *bound = (*bound + ORACLE_U * (fabs(y) + *bound)) * (1 + 0x1p-20);
    return y;
}

double iso_oracle_rope_table(double *bound, size_t t, float inv_freq, int sine, float scaling) {
    /* exact, in double too */
    const long double angle = (long double)((double)t * (double)inv_freq);
    const double y = (double)((long double)scaling * (sine ? sinl(angle) : cosl(angle)));
    /* one rounding to f32, and the double before it */
    *bound = 0.50001 * iso_oracle_ulp(y);
    return y;
}
